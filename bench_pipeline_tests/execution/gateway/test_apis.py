"""What a request may ask, and what an answer says of its use."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.execution.gateway.apis import APIS, StreamUse, api_at, data_of, events_in, failure_of
from bench_pipeline.registry.tokens import TokenCounts

CHAT, RESPONSES, MESSAGES, COUNTING = APIS
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)
FIELDS = [
    "tools",
    "input",
    "messages",
    "usage",
    "response",
    "error",
    "type",
    "choices",
    "max_tokens",
    "n",
    "url",
]
HOSTILE = st.dictionaries(st.sampled_from(FIELDS), JSON)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/chat/completions"])
def test_a_path_names_its_api_with_or_without_a_version(path):
    assert api_at(path) is CHAT


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/models", "/v1/files", "/v1/chat/completions/../files", "/V1/messages"]
)
def test_every_other_path_names_none(path):
    assert api_at(path) is None


class TestRefusals:
    @pytest.mark.parametrize(
        ("api", "body"),
        [
            (MESSAGES, {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
            (MESSAGES, {"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]}),
            (MESSAGES, {"tools": [{"type": "code_execution_20250825", "name": "code"}]}),
            (MESSAGES, {"mcp_servers": [{"type": "url", "url": "https://example.com"}]}),
            (
                MESSAGES,
                {
                    "messages": [
                        {"content": [{"type": "image", "source": {"type": "url", "url": "https://x"}}]}
                    ]
                },
            ),
            (RESPONSES, {"tools": [{"type": "web_search"}]}),
            (RESPONSES, {"tools": [{"type": "mcp", "server_url": "https://example.com"}]}),
            (RESPONSES, {"tools": [{"type": "file_search", "vector_store_ids": ["v"]}]}),
            (RESPONSES, {"input": [{"type": "additional_tools", "tools": [{"type": "web_search_preview"}]}]}),
            (RESPONSES, {"tools": [{"type": "namespace", "tools": [{"type": "mcp"}]}]}),
            (RESPONSES, {"background": True}),
            (RESPONSES, {"previous_response_id": "resp_1"}),
            (
                RESPONSES,
                {"input": [{"content": [{"type": "input_image", "image_url": "https://example.com/a"}]}]},
            ),
            (RESPONSES, {"input": [{"content": [{"type": "input_file", "file_id": "file-1"}]}]}),
            (CHAT, {"web_search_options": {"search_context_size": "low"}}),
            (CHAT, {"plugins": [{"id": "web"}]}),
            (CHAT, {"messages": [{"content": [{"type": "image_url", "image_url": {"url": "http://x"}}]}]}),
            (CHAT, {"service_tier": "priority"}),
            (CHAT, {"tools": [{"type": ["function"]}]}),
        ],
        ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else value.name,
    )
    def test_what_makes_the_provider_reach_out_is_refused(self, api, body):
        assert api.refusal({"model": "m", **body})

    @pytest.mark.parametrize(
        ("api", "body"),
        [
            (MESSAGES, {"tools": [{"name": "Bash", "input_schema": {}}, {"type": "custom", "name": "x"}]}),
            (MESSAGES, {"tools": [{"type": "bash_20250124"}, {"type": "text_editor_20250728"}]}),
            (MESSAGES, {"messages": [{"content": [{"type": "text", "text": "t", "url": "https://x"}]}]}),
            (MESSAGES, {"messages": [{"content": [{"type": "tool_use", "input": {"url": "https://x"}}]}]}),
            (RESPONSES, {"tools": [{"type": "function"}, {"type": "custom"}, {"type": "local_shell"}]}),
            (
                RESPONSES,
                {"input": [{"content": [{"type": "input_image", "image_url": "data:image/png;base64,AA"}]}]},
            ),
            (CHAT, {"tools": [{"type": "function", "function": {"name": "url"}}], "service_tier": "auto"}),
        ],
        ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else value.name,
    )
    def test_what_the_agent_does_itself_is_not(self, api, body):
        assert api.refusal({"model": "m", **body}) is None

    @given(st.sampled_from(APIS), HOSTILE)
    def test_nothing_in_a_request_makes_the_reading_fail(self, api, body):
        refused, bound = api.refusal(body), api.bound(body)
        assert refused is None or isinstance(refused, str)
        assert bound is None or bound >= 0

    def test_a_request_as_deep_as_one_likes_is_read(self):
        deep: object = {"type": "image", "source": {"url": "https://example.com"}}
        for _ in range(5000):
            deep = [deep]
        assert MESSAGES.refusal({"messages": deep})


class TestUse:
    """The reference sums of the recorded runs: 1060 uncached, 4690 read, 630 written, 145 out, 10 of it reasoning."""

    def test_chat_completions_count_the_cache_within_the_prompt(self):
        usage = {
            "prompt_tokens": 6380, "completion_tokens": 145,
            "prompt_tokens_details": {"cached_tokens": 4690, "cache_write_tokens": 630},
            "completion_tokens_details": {"reasoning_tokens": 10},
        }  # fmt: skip
        use = CHAT.use_in({"usage": usage})
        assert (use.tokens, use.reasoning) == (TokenCounts(1060, 4690, 630, 145), 10)

    def test_responses_count_the_cache_within_the_input(self):
        usage = {
            "input_tokens": 6380, "output_tokens": 145,
            "input_tokens_details": {"cached_tokens": 4690, "cache_write_tokens": 630},
            "output_tokens_details": {"reasoning_tokens": 10},
        }  # fmt: skip
        use = RESPONSES.use_in({"type": "response.completed", "response": {"usage": usage}})
        assert (use.tokens, use.reasoning) == (TokenCounts(1060, 4690, 630, 145), 10)

    def test_messages_count_the_cache_apart(self):
        usage = {
            "input_tokens": 1060, "cache_read_input_tokens": 4690, "cache_creation_input_tokens": 630,
            "output_tokens": 145,
        }  # fmt: skip
        assert MESSAGES.use_in({"usage": usage}).tokens == TokenCounts(1060, 4690, 630, 145)

    def test_a_stream_of_messages_counts_output_at_its_end_and_input_where_it_is_said(self):
        seen = StreamUse(MESSAGES)
        start = {"input_tokens": 9, "cache_read_input_tokens": 4, "output_tokens": 1}
        seen.take(_event("message_start", {"type": "message_start", "message": {"usage": start}}))
        assert seen.use is None
        seen.take(_event("message_delta", {"type": "message_delta", "usage": {"output_tokens": 77}}))
        seen.take(_event("message_stop", {"type": "message_stop"}))
        assert (seen.use.tokens, seen.whole) == (TokenCounts(9, 4, 0, 77), True)

    def test_a_stream_that_was_cut_has_no_known_use(self):
        seen = StreamUse(MESSAGES)
        seen.take(
            _event("message_start", {"type": "message_start", "message": {"usage": {"input_tokens": 9}}})
        )
        assert (seen.use, seen.whole) == (None, False)

    def test_a_failure_in_a_stream_has_its_class(self):
        seen = StreamUse(MESSAGES)
        error = {"type": "overloaded_error", "message": "busy"}
        seen.take(_event("error", {"type": "error", "error": error}))
        assert seen.failure == ("overload", "overloaded_error busy")

    @pytest.mark.parametrize(
        "usage",
        [None, {}, [], {"prompt_tokens": "7", "completion_tokens": 1}, {"prompt_tokens": -1, "completion_tokens": 1},
         {"prompt_tokens": True, "completion_tokens": 1}],
    )  # fmt: skip
    def test_a_use_that_is_no_count_is_unknown(self, usage):
        assert CHAT.use_in({"usage": usage}) is None

    @given(st.sampled_from(APIS), HOSTILE)
    def test_nothing_in_an_answer_makes_the_counting_fail(self, api, answer):
        seen = StreamUse(api)
        seen.take(_event("x", answer))
        seen.take(_event("x", {"usage": answer}))


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), min_size=1), max_size=5),
    st.data(),
)
def test_events_come_out_whole_however_their_bytes_arrive(texts, data):
    stream = b"".join(f"data: {json.dumps({'t': text})}\n\n".encode() for text in texts)
    buffer, found = bytearray(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        buffer += stream[:size]
        stream = stream[size:]
        found += events_in(buffer)
    assert [value["t"] for event in found for value in data_of(event)] == texts
    assert not buffer


@pytest.mark.parametrize(
    ("status", "body", "failure"),
    [
        (200, b"", None),
        (400, b"bad request", "refused"),
        (400, b"prompt is too long: 210000 tokens", None),
        (401, b"", "auth"),
        (403, b"", "auth"),
        (408, b"", "timeout"),
        (429, b"", "rate"),
        (500, b"", "overload"),
        (503, b"", "overload"),
        (529, b"", "overload"),
    ],
)
def test_every_status_has_its_class(status, body, failure):
    assert failure_of(status, body) == failure


def _event(name, data):
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()
