"""A scripted model server for tests: the three APIs, whole and streamed, and every way in which one misbehaves.

A script is a list of steps, taken one a request, the last one for ever. A step is a dictionary: ``text``, ``calls``
(name, arguments) and ``usage`` make an answer; ``status`` (with ``headers``, ``body``) an error; ``hang``, ``drop`` and
``cut`` no answer, a closed connection, a stream without its end; ``wait`` seconds come before any of them, and after
the first event of a stream the event ``until`` is waited for.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from bench_pipeline.execution.gateway.scripted import Turn, event_text, events, send, serving, whole
from bench_pipeline.registry.tokens import TokenCounts

Step = Mapping[str, Any]
USAGE = {"input": 1000, "cache_read": 200, "cache_write": 30, "output": 40, "reasoning": 5}


@dataclass
class ModelServer:
    """What a server was told to do, and what it was asked."""

    steps: Sequence[Step]
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    side: Step | None = None
    at_once: int = 0
    most_at_once: int = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        body = json.loads(raw)
        asked = {"path": request.path, "headers": dict(request.headers), "body": body, "raw": raw}
        step = {**self._next(body), "number": len(self.requests)}
        self.requests.append(asked)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self._answer(request, body, step)
        finally:
            self.at_once -= 1

    def _next(self, body: dict[str, Any]) -> Step:
        if self.side is not None and not body.get("tools"):
            return self.side
        before = sum(self.side is None or bool(each["body"].get("tools")) for each in self.requests)
        return self.steps[min(before, len(self.steps) - 1)]

    async def _answer(self, request: web.Request, body: dict[str, Any], step: Step) -> web.StreamResponse:
        await asyncio.sleep(step.get("wait", 0))
        if step.get("hang"):
            await asyncio.Event().wait()
        if step.get("drop"):
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        if "status" in step:
            text = step.get("body", json.dumps({"error": {"type": "error", "message": "as scripted"}}))
            return web.Response(status=step["status"], text=text, headers=step.get("headers", {}))
        turn = _turn(body, step)
        if step.get("silent"):
            return web.json_response({**whole(request.path, turn), "usage": None})
        if not ("cut" in step or "until" in step):
            return await send(request, body, turn)
        stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await stream.prepare(request)
        parts = [event_text(*event) for event in events(request.path, turn, body)]
        for part in parts[: len(parts) // 2] if step.get("cut") else parts:
            await stream.write(part)
            if "until" in step:
                await asyncio.to_thread(step["until"].wait, 60)
        if step.get("cut"):
            assert request.transport is not None
            request.transport.close()
        return stream


@contextmanager
def model_server(*steps: Step, side: Step | None = None) -> Iterator[ModelServer]:
    """A server on this machine for the length of the block; ``side`` answers requests that offer no tools."""
    server = ModelServer(steps or ({"text": "done"},), side=side)
    with serving(server.handle) as server.url:
        yield server


def _turn(body: dict[str, Any], step: Step) -> Turn:
    use = {**USAGE, **step.get("usage", {})}
    tokens = TokenCounts(use["input"], use["cache_read"], use["cache_write"], use["output"])
    text, calls = step.get("text", ""), step.get("calls", ())
    return Turn(body["model"], step["number"], text, calls, tokens, use["reasoning"])
