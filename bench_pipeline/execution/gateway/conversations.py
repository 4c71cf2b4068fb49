"""How many tokens the input of a request can have at most: what its conversation took already, and what is new.

What belongs here: recognising a request that goes on where an answered one ended. What does not: caps (``accounts``)
and what an answer may take (``apis``). No tokeniser makes more tokens than there are bytes, nor one of two messages:
there is a mark between them. A request that repeats an earlier one whole and adds messages takes at most what that one
took, and the bytes of what was added. Where anything else differs, all of its bytes count.
"""

from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b

from bench_pipeline.execution.gateway.apis import Api
from bench_pipeline.execution.usage.reading import Object, json_bytes, mapping

# What providers add to a request: the texts that explain its tools.
_ADDED_TOKENS = 2_000
# Answered requests of a cell that others may go on from; agents with helpers of their own have several at one time.
_KEPT = 64
# What says nothing to the model, beside the bounds of an answer.
_UNSAID = ("stream", "stream_options")
# With these a provider leaves out what it may put in the next time: old results, or tools until they are looked up.
_LEAVING_OUT = (b'"truncation"', b'"clear_tool_uses', b"defer_loading", b"tool_search", b"tool_reference")
# Clients of the Messages API move these marks from message to message. Anything else in their place is text.
_CACHE_MARKS = (
    {"type": "ephemeral"},
    {"type": "ephemeral", "ttl": "5m"},
    {"type": "ephemeral", "ttl": "1h"},
)


@dataclass(frozen=True)
class Input:
    """The most tokens of a request's input, and the name of its conversation, None where nothing can go on from it."""

    most: int
    conversation: bytes | None = None


def input_alone(sent: bytes) -> Input:
    """The input of a request of which nothing but its bytes is known."""
    return Input(len(sent) + _ADDED_TOKENS)


class Conversations:
    """What the answered requests of one cell took as input."""

    def __init__(self) -> None:
        self._took: OrderedDict[bytes, int] = OrderedDict()

    def input_of(self, api: Api, body: Object, sent: bytes) -> Input:
        """The input of a request that is sent as ``sent``."""
        alone = input_alone(sent)
        messages = body.get(api.messages)
        if not isinstance(messages, list) or any(mark in sent for mark in _LEAVING_OUT):
            return alone
        unsaid = (api.messages, *_UNSAID, *api.bounds)
        head = {name: _unmarked(api, value) for name, value in body.items() if name not in unsaid}
        # JSON has no line feeds of its own, so that these end one message and nothing else.
        name = blake2b(json_bytes([api.name, head]) + b"\n", digest_size=16)
        took, new = None, 0
        for message in messages:
            content = _unmarked(api, mapping(message).get("content"))
            said = json_bytes({**message, "content": content} if content is not None else message)
            name.update(said + b"\n")
            known = self._took.get(name.digest())
            took, new = (took, new + len(said)) if known is None else (known, 0)
        most = alone.most if took is None else min(alone.most, took + new + _ADDED_TOKENS)
        return Input(most, name.digest())

    def took(self, conversation: bytes, tokens: int) -> None:
        """Keep what a request took, by the API's own account."""
        self._took[conversation] = max(tokens, self._took.pop(conversation, 0))
        if len(self._took) > _KEPT:
            self._took.popitem(last=False)


def _unmarked(api: Api, value: object) -> object:
    """A list of blocks without its cache marks; anything else as it is."""
    if api.name != "messages" or not isinstance(value, list):
        return value
    return [
        {name: part for name, part in block.items() if name != "cache_control"}
        if mapping(block).get("cache_control") in _CACHE_MARKS
        else block
        for block in value
    ]
