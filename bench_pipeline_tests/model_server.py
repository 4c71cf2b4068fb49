"""A scripted model server for tests: the three APIs, whole and streamed, and every way in which one misbehaves.

A script is a list of steps, taken one a request, the last one for ever. A step is a dictionary: ``text``, ``calls``
(name, arguments) and ``usage`` make an answer; ``status`` (with ``headers``, ``body``) an error; ``hang``, ``drop`` and
``cut`` no answer, a closed connection, a stream without its end; ``wait`` seconds come before any of them, and after
the first event of a stream the event ``until`` is waited for.
"""

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

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
        body = await request.json()
        asked = {"path": request.path, "headers": dict(request.headers), "body": body}
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
        kind = request.path.rpartition("/")[2]
        if not body.get("stream"):
            return web.json_response(_whole(kind, body, step))
        stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await stream.prepare(request)
        events = list(_events(kind, body, step))
        for name, data in events[: len(events) // 2] if step.get("cut") else events:
            head = f"event: {name}\n" if name else ""
            text = data if isinstance(data, str) else json.dumps(data)
            await stream.write(f"{head}data: {text}\n\n".encode())
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
    loop = asyncio.new_event_loop()
    ready = threading.Event()

    async def start() -> web.AppRunner:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/{path:.*}", server.handle)
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
        await site.start()
        server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        return runner

    def serve() -> None:
        runner = loop.run_until_complete(start())
        ready.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=serve, name="model server")
    thread.start()
    assert ready.wait(30)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def _use(step: Step) -> dict[str, int]:
    return {**USAGE, **step.get("usage", {})}


def _chat_usage(step: Step) -> dict[str, Any]:
    use = _use(step)
    prompt = use["input"] + use["cache_read"] + use["cache_write"]
    return {
        "prompt_tokens": prompt,
        "completion_tokens": use["output"],
        "total_tokens": prompt + use["output"],
        "prompt_tokens_details": {
            "cached_tokens": use["cache_read"],
            "cache_write_tokens": use["cache_write"],
        },
        "completion_tokens_details": {"reasoning_tokens": use["reasoning"]},
    }


def _responses_usage(step: Step) -> dict[str, Any]:
    use = _use(step)
    return {
        "input_tokens": use["input"] + use["cache_read"] + use["cache_write"],
        "input_tokens_details": {
            "cached_tokens": use["cache_read"],
            "cache_write_tokens": use["cache_write"],
        },
        "output_tokens": use["output"],
        "output_tokens_details": {"reasoning_tokens": use["reasoning"]},
        "total_tokens": use["input"] + use["cache_read"] + use["cache_write"] + use["output"],
    }


def _messages_usage(step: Step) -> dict[str, Any]:
    use = _use(step)
    return {
        "input_tokens": use["input"],
        "cache_read_input_tokens": use["cache_read"],
        "cache_creation_input_tokens": use["cache_write"],
        "output_tokens": use["output"],
    }


def _calls(step: Step) -> list[tuple[str, str, str]]:
    return [
        (f"call-{step['number']}-{number}", name, json.dumps(arguments))
        for number, (name, arguments) in enumerate(step.get("calls", ()))
    ]


def _whole(kind: str, body: Mapping[str, Any], step: Step) -> dict[str, Any]:
    text, model = step.get("text"), body["model"]
    if kind == "completions":
        calls = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id_, name, arguments in _calls(step)
        ]
        message = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        answer = {
            "id": f"chat-{step['number']}",
            "object": "chat.completion",
            "created": 1,
            "model": model,
            "choices": [choice],
        }
        return answer if step.get("silent") else {**answer, "usage": _chat_usage(step)}
    if kind == "responses":
        return _response(model, step, "completed")
    if kind == "count_tokens":
        return {"input_tokens": 7}
    content = [{"type": "text", "text": text}] if text else []
    content += [
        {"type": "tool_use", "id": id_, "name": name, "input": json.loads(arguments)}
        for id_, name, arguments in _calls(step)
    ]
    return {
        "id": f"msg-{step['number']}", "type": "message", "role": "assistant", "model": model, "content": content,
        "stop_reason": "tool_use" if step.get("calls") else "end_turn", "usage": _messages_usage(step),
    }  # fmt: skip


def _response(model: str, step: Step, status: str) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if step.get("text"):
        content = [{"type": "output_text", "text": step["text"], "annotations": []}]
        output.append(
            {
                "type": "message",
                "id": f"m{step['number']}",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        )
    output += [
        {"type": "function_call", "id": f"f{id_}", "call_id": id_, "name": name, "arguments": arguments}
        for id_, name, arguments in _calls(step)
    ]
    return {
        "id": f"resp-{step['number']}", "object": "response", "created_at": 1, "status": status,
        "model": model, "error": None, "output": output, "usage": _responses_usage(step),
    }  # fmt: skip


def _events(kind: str, body: Mapping[str, Any], step: Step) -> Iterator[tuple[str | None, Any]]:
    whole = _whole(kind, body, step)
    if kind == "completions":
        base = {name: whole[name] for name in ("id", "created", "model")} | {
            "object": "chat.completion.chunk"
        }
        message = whole["choices"][0]["message"]
        calls = [{**call, "index": number} for number, call in enumerate(message.get("tool_calls", []))]
        for delta in ({"role": "assistant", "content": message["content"] or ""}, {"tool_calls": calls}):
            yield None, {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        finish = {"index": 0, "delta": {}, "finish_reason": whole["choices"][0]["finish_reason"]}
        yield None, {**base, "choices": [finish]}
        if (body.get("stream_options") or {}).get("include_usage") and not step.get("silent"):
            yield None, {**base, "choices": [], "usage": whole["usage"]}
        yield None, "[DONE]"
    elif kind == "responses":
        start = {**whole, "status": "in_progress", "output": [], "usage": None}
        yield "response.created", {"type": "response.created", "response": start}
        for number, item in enumerate(whole["output"]):
            for event in ("added", "done"):
                name = f"response.output_item.{event}"
                yield name, {"type": name, "output_index": number, "item": item}
        yield "response.completed", {"type": "response.completed", "response": whole}
    else:
        start = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
        yield "message_start", {"type": "message_start", "message": start}
        for number, block in enumerate(whole["content"]):
            yield from _block(number, block)
        usage = {"output_tokens": whole["usage"]["output_tokens"]}
        delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield "message_delta", {"type": "message_delta", "delta": delta, "usage": usage}
        yield "message_stop", {"type": "message_stop"}


def _block(number: int, block: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    if block["type"] == "text":
        start: dict[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": block["text"]}
    else:
        start = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield "content_block_start", {"type": "content_block_start", "index": number, "content_block": start}
    yield "content_block_delta", {"type": "content_block_delta", "index": number, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": number}
