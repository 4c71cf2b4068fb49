"""One chat completion: a request, and either an answer or the one reason why there is none.

What belongs here: the shape of requests and responses, and the names of failures. What does not: trying again. A
failure is told in our own words, never in the server's: what it sends may hold anything. See
https://platform.openai.com/docs/api-reference/chat.
"""

import http.client
import json
import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NoReturn, Self

from bench_pipeline.documents.jsonl import RejectedJsonError, decode_json
from bench_pipeline.providers.endpoint import Endpoint, Key

if TYPE_CHECKING:
    # Loaded by who asks: it takes longer than anything else that a recording needs.
    import httpx

# Of a response, after decompression: longer than any answer that max_tokens allows.
MAX_BODY = 1 << 20
_LARGEST = 2**63 - 1

FailureKind = Literal[
    "rate_limited",  # 429
    "unauthorised",  # 401, 403
    "server_error",  # 5xx
    "status",  # any other that is not 2xx
    "redirect",  # 3xx: not followed, for the key would go along
    "timeout",  # no answer within the time for the call
    "connection",  # refused, reset, cut off, or not HTTP
    "too_large",  # more than MAX_BODY
    "encoding",  # compressed in a way that was not read to its end
    "not_json",  # not one JSON value
    "shape",  # JSON of another shape
    "no_content",  # the model gave no text: content is null
    "over_cap",  # not sent: the call could exceed a cap on spending
]


class ChatFailure(Exception):  # noqa: N818
    """Why a call gave no answer. ``retry_after_s`` is how long the server asked to wait, None if it did not."""

    def __init__(self, kind: FailureKind, text: str, retry_after_s: float | None = None) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind: FailureKind = kind
        self.retry_after_s = retry_after_s


@dataclass(frozen=True)
class ChatAnswer:
    """The text of the one choice, and the tokens that the server says it took."""

    content: str
    tokens_input: int | None = None
    tokens_output: int | None = None


class ChatClient:
    """Asks one model at one endpoint; threads may share it. Use it in a ``with`` block."""

    def __init__(
        self, endpoint: Endpoint, model: str, key: Key | None, *, temperature: float, max_tokens: int
    ) -> None:
        import httpx

        from bench_pipeline.providers.transport import Connections

        self._key = key
        self._settings = {"temperature": temperature, "max_tokens": max_tokens}
        self._model = model
        self._url = httpx.URL(endpoint.url)
        self._transport = Connections(endpoint)
        headers = {
            "host": self._url.netloc.decode("ascii"),
            "content-type": "application/json",
            "accept": "application/json",
            "accept-encoding": "identity",
            "user-agent": "bench-pipeline",
        }
        self._headers = httpx.Headers(headers if key is None else {**headers, "authorization": key.header()})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._transport.close()

    def interrupt(self) -> None:
        """Make the calls fail that other threads have in flight."""
        self._transport.interrupt()

    def ask(self, prompt: str, seconds: float) -> ChatAnswer:
        """Send one user message and wait at most ``seconds`` for the answer. Exactly one request is sent.

        Raises:
            ChatFailure: there is no answer.
        """
        import httpx

        from bench_pipeline.providers.transport import ENDS_AT

        document = {"model": self._model, "messages": [{"role": "user", "content": prompt}], **self._settings}
        request = httpx.Request(
            "POST",
            self._url,
            headers=self._headers,
            content=json.dumps(document).encode(),
            extensions={ENDS_AT: time.monotonic() + seconds},
        )
        try:
            response = self._transport.handle_request(request)
            try:
                _check_status(response)
                body = _body(response)
            finally:
                response.close()
        except TimeoutError:
            raise ChatFailure("timeout", f"no answer within {seconds:.3g}s") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            # The text of the error may quote what was sent or what came.
            raise ChatFailure("connection", type(error).__name__) from None
        answer = read_answer(body)
        return answer if self._key is None else _without(self._key, answer)


def _without(key: Key, answer: ChatAnswer) -> ChatAnswer:
    return ChatAnswer(key.removed(answer.content), answer.tokens_input, answer.tokens_output)


def _check_status(response: "httpx.Response") -> None:
    status = response.status_code
    if 200 <= status < 300:
        return
    kinds: dict[int, FailureKind] = {429: "rate_limited", 401: "unauthorised", 403: "unauthorised"}
    classes: dict[int, FailureKind] = {3: "redirect", 5: "server_error"}
    kind = kinds.get(status) or classes.get(status // 100, "status")
    raise ChatFailure(kind, f"status {status}", retry_after(response.headers.get("retry-after")))


def retry_after(header: str | None, now: datetime | None = None) -> float | None:
    """The seconds that a Retry-After header asks to wait: 0 for a date in the past, None for none or nonsense."""
    if header is None:
        return None
    if header.strip().isascii() and header.strip().isdigit():
        return float(min(int(header[:20]), 10**9))
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())


def _body(response: "httpx.Response") -> bytes:
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    chunks = response.iter_raw()
    if encoding in {"", "identity"}:
        return _bounded(chunks)
    # 32 more than the window tells zlib to recognise either header.
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise ChatFailure("encoding", "compressed in an unknown way")
    return _decompressed(chunks)


def _bounded(chunks: Iterable[bytes]) -> bytes:
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > MAX_BODY:
            _refuse_size()
    return bytes(body)


def _decompressed(chunks: Iterable[bytes]) -> bytes:
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
    body = bytearray()
    try:
        for chunk in chunks:
            body += inflate.decompress(chunk, MAX_BODY + 1 - len(body))
            if len(body) > MAX_BODY:
                _refuse_size()
    except zlib.error:
        raise ChatFailure("encoding", "not compressed as its header says") from None
    if not inflate.eof or inflate.unused_data:
        raise ChatFailure("encoding", "not compressed as its header says")
    return bytes(body)


def _refuse_size() -> NoReturn:
    raise ChatFailure("too_large", f"the response has more than {MAX_BODY} bytes")


def read_answer(body: bytes) -> ChatAnswer:
    """The answer in a response's body; raises ChatFailure."""
    try:
        value = decode_json(body.decode())
    except (UnicodeDecodeError, RejectedJsonError):
        raise ChatFailure("not_json", "the response is not one JSON value") from None
    if not isinstance(value, dict):
        raise ChatFailure("shape", "the response is not an object")
    choices = value.get("choices")
    if not isinstance(choices, list) or len(choices) != 1:
        found = f"{len(choices)} choices" if isinstance(choices, list) else "no list of choices"
        raise ChatFailure("shape", f"expected exactly one choice, found {found}")
    message = choices[0].get("message") if isinstance(choices[0], dict) else None
    if not isinstance(message, dict) or "content" not in message:
        raise ChatFailure("shape", "the choice has no message with a content")
    content = message["content"]
    if content is None:
        raise ChatFailure("no_content", "the content is null")
    if not isinstance(content, str):
        raise ChatFailure("shape", "the content is not text")
    usage = value.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    return ChatAnswer(content, _count(counts.get("prompt_tokens")), _count(counts.get("completion_tokens")))


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= _LARGEST else None
