"""The three model APIs, as far as a gateway has to understand them: chat completions, Responses, Messages.

What belongs here: where a request goes, what of it is refused, how long an answer may become, what an answer says of
its use, and how an error is worded so that the agent's client understands it and does not try again. What does not:
HTTP (``door``, ``upstreams``). Requests come from agents and answers from anybody: nothing in them is trusted to have
the right type. See https://platform.openai.com/docs/api-reference and https://docs.claude.com/en/api/messages.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from bench_pipeline.execution.usage.end import ErrorClass, error_class, is_context_limit
from bench_pipeline.execution.usage.reading import Object, count, items, json_value, mapping
from bench_pipeline.registry.documents import ModelApi
from bench_pipeline.registry.tokens import TokenCounts

# Tools that run where the agent does. All others (search, fetch, code and file services, remote MCP) let the
# provider reach out, to the network or to what the account has stored there.
_LOCAL_TOOLS = ("function", "custom", "local_shell", "apply_patch", "namespace", "tool_search")
_LOCAL_TOOL_PREFIXES = ("bash_", "text_editor_", "memory_", "computer_", "tool_search_")
_REACHING_FIELDS = {
    "chat-completions": ("web_search_options", "search_parameters", "plugins", "functions_url", "extra_body"),
    "responses": ("background", "conversation", "previous_response_id", "prompt"),
    "messages": ("mcp_servers", "container"),
}
# Every other tier has prices of its own.
_TIERS = (None, "auto", "default", "standard_only")
# Of an event: enough for its name.
_HEAD = 200
# Parts of a message whose text is an address that the provider would open.
_ADDRESSES = ("url", "image_url", "file_url", "file_id")


@dataclass(frozen=True)
class Use:
    """The tokens of one answer; ``reasoning`` is a part of the output, None where the API does not say."""

    tokens: TokenCounts
    reasoning: int | None = None

    @property
    def given(self) -> int:
        """All tokens of the input, cached ones included."""
        tokens = self.tokens
        return (tokens.input or 0) + (tokens.cache_read or 0) + (tokens.cache_write or 0)


@dataclass(frozen=True)
class Api:
    """One of the three.

    ``path`` is below the base URL; ``bounds`` are the fields that bound an answer's tokens, the first one is set where
    there is none; ``last`` are bytes of which the last event of a stream begins with one; ``messages`` is the field of
    the conversation; ``free``: it costs nothing.
    """

    name: ModelApi
    path: str
    bounds: tuple[str, ...]
    last: tuple[bytes, ...]
    use_in: Callable[[Object], Use | None]
    messages: str = "messages"
    free: bool = False

    def refusal(self, body: Object) -> str | None:
        """Why a request is not sent; None when it may be."""
        return next(_refusals(self.name, body), None)

    def bound(self, body: Object) -> int | None:
        """The most tokens that all answers to a request may have by its own account; None: it does not say."""
        found = [value for field in self.bounds if (value := count(body.get(field))) is not None]
        return max(found) * (count(body.get("n")) or 1) if found else None

    def error(self, kind: str, text: str) -> bytes:
        """An error in this API's words."""
        error = {"type": kind, "message": text}
        if self.name == "messages":
            return json.dumps({"type": "error", "error": error}).encode()
        return json.dumps({"error": {**error, "param": None, "code": kind}}).encode()


def api_at(path: str) -> Api | None:
    """The API that a path asks for, with or without its version."""
    return _BY_PATH.get(path.removeprefix("/v1"))


def failure_in(event: Object) -> tuple[ErrorClass, str] | None:
    """What a part of an answer says has gone wrong, though its status was fine; None when nothing has."""
    error = event.get("error") or mapping(event.get("response")).get("error")
    if not isinstance(error, dict):
        return None
    text = f"{error.get('type') or error.get('code') or ''} {error.get('message') or ''}".strip()
    return error_class(text), text


def failure_of(status: int, body: bytes) -> ErrorClass | None:
    """The class of an answer's status; None for one that is no failure, or says that the conversation is too long."""
    if status < 400:
        return None
    text = body.decode("utf-8", "replace")
    if is_context_limit(text):
        return None
    found = error_class(text if status not in range(400, 500) else "", status)
    return "overload" if status == 529 else ("refused" if found == "unknown" else found)


def data_of(event: bytes) -> Iterator[Object]:
    """The JSON object in one server-sent event."""
    lines = (line[5:].strip() for line in event.splitlines() if line.startswith(b"data:"))
    value = json_value(b"\n".join(lines))
    if isinstance(value, dict):
        yield value


def _refusals(name: ModelApi, body: Object) -> Iterator[str]:
    for field in _REACHING_FIELDS[name]:
        if body.get(field):
            yield f"{field} is not allowed: nothing may be reached for an agent"
    if body.get("service_tier") not in _TIERS:
        yield "service_tier is not allowed: other tiers have other prices"
    lists = [body.get("tools"), *(mapping(item).get("tools") for item in items(body.get("input")))]
    for tools in lists:
        yield from _tool_refusals(tools)
    yield from _address_refusals(body.get("messages"), body.get("input"), body.get("system"))


