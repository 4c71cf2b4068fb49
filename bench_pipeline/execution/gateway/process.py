"""The gateway's process: it takes cells over a socket from the run that started it, and ends with that run.

What belongs here: the process, its control socket and its sockets for cells. What does not: what a cell may ask
(``door``). ``python -m bench_pipeline.execution.gateway.process FD``: the first message on the socket FD says what is
served; each later one opens a cell's door, with two descriptors: the cell's line, and the socket on which its agent
knocks. When the run ends, the socket does, and the gateway with it.
"""

import asyncio
import contextlib
import gc
import json
import logging
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import uvloop
from aiohttp import web

from bench_pipeline.execution.gateway.accounts import Account, Caps, Till
from bench_pipeline.execution.gateway.conversations import Conversations
from bench_pipeline.execution.gateway.door import MAX_BODY, Door, ModelRoute
from bench_pipeline.execution.gateway.ledger import LedgerFile
from bench_pipeline.execution.gateway.masking import Masks
from bench_pipeline.execution.gateway.recordings import RecordingFile, unpack
from bench_pipeline.execution.gateway.replaying import Replay
from bench_pipeline.execution.gateway.upstreams import Upstream, open_client
from bench_pipeline.execution.redaction import Redactor
from bench_pipeline.registry.pricing import ModelPrice

MAX_MESSAGE = 1 << 17
# What an answer may take whose agent is gone; a cell's end waits for it.
DRAIN_S = 30.0
_GARBAGE = 20_000
OPEN, END, DONE = b"o", b"e", b"d"


class GatewayProcess:
    """What one gateway serves: upstreams and the run's account, which all cells share."""

    def __init__(self, settings: dict[str, Any]) -> None:
        keys = {
            each["key_env"]: os.environ.get(each["key_env"], "").strip()
            for each in settings["upstreams"].values()
            if each["key_env"]
        }
        self._upstreams = {
            name: Upstream(
                name,
                each["base_url"],
                keys.get(each["key_env"]) or None,
                concurrency=each["concurrency"],
                requests_per_minute=each["requests_per_minute"],
            )
            for name, each in settings["upstreams"].items()
        }
        self._redactor = Redactor({name: key for name, key in keys.items() if key})
        self._run = Account("run", Caps.from_document(settings["caps"]))
        self._cells: dict[str, tuple[Account, Conversations]] = {}
        self._till = Till()
        self._first_wait_s = float(settings["first_wait_s"])
        self._client = open_client()
        self._serving: set[asyncio.Task[None]] = set()

    def open(self, cell: dict[str, Any], line: socket.socket, listener: socket.socket) -> None:
        """Serve one cell until its line ends."""
        task = asyncio.create_task(self._serve(cell, line, listener))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def close(self) -> None:
        """End every cell; what is under way is given up."""
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._client.close()

    async def _serve(self, cell: dict[str, Any], line: socket.socket, listener: socket.socket) -> None:
        """Open a cell's door, and close it when its line says so or ends."""
        loop = asyncio.get_running_loop()
        line.setblocking(False)
        with contextlib.ExitStack() as open_files:
            ledger = open_files.enter_context(contextlib.closing(LedgerFile(Path(cell["ledger"]))))
            for each in (line, listener):
                open_files.enter_context(each)
            door = self._door(cell, ledger)
            if cell["recording"] is not None:
                door.recording = RecordingFile(Path(cell["recording"]))
                open_files.callback(door.recording.close)
            if cell["replay"] is not None:
                door.replay = await asyncio.to_thread(_replay_of, cell["replay"])
            app = web.Application(client_max_size=MAX_BODY)
            app.router.add_route("*", "/{path:.*}", door.handle)
            runner = web.AppRunner(app, handle_signals=False, access_log=None, shutdown_timeout=0.0)
            try:
                await runner.setup()
                site = web.SockSite(runner, listener)
                await site.start()
                await loop.sock_sendall(line, OPEN)
                await loop.sock_recv(line, 1)
                # A cell that has ended asks for nothing more; what it asked for is still counted.
                await site.stop()
                await door.drain(DRAIN_S)
            finally:
                await runner.cleanup()
            unasked = door.replay.unasked() if door.replay is not None else None
            if unasked is not None:
                ledger.append({"event": "unasked", "why": unasked})
            with contextlib.suppress(ConnectionError):
                await loop.sock_sendall(line, DONE)

    def _door(self, cell: dict[str, Any], ledger: LedgerFile) -> Door:
        account, conversations = self._cells.setdefault(
            cell["cell"], (Account("cell", Caps.from_document(cell["caps"])), Conversations())
        )
        return Door(
            token=cell["token"],
            apis=tuple(cell["apis"]),
            models={model: self._route(route) for model, route in cell["models"].items()},
            accounts=(account, self._run),
            till=self._till,
            ledger=ledger,
            client=self._client,
            redactor=self._redactor,
            conversations=conversations,
            first_wait_s=self._first_wait_s,
        )

    def _route(self, route: dict[str, Any] | None) -> ModelRoute:
        if route is None:
            return ModelRoute(_NOBODY, None)
        price = None if route["price"] is None else ModelPrice.from_document(route["price"])
        return ModelRoute(self._upstreams[route["upstream"]], price)


# The upstream of a replay, which is never asked.
_NOBODY = Upstream("recording", "", None, concurrency=1)


def _replay_of(document: dict[str, Any]) -> Replay:
    packed = Path(document["packed"]).read_bytes()
    recorded, now = (Masks.from_document(document[name]) for name in ("recorded", "now"))
    return Replay(lambda: unpack(packed)[1], recorded, now)


async def serve(control: socket.socket) -> None:
    """Take cells from ``control`` until it ends."""
    control.setblocking(False)
    loop = asyncio.get_running_loop()
    gateway: GatewayProcess | None = None
    while True:
        message, descriptors = await _receive(loop, control)
        if not message:
            break
        document = json.loads(message)
        if gateway is None:
            gateway = GatewayProcess(document)
            await loop.sock_sendall(control, OPEN)
        else:
            line, listener = (socket.socket(fileno=descriptor) for descriptor in descriptors)
            gateway.open(document, line, listener)
    if gateway is not None:
        await gateway.close()


async def _receive(loop: asyncio.AbstractEventLoop, control: socket.socket) -> tuple[bytes, list[int]]:
    """The next message with its descriptors; an empty one when the other side is gone."""
    arrived = asyncio.Event()
    loop.add_reader(control, arrived.set)
    try:
        await arrived.wait()
        message, descriptors, _, _ = socket.recv_fds(control, MAX_MESSAGE, 2)
    except ConnectionError:
        return b"", []
    finally:
        loop.remove_reader(control)
    return message, descriptors


def main() -> None:
    """Serve until the run that started this process ends."""
    # Ctrl-C of a terminal is the run's to answer: its cells end first.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A library's log may quote a request.
    logging.disable()
    # Modules are no garbage, and requests leave little of it: to look after each 700 objects takes a tenth of the time.
    gc.freeze()
    gc.set_threshold(_GARBAGE)
    uvloop.run(serve(socket.socket(fileno=int(sys.argv[1]))))


if __name__ == "__main__":
    main()
