"""Calls through the gateway against the same calls without it: an upstream of 50 ms, 100 under way, everything counted.

Server and client are as bare as HTTP allows, so that the difference is the gateway's; both ways are measured in turns.
One call at a time shows what the gateway adds to an answer and to the first event of a stream. Its processor time says,
on a busy machine too, whether one core keeps up. Memory is its process's, after a tenth of the calls and after all.
"""

import asyncio
import json
import os
import statistics
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import cast
from urllib.parse import urlsplit

import psutil
import uvloop

from bench_pipeline.execution.gateway import Gateway, Route, Session, UpstreamSettings
from bench_pipeline_tests.benchmarks import Row, server_process

DELAY_S, UNDER_WAY, ROUND, ROUNDS, CALLS = 0.05, 100, 2_000, 5, 100_000
_KEEPS = 0.85
_PATH = "/v1/chat/completions"
_BODY = {"model": "m", "messages": [{"role": "user", "content": "x" * 4000}]}
_USAGE = {"prompt_tokens": 1000, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 900}}
_ANSWER = {"id": "c", "choices": [{"message": {"content": "y" * 400}}], "usage": _USAGE}
_EVENT = {"id": "c", "choices": [{"index": 0, "delta": {"content": "y" * 20}}]}
_VARIABLE = "BENCHMARK_GATEWAY_KEY"


@dataclass
class _Host:
    """A sandbox without a network of its own."""

    name: str = "process"
    isolates: bool = False
    loopback: str = "host"


def measure() -> Iterator[Row]:
    os.environ[_VARIABLE] = "sk-benchmark-0123456789-abcdefghij"
    with server_process(_serve) as port:
        url = f"http://127.0.0.1:{port}"
        settings = UpstreamSettings(f"{url}/v1", _VARIABLE, 2 * UNDER_WAY, None)
        with (
            Gateway({"up": settings}, {"m": Route("up", None)}) as gateway,
            gateway.session(
                ["chat-completions"], "m", _Host(), cell="c", cancel=threading.Event(), record=lambda _: b""
            ) as session,
        ):  # type: ignore[arg-type]
            yield from _rows(url, session, gateway)


def _rows(url: str, session: Session, gateway: Gateway) -> Iterator[Row]:
    gateway_process = psutil.Process(gateway.pid)
    _seconds(session.url, session.key)
    bare, through, processor = [], [], []
    for _ in range(ROUNDS):
        bare.append(_seconds(url, ""))
        before = gateway_process.cpu_times()
        through.append(_seconds(session.url, session.key))
        after = gateway_process.cpu_times()
        processor.append((after.user + after.system - before.user - before.system) / ROUND)
    name = f"{ROUND} calls of 50 ms, {UNDER_WAY} under way"
    yield Row(name, statistics.median(through), statistics.median(bare), 1 / _KEEPS)
    share = DELAY_S / UNDER_WAY / _KEEPS
    yield Row(f"seconds of its processor a call; a core has 1/{1 / share:.0f}", min(processor), share, 1)
    passed, alone = _alone(url, session, stream=False)
    yield Row("one call of 50 ms: at most 2 ms more in the median", passed, alone, (alone + 0.002) / alone)
    passed, alone = _alone(url, session, stream=True)
    yield Row("first event after 50 ms: at most 5 ms later", passed, alone, (alone + 0.005) / alone)
    sizes = []
    for calls in (CALLS // 10, CALLS - CALLS // 10):
        for turn in range(calls // ROUND):
            _seconds(session.url, session.key, stream=turn % 2 == 1)
        sizes.append(gateway_process.memory_info().rss / 2**20)
    yield Row(f"MiB of its process after {CALLS} calls and after {CALLS // 10}", sizes[1], sizes[0], 1.02)


def _seconds(url: str, key: str, *, stream: bool = False) -> float:
    """How long a round of calls takes."""

    async def run() -> float:
        started = time.perf_counter()
        await asyncio.gather(*(_calls(url, key, ROUND // UNDER_WAY, stream=stream) for _ in range(UNDER_WAY)))
        return time.perf_counter() - started

    return uvloop.run(run())


def _alone(url: str, session: Session, *, stream: bool) -> tuple[float, float]:
    """The median seconds to the first event or the whole answer: through the gateway, and without it."""
    passed, alone = [], []
    for _ in range(10):
        passed += uvloop.run(_calls(session.url, session.key, 10, stream=stream))
        alone += uvloop.run(_calls(url, "", 10, stream=stream))
    return statistics.median(passed), statistics.median(alone)


class _Client(asyncio.Protocol):
    """Sends one request after the other, and notes when an answer, or the first event of one, was there."""

    def __init__(self, request: bytes, number: int, end: bytes, wanted: bytes) -> None:
        self._request, self._left, self._end, self._wanted = request, number, end, wanted
        self._seen = b""
        self._started = self._noted = 0.0
        self.took: list[float] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._seen += data
        if not self._noted and self._wanted in self._seen:
            self._noted = time.perf_counter()
        if not self._seen.endswith(self._end):
            return
        assert self._seen.startswith(b"HTTP/1.1 200"), self._seen
        self.took.append(self._noted - self._started)
        self._left -= 1
        if self._left:
            self._ask()
        else:
            self._transport.close()
            self.done.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionResetError())

    def _ask(self) -> None:
        self._seen, self._noted = b"", 0.0
        self._started = time.perf_counter()
        self._transport.write(self._request)


async def _calls(url: str, key: str, number: int, *, stream: bool) -> list[float]:
    """The seconds of each of some calls over one connection."""
    body = json.dumps({**_BODY, "stream": stream}).encode()
    head = (
        f"POST {_PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    end, wanted = (b"0\r\n\r\n", b"data:") if stream else (b"}", b"}")
    where = urlsplit(url)
    _, client = await asyncio.get_running_loop().create_connection(
        lambda: _Client(head + body, number, end, wanted), where.hostname, where.port
    )
    await client.done
    return client.took


class _Server(asyncio.Protocol):
    """Answers each request after the delay; a stream has ten events."""

    def __init__(self) -> None:
        self._seen = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._seen += data
        head, _, body = self._seen.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        if length and len(body) >= int(length):
            self._seen = b""
            streamed = b'"stream":true' in body or b'"stream": true' in body
            asyncio.get_running_loop().call_later(DELAY_S, self._answer, _STREAM if streamed else _WHOLE)

    def _answer(self, parts: tuple[bytes, ...]) -> None:
        for part in parts:
            self._transport.write(part)


def _chunk(data: object) -> bytes:
    text = f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n"
    return f"{len(text):x}\r\n{text}\r\n".encode()


_HEAD = "HTTP/1.1 200 OK\r\nContent-Type: {}\r\n{}\r\n\r\n"
_TEXT = json.dumps(_ANSWER)
_WHOLE = ((_HEAD.format("application/json", f"Content-Length: {len(_TEXT)}") + _TEXT).encode(),)
_STREAM = (
    _HEAD.format("text/event-stream", "Transfer-Encoding: chunked").encode(),
    *(_chunk(_EVENT) for _ in range(10)),
    _chunk({"choices": [], "usage": _USAGE}) + _chunk("[DONE]") + b"0\r\n\r\n",
)


def _serve(told: Connection) -> None:
    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(_Server, "127.0.0.1", 0, backlog=1024)
        told.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(run())