def _tool_refusals(tools: object) -> Iterator[str]:
    for tool in map(mapping, items(tools)):
        kind = tool.get("type", "function")
        if not isinstance(kind, str) or (
            kind not in _LOCAL_TOOLS and not kind.startswith(_LOCAL_TOOL_PREFIXES)
        ):
            yield f"a tool of type {str(kind)[:40]} is not allowed: the provider would run it, outside the sandbox"
        yield from _tool_refusals(tool.get("tools"))


def _address_refusals(*parts: object) -> Iterator[str]:
    """Parts of messages that the provider would have to fetch; walked without recursion, for it may be deep."""
    waiting = list(parts)
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            if part.get("type") in ("text", "input_text", "output_text", "tool_use", "function_call"):
                continue
            for field in _ADDRESSES:
                value = part.get(field)
                if isinstance(value, str) and not value.startswith("data:"):
                    yield f"{field} is not allowed: the provider would fetch it; send the content itself"
            waiting += [value for value in part.values() if isinstance(value, (list, dict))]


def _openai_use(value: object, prompt: str, completion: str) -> Use | None:
    """Chat completions and Responses: the cached tokens are a part of the prompt's, reasoning of the output's."""
    usage = mapping(value)
    given, output = count(usage.get(prompt)), count(usage.get(completion))
    if given is None or output is None:
        return None
    details = mapping(usage.get(f"{prompt}_details"))
    read, written = count(details.get("cached_tokens")) or 0, count(details.get("cache_write_tokens")) or 0
    reasoning = count(mapping(usage.get(f"{completion}_details")).get("reasoning_tokens"))
    return Use(TokenCounts(max(given - read - written, 0), read, written, output), reasoning)


def _chat_use(answer: Object) -> Use | None:
    return _openai_use(answer.get("usage"), "prompt_tokens", "completion_tokens")


def _responses_use(answer: Object) -> Use | None:
    usage = answer.get("usage") or mapping(answer.get("response")).get("usage")
    return _openai_use(usage, "input_tokens", "output_tokens")


def _messages_use(answer: Object) -> Use | None:
    """Messages: the three classes of input are apart. A stream says it at its start, and again at its end."""
    if answer.get("type") == "message_start":
        return None
    usage = mapping(answer.get("usage"))
    output, given = count(usage.get("output_tokens")), count(usage.get("input_tokens"))
    if output is None or given is None:
        return None
    read = count(usage.get("cache_read_input_tokens")) or 0
    written = count(usage.get("cache_creation_input_tokens")) or 0
    return Use(TokenCounts(given, read, written, output))


@dataclass
class StreamUse:
    """The use of a streamed answer, from its events as they pass.

    A Messages stream may give input at its start only, so what the start said stands where the end is silent.
    """

    api: Api
    use: Use | None = None
    failure: tuple[ErrorClass, str] | None = None
    whole: bool = False

    def __post_init__(self) -> None:
        self._start: Object = {}

    def take(self, event: bytes) -> bool:
        """Look at one event; whether it holds nothing but the use."""
        self.whole = self.whole or any(mark in event[:_HEAD] for mark in self.api.last)
        if b'"usage"' not in event and b'"error"' not in event:
            return False
        only_use = False
        for data in data_of(event):
            self.failure = failure_in(data) or self.failure
            if data.get("type") == "message_start":
                self._start = mapping(mapping(data.get("message")).get("usage"))
            if self._start and isinstance(data.get("usage"), dict):
                said = {name: value for name, value in mapping(data["usage"]).items() if value is not None}
                data["usage"] = {**self._start, **said}
            self.use = self.api.use_in(data) or self.use
            only_use = data.get("choices") == [] and data.get("usage") is not None
        return only_use


def events_in(buffer: bytearray) -> Iterable[bytes]:
    """The whole server-sent events at the start of ``buffer``, which are taken out of it."""
    found: list[bytes] = []
    while True:
        ends = [(at + len(mark)) for mark in (b"\n\n", b"\r\n\r\n") if (at := buffer.find(mark)) >= 0]
        if not ends:
            return found
        found.append(bytes(buffer[: min(ends)]))
        del buffer[: min(ends)]


APIS: tuple[Api, ...] = (
    Api(
        "chat-completions",
        "/chat/completions",
        ("max_completion_tokens", "max_tokens"),
        (b"[DONE]",),
        _chat_use,
    ),
    Api(
        "responses",
        "/responses",
        ("max_output_tokens",),
        (b"response.completed", b"response.incomplete", b"response.failed"),
        _responses_use,
        messages="input",
    ),
    Api("messages", "/messages", ("max_tokens",), (b"message_stop",), _messages_use),
    Api("messages", "/messages/count_tokens", (), (), lambda _: Use(TokenCounts(0, 0, 0, 0)), free=True),
)
_BY_PATH = {api.path: api for api in APIS}
