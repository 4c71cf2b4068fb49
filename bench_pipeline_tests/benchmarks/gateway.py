"""Calls through the gateway against the same calls without it: an upstream of 50 ms, 100 under way, everything counted.

Server and client are as bare as HTTP allows, so that the difference is the gateway's. One call at a time shows what it
adds to each; memory is that of its process after a tenth of the calls and after all.
"""

import asyncio
import json
import statistics
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import urlsplit

from bench_pipeline.execution.gateway import Gateway, Route, Session, UpstreamSettings
from bench_pipeline_tests.benchmarks import Row, server_process

DELAY_S, UNDER_WAY, CALLS = 0.05, 100, 10_000
_PATH = "/v1/chat/completions"
_BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * 4000}]}).encode()
_USAGE = {"prompt_tokens": 1000, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 900}}
_ANSWER = json.dumps({"id": "c", "choices": [{"message": {"content": "y" * 400}}], "usage": _USAGE}).encode()


@dataclass
class _Host:
    """A sandbox without a network of its own."""

    name: str = "process"
    isolates: bool = False
    loopback: str = "host"


def measure() -> Iterator[Row]:
    with server_process(_serve) as port:
        url = f"http://127.0.0.1:{port}"
        settings = UpstreamSettings(f"{url}/v1", None, 2 * UNDER_WAY, None)
        with (
            Gateway({"up": settings}, {"m": Route("up", None)}) as gateway,
            gateway.session(
                ["chat-completions"], "m", _Host(), cell="c", cancel=threading.Event()
            ) as session,
        ):  # type: ignore[arg-type]
            yield from _rows(url, session, gateway)


def _rows(url: str, session: Session, gateway: Gateway) -> Iterator[Row]:
    bare, through = _seconds(url, "", CALLS), _seconds(session.url, session.key, CALLS // 10)
    before = _memory(gateway)
    through = min(_seconds(session.url, session.key, CALLS) for _ in range(2))
    after = _memory(gateway)
    yield Row(f"{CALLS} calls of 50 ms, {UNDER_WAY} under way", through, bare, 1 / 0.85)
    alone, passed = _median(url, ""), _median(session.url, session.key)
    yield Row("one call of 50 ms: at most 2 ms more in the median", passed, alone, (alone + 0.002) / alone)
    yield Row(f"MiB of its process after {2 * CALLS} calls and after {CALLS // 10}", after, before, 1.1)


def _seconds(url: str, key: str, calls: int) -> float:
    async def run() -> float:
        share = calls // UNDER_WAY
        started = time.perf_counter()
        await asyncio.gather(*(_calls(url, key, share) for _ in range(UNDER_WAY)))
        return time.perf_counter() - started

    return asyncio.run(run())


def _median(url: str, key: str) -> float:
    return statistics.median(asyncio.run(_calls(url, key, 40)))


async def _calls(url: str, key: str, number: int) -> list[float]:
    """The seconds of each of some calls over one connection."""
    where = urlsplit(url)
    head = (
        f"POST {_PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(_BODY)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    took = []
    for _ in range(number):
        started = time.perf_counter()
        writer.write(head.encode() + _BODY)
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200"), answer
        length = answer.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
        await reader.readexactly(int(length))
        took.append(time.perf_counter() - started)
    writer.close()
    await writer.wait_closed()
    return took


def _memory(gateway: Gateway) -> float:
    status = Path(f"/proc/{gateway.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def _serve(told: Connection) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(_ANSWER)}\r\n\r\n".encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                asked = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                writer.close()
                return
            length = asked.lower().partition(b"content-length:")[2].split(b"\r\n")[0]
            await reader.readexactly(int(length))
            await asyncio.sleep(DELAY_S)
            writer.write(head + _ANSWER)

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
        told.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())
