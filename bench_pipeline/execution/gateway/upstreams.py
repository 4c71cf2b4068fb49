"""Those who serve models, and care for them: how many requests at once and a minute, waiting when they ask for it.

What belongs here: one upstream's turns, and sending a request to it. What does not: what is sent for whom (``door``).
All cells of a run share an upstream's turns. A key is put into a header here and is in no error, log or answer.
"""

import asyncio
from collections.abc import Mapping

import aiohttp

from bench_pipeline.execution.gateway.apis import Api
from bench_pipeline.providers.chat import retry_after
from bench_pipeline.providers.pacing import Pace
from bench_pipeline.providers.retrying import LONGEST_WAIT_S

_CONNECT_S = 20.0
# No model is silent for longer than this before its answer, or in the middle of it.
_SILENCE_S = 600.0
# What of an agent's headers reaches an upstream; everything else is the agent's own affair.
_PASSED_ON = ("accept", "anthropic-version", "anthropic-beta", "openai-beta")


class Upstream:
    """One upstream; for the tasks of one event loop."""

    def __init__(
        self,
        name: str,
        base_url: str,
        key: str | None,
        *,
        concurrency: int,
        requests_per_minute: int | None = None,
    ) -> None:
        self.name = name
        self._url = base_url.rstrip("/")
        self._key = key
        self._free = asyncio.Semaphore(concurrency)
        self._pace = Pace(requests_per_minute)
        self._line = asyncio.Lock()

    async def __aenter__(self) -> None:
        """Take a place among the requests that may be under way, once the upstream takes requests again."""
        await self._free.acquire()
        try:
            # Who came first goes first, also when it has to wait.
            async with self._line:
                while wait := self._pace.begin():
                    await asyncio.sleep(wait)
        except BaseException:
            self._free.release()
            raise

    async def __aexit__(self, *_: object) -> None:
        """Leave the place to the next."""
        self._free.release()

    def rest(self, headers: Mapping[str, str]) -> float | None:
        """What the upstream asks to wait before anything is sent to it again, which from now on is kept."""
        wait = retry_after(headers.get("Retry-After"))
        if wait is not None and wait <= LONGEST_WAIT_S:
            self._pace.rest(wait)
        return wait

    def send(
        self, client: aiohttp.ClientSession, api: Api, body: bytes, headers: Mapping[str, str]
    ) -> "aiohttp.client._RequestContextManager":
        """Send one request: nothing is followed, and nothing is sent twice."""
        passed = {name: headers[name] for name in _PASSED_ON if name in headers}
        return client.post(
            self._url + api.path,
            data=body,
            headers={**passed, **self._credentials(api), "content-type": "application/json"},
            allow_redirects=False,
        )

    def _credentials(self, api: Api) -> dict[str, str]:
        if self._key is None:
            return {}
        return (
            {"x-api-key": self._key} if api.name == "messages" else {"authorization": f"Bearer {self._key}"}
        )


def open_client() -> aiohttp.ClientSession:
    """The connections of one gateway: no proxies or credentials of the environment, no cookies, no limit of its own."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=_SILENCE_S),
        skip_auto_headers=("User-Agent",),
        read_bufsize=1 << 18,
    )
