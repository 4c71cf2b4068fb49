"""A model that says what it is told to: answers in the words of the three APIs, and a server that gives them.

What belongs here: how an answer is written, whole and streamed, and serving answers on this machine, so that an agent
can be tried without a model. What does not: what the answers are for (``pipeline.tool_check``).
"""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from bench_pipeline.registry.tokens import TokenCounts

Document = dict[str, Any]
_START_S = 60.0


@dataclass(frozen=True)
class Turn:
    """One answer: its text, the tools that it calls (name, arguments), and the tokens that it says it took.

    ``number`` makes its identifiers differ from those of other answers.
    """

    model: str
    number: int
    text: str = ""
    calls: Sequence[tuple[str, Mapping[str, object]]] = ()
    tokens: TokenCounts = field(default_factory=lambda: TokenCounts(1000, 200, 30, 40))
    reasoning: int = 5

    def named_calls(self) -> list[tuple[str, str, str]]:
        """The calls with an identifier each, and their arguments as text."""
        return [
            (f"call-{self.number}-{place}", name, json.dumps(arguments))
            for place, (name, arguments) in enumerate(self.calls)
        ]

    @property
    def prompt_tokens(self) -> int:
        """All tokens of the input."""
        tokens = self.tokens
        return (tokens.input or 0) + (tokens.cache_read or 0) + (tokens.cache_write or 0)


def whole(path: str, turn: Turn) -> Document:
    """The answer as one document, for the API at ``path``."""
    kind = path.rpartition("/")[2]
    if kind == "count_tokens":
        return {"input_tokens": turn.prompt_tokens}
    return {"completions": _chat, "responses": _response, "messages": _message}[kind](turn)


def events(path: str, turn: Turn, body: Mapping[str, Any]) -> Iterator[tuple[str | None, object]]:
    """The answer to ``body`` as the names and data of server-sent events."""
    kind = path.rpartition("/")[2]
    answer = whole(path, turn)
    if kind == "completions":
        options = body.get("stream_options") or {}
        yield from _chat_events(answer, with_use=bool(options.get("include_usage")))
    elif kind == "responses":
        yield from _response_events(answer)
    else:
        yield from _message_events(answer)


def event_text(name: str | None, data: object) -> bytes:
    """One server-sent event as it is sent."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def _chat(turn: Turn) -> Document:
    calls = [
        {"id": each, "type": "function", "function": {"name": name, "arguments": arguments}}
        for each, name, arguments in turn.named_calls()
    ]
    message = {"role": "assistant", "content": turn.text or None, **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    tokens = turn.tokens
    usage = {
        "prompt_tokens": turn.prompt_tokens,
        "completion_tokens": tokens.output,
        "total_tokens": turn.prompt_tokens + (tokens.output or 0),
        "prompt_tokens_details": {
            "cached_tokens": tokens.cache_read,
            "cache_write_tokens": tokens.cache_write,
        },
        "completion_tokens_details": {"reasoning_tokens": turn.reasoning},
    }
    return {
        "id": f"chat-{turn.number}", "object": "chat.completion", "created": 1, "model": turn.model,
        "choices": [choice], "usage": usage,
    }  # fmt: skip


def _chat_events(answer: Document, *, with_use: bool) -> Iterator[tuple[str | None, object]]:
    base = {name: answer[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    (choice,) = answer["choices"]
    message = choice["message"]
    calls = [{**call, "index": place} for place, call in enumerate(message.get("tool_calls", []))]
    for delta in ({"role": "assistant", "content": message["content"] or ""}, {"tool_calls": calls}):
        yield None, {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    finish = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    yield None, {**base, "choices": [finish]}
    if with_use and "usage" in answer:
        yield None, {**base, "choices": [], "usage": answer["usage"]}
    yield None, "[DONE]"


def _response(turn: Turn) -> Document:
    output: list[Document] = []
    if turn.text:
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        said = {"type": "message", "id": f"m{turn.number}", "role": "assistant", "status": "completed"}
        output.append({**said, "content": content})
    output += [
        {"type": "function_call", "id": f"f{each}", "call_id": each, "name": name, "arguments": arguments}
        for each, name, arguments in turn.named_calls()
    ]
    tokens = turn.tokens
    usage = {
        "input_tokens": turn.prompt_tokens,
        "input_tokens_details": {
            "cached_tokens": tokens.cache_read,
            "cache_write_tokens": tokens.cache_write,
        },
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": turn.reasoning},
        "total_tokens": turn.prompt_tokens + (tokens.output or 0),
    }
    return {
        "id": f"resp-{turn.number}", "object": "response", "created_at": 1, "status": "completed",
        "model": turn.model, "error": None, "output": output, "usage": usage,
    }  # fmt: skip


def _response_events(answer: Document) -> Iterator[tuple[str | None, object]]:
    start = {**answer, "status": "in_progress", "output": [], "usage": None}
    yield "response.created", {"type": "response.created", "response": start}
    for place, item in enumerate(answer["output"]):
        for name in ("response.output_item.added", "response.output_item.done"):
            yield name, {"type": name, "output_index": place, "item": item}
    yield "response.completed", {"type": "response.completed", "response": answer}


def _message(turn: Turn) -> Document:
    content: list[Document] = [{"type": "text", "text": turn.text}] if turn.text else []
    content += [
        {"type": "tool_use", "id": each, "name": name, "input": json.loads(arguments)}
        for each, name, arguments in turn.named_calls()
    ]
    tokens = turn.tokens
    usage = {
        "input_tokens": tokens.input,
        "cache_read_input_tokens": tokens.cache_read,
        "cache_creation_input_tokens": tokens.cache_write,
        "output_tokens": tokens.output,
    }
    return {
        "id": f"msg-{turn.number}", "type": "message", "role": "assistant", "model": turn.model,
        "content": content, "stop_reason": "tool_use" if turn.calls else "end_turn", "usage": usage,
    }  # fmt: skip


def _message_events(answer: Document) -> Iterator[tuple[str | None, object]]:
    start = {**answer, "content": [], "stop_reason": None, "usage": {**answer["usage"], "output_tokens": 1}}
    yield "message_start", {"type": "message_start", "message": start}
    for place, block in enumerate(answer["content"]):
        if block["type"] == "text":
            opening: Document = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            opening = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield "content_block_start", {"type": "content_block_start", "index": place, "content_block": opening}
        yield "content_block_delta", {"type": "content_block_delta", "index": place, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": place}
    delta = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": answer["usage"]["output_tokens"]}
    yield "message_delta", {"type": "message_delta", "delta": delta, "usage": usage}
    yield "message_stop", {"type": "message_stop"}


@contextmanager
def serving(handle: Callable[[web.Request], Any]) -> Iterator[str]:
    """A server of this machine for the length of the block, as the base URL of an upstream; its loop is a thread's."""
    loop, ready = asyncio.new_event_loop(), threading.Event()
    url: list[str] = []

    async def start() -> web.AppRunner:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/{path:.*}", handle)
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
        url.append(f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
        return runner

    def serve() -> None:
        runner = loop.run_until_complete(start())
        ready.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())
        loop.close()

    thread = threading.Thread(target=serve, name="scripted model")
    thread.start()
    ready.wait(_START_S)
    try:
        yield url[0]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def send(request: web.Request, body: Mapping[str, Any], turn: Turn) -> web.StreamResponse:
    """Answer a request with ``turn``, streamed where that was asked for."""
    if not body.get("stream"):
        return web.json_response(whole(request.path, turn))
    stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await stream.prepare(request)
    for name, data in events(request.path, turn, body):
        await stream.write(event_text(name, data))
    return stream
