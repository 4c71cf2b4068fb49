"""What a request may take is never held too low, and a conversation that goes on is not held as if it began anew."""

import asyncio
import json
from decimal import Decimal
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.execution.gateway.accounts import Account, Amount, CapReachedError, Caps, Till
from bench_pipeline.execution.gateway.apis import APIS
from bench_pipeline.execution.gateway.conversations import Conversations, input_alone

CHAT, RESPONSES, MESSAGES = APIS[:3]
# What providers may add to any request.
ADDED = input_alone(b"").most
MARK = {"cache_control": {"type": "ephemeral"}}
TEXTS = st.text(max_size=60)
BLOCKS = st.builds(
    lambda text, mark: {"type": "text", "text": text, **mark}, TEXTS, st.sampled_from([{}, MARK])
)
TURNS = st.builds(
    lambda role, content: {"role": role, "content": content},
    st.sampled_from(["user", "assistant"]),
    TEXTS | st.lists(BLOCKS, max_size=3),
)
# What an agent does next with its conversation: how many messages it keeps, what it adds, and under which instructions.
STEPS = st.lists(
    st.tuples(
        st.integers(0, 8), st.lists(TURNS, max_size=3), st.sampled_from(["", "be brief", "be long " * 20])
    ),
    max_size=12,
)


def _tokens(value: object) -> int:
    """Some tokeniser: between none and a token for each byte, differently for each text."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
    return int.from_bytes(blake2b(text, digest_size=4).digest()) % (len(text) + 1)


def _unmarked(message):
    if isinstance(message["content"], str):
        return message
    content = [
        {name: part for name, part in block.items() if name != "cache_control"}
        for block in message["content"]
    ]
    return {**message, "content": content}


def _took(body) -> int:
    """What a request really takes as input."""
    return _tokens(body["system"]) + sum(_tokens(_unmarked(message)) for message in body["messages"])


def _bodies(steps):
    messages = []
    for kept, added, system in steps:
        messages = [*messages[:kept], *added]
        yield {"model": "m", "system": system, "messages": messages}


def _ask(conversations, api, body):
    sent = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return conversations.input_of(api, body, sent), input_alone(sent)


@given(STEPS)
def test_no_request_takes_more_than_its_most_and_none_is_held_higher_than_alone(steps):
    conversations = Conversations()
    for body in _bodies(steps):
        most, alone = _ask(conversations, MESSAGES, body)
        assert _took(body) + ADDED <= most.most <= alone.most
        conversations.took(most.conversation, _took(body))


@given(STEPS, st.integers(0, 20_000))
def test_a_cap_on_tokens_is_never_overshot_by_a_conversation(steps, cap):
    async def run():
        conversations, till, account = Conversations(), Till(), Account("cell", Caps(tokens=cap))
        for body in _bodies(steps):
            most, _ = _ask(conversations, MESSAGES, body)
            held = Amount(1, most.most, Decimal(0))
            try:
                await till.hold([account], held)
            except CapReachedError:
                continue
            till.settle([account], held, Amount(1, _took(body), Decimal(0)))
            conversations.took(most.conversation, _took(body))
            assert account.used.tokens <= cap

    asyncio.run(run())


def _long(messages: int, **more):
    texts = [{"role": "user", "content": [{"type": "text", "text": "x" * 10_000}]} for _ in range(messages)]
    return {"model": "m", "messages": texts, **more}


@pytest.mark.parametrize("api", [CHAT, MESSAGES], ids=lambda api: api.name)
def test_a_conversation_that_goes_on_holds_what_it_took_and_the_new_bytes(api):
    conversations = Conversations()
    first, _ = _ask(conversations, api, _long(8))
    conversations.took(first.conversation, 20_000)
    going_on, alone = _ask(conversations, api, _long(9))
    assert 30_000 < going_on.most < 33_000
    assert alone.most > 90_000


def test_a_cache_mark_that_moves_on_changes_no_conversation():
    conversations, marked = Conversations(), _long(2)
    marked["messages"][1]["content"][0] |= MARK
    conversations.took(_ask(conversations, MESSAGES, marked)[0].conversation, 5_000)
    assert _ask(conversations, MESSAGES, _long(3))[0].most < 18_000


@pytest.mark.parametrize(
    "change",
    [
        {"system": "another"},
        {"tools": [{"name": "t", "cache_control": "x" * 100}]},
        {"tools": [{"name": "t", "defer_loading": True}]},
        {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
    ],
    ids=["instructions", "text in place of a mark", "tools that are looked up", "results that are left out"],
)
def test_whatever_else_changes_makes_all_bytes_count(change):
    conversations = Conversations()
    conversations.took(_ask(conversations, MESSAGES, _long(8, tools=[{"name": "t"}]))[0].conversation, 100)
    changed, alone = _ask(conversations, MESSAGES, _long(9, **{"tools": [{"name": "t"}], **change}))
    assert changed.most == alone.most


def test_what_is_left_out_by_the_provider_is_not_counted_on_in_the_next_request():
    conversations = Conversations()
    for messages in (8, 9):
        asked, alone = _ask(
            conversations, RESPONSES, {"input": _long(messages)["messages"], "truncation": "auto"}
        )
        assert asked == alone
        assert asked.conversation is None


def test_only_so_many_conversations_are_kept():
    conversations = Conversations()
    for number in range(100):
        conversations.took(_ask(conversations, CHAT, _long(1, user=str(number)))[0].conversation, 10)
    held = [_ask(conversations, CHAT, _long(1, user=str(number)))[0].most < 5_000 for number in range(100)]
    assert held == [False] * 36 + [True] * 64
