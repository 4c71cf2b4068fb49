"""Whatever a tool writes, reading it neither fails nor invents a number."""

import json
import os
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_pipeline.errors import NotFoundError
from bench_pipeline.execution.record import StepUse, Usage
from bench_pipeline.execution.usage import PARSERS, ToolEnd, ToolOutputs, merge_ends, parse_end, reading
from bench_pipeline.execution.usage.end import error_class, is_context_limit
from bench_pipeline.registry.tokens import TokenCounts

AGENTS = Path(__file__).parents[1] / "fixtures" / "agents"
FILES = {
    "session": "session.jsonl",
    "rollout": "rollout.jsonl",
    "trajectory": "trajectory.json",
    "analytics": "analytics.jsonl",
    "chat": "chat.md",
    "result": "result.json",
}
KINDS = (
    "result",
    "assistant",
    "item.completed",
    "turn.completed",
    "turn.failed",
    "step_finish",
    "tool_use",
    "token_usage_record",
    "error",
    "message_send",
    "exit",
)
KEYS = ("type", "message", "usage", "part", "tokens", "info", "messages", "extra", "item", "payload")
ANY_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
NOT_COUNTS = [True, -1, 1.5, "7", None, [], float("nan"), float("inf"), 10**19]


@given(
    ANY_VALUE.map(json.dumps).map(str.encode) | st.binary(max_size=40) | st.text(max_size=20).map(str.encode)
)
def test_json_means_what_the_standard_library_says_and_can_be_written_again(data):
    try:
        expected = json.loads(data.decode("utf-8", "replace"))
    except ValueError:
        expected = None
    value = reading.json_value(data)
    assert repr(value) == repr(expected)
    if "nan" not in repr(value) and "inf" not in repr(value):
        assert reading.json_value(reading.json_bytes(value)) == value


@pytest.mark.parametrize(
    "data",
    [
        b'"\\ud800"',
        b'"\xff"',
        b"1e400",
        b"-0",
        b"12345678901234567890123",
        b'{"a":1,"a":2}',
        b"\xef\xbb\xbf1",
    ],
)
def test_json_that_decoders_disagree_on_is_read_as_by_the_standard_library(data):
    try:
        expected = json.loads(data.decode("utf-8", "replace"))
    except ValueError:
        expected = None
    assert repr(reading.json_value(data)) == repr(expected)


def _end(usage_format: str, tmp_path: Path, stdout: bytes = b"", **files: bytes) -> ToolEnd:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    (tmp_path / "stdout").write_bytes(stdout)
    for name, data in files.items():
        (home / FILES[name]).write_bytes(data)
    patterns = {name: FILES[name] for name in files}
    return parse_end(usage_format, ToolOutputs(tmp_path / "stdout", tmp_path / "stdout", home, patterns))


def _lines(*objects: object) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in objects)


def _claude_result(**changes: object) -> dict[str, object]:
    used = {"inputTokens": 1, "cacheReadInputTokens": 2, "cacheCreationInputTokens": 3, "outputTokens": 4}
    return {
        "type": "result",
        "is_error": False,
        "subtype": "success",
        "result": "done",
        "total_cost_usd": 0.5,
        "modelUsage": {"m": {**used, "costBasis": "list"}},
        **changes,
    }


def _step(**changes: object) -> dict[str, object]:
    tokens = {"input": 10, "output": 20, "reasoning": 5, "cache": {"read": 30, "write": 40}}
    part = {"reason": "stop", "tokens": tokens, "cost": 0.1, **changes}
    return {"type": "step_finish", "sessionID": "a", "part": part}


class TestAnyBytes:
    @pytest.mark.parametrize("usage_format", sorted(PARSERS))
    @given(data=st.binary(max_size=300))
    @settings(max_examples=40)
    def test_any_bytes_are_read_without_an_error(self, usage_format, tmp_path_factory, data):
        files = dict.fromkeys(FILES, data)
        end = _end(usage_format, tmp_path_factory.mktemp("run"), data, **files)
        assert end.state in {"none", "exit", "completed", "error", "limit"}

    @pytest.mark.parametrize("tool", ["claude", "codex", "opencode", "aider"])
    @given(data=st.data())
    @settings(max_examples=25)
    def test_a_recording_cut_anywhere_is_read_without_an_error(self, tool, tmp_path_factory, data):
        usage_format = {"aider": "aider-analytics", "claude": "claude-stream-json"}.get(tool, f"{tool}-jsonl")
        name = "success.analytics.jsonl" if tool == "aider" else "success.jsonl"
        whole = (AGENTS / tool / name).read_bytes()
        cut = whole[: data.draw(st.integers(0, len(whole) - 2))]
        end = _end(usage_format, tmp_path_factory.mktemp("run"), cut, analytics=cut)
        assert end.state == "none"
        assert end.final_text is None

    @given(value=ANY_VALUE)
    @settings(max_examples=150)
    def test_values_of_any_shape_are_read_without_an_error(self, tmp_path_factory, value):
        folder = tmp_path_factory.mktemp("run")
        keys = ("message", "item", "part", "properties", "usage", "modelUsage", "error", "id", "sessionID")
        filled = dict.fromkeys(keys, value)
        lines = _lines(value, *({"type": kind, "event": kind, "is_error": True, **filled} for kind in KINDS))
        whole = json.dumps({"info": value, "messages": [value, {"extra": value}], "state": value}).encode()
        for usage_format in PARSERS:
            _end(usage_format, folder, lines, trajectory=whole, analytics=lines, rollout=lines, result=whole)

    def test_text_that_utf8_cannot_hold_reaches_no_column(self, tmp_path):
        line = b'{"type":"result","is_error":false,"result":"cut \\ud83d here\\u0000","modelUsage":{}}\n'
        end = _end("claude-stream-json", tmp_path, line)
        assert end.state == "completed"
        end.final_text.encode("utf-8")
        assert "\0" not in end.final_text

    def test_a_line_that_is_too_long_is_passed_over_and_the_end_still_read(self, tmp_path, monkeypatch):
        monkeypatch.setattr(reading, "MAX_LINE_BYTES", 2000)
        long = _lines({"type": "assistant", "message": {"id": "x" * 9000}})
        end = _end("claude-stream-json", tmp_path, long + _lines(_claude_result()))
        assert (end.state, end.turns) == ("completed", None)

    def test_lines_are_split_on_line_feeds_only(self, tmp_path):
        line = json.dumps(_claude_result(result="a\u2028b\u0085c\fd"), ensure_ascii=False).encode()
        assert _end("claude-stream-json", tmp_path, line + b"\r\n").final_text == "a\u2028b\u0085c\fd"

    def test_deep_nesting_is_no_error(self, tmp_path):
        deep = b"[" * 100_000
        assert (
            _end("claude-stream-json", tmp_path, deep + b"\n" + _lines(_claude_result())).state == "completed"
        )
        assert _end("mini-trajectory", tmp_path, trajectory=deep).unreadable is not None


class TestFilesThatMislead:
    def _outputs(self, home: Path, pattern: str) -> ToolOutputs:
        return ToolOutputs(home / "stdout", home / "stderr", home, {"trajectory": pattern})

    def test_links_are_not_followed(self, tmp_path):
        outside, home = tmp_path / "outside", tmp_path / "home"
        outside.mkdir()
        home.mkdir()
        (outside / "secret.json").write_text('{"info": {"exit_status": "Submitted"}}')
        (home / "file.json").symlink_to(outside / "secret.json")
        (home / "folder").symlink_to(outside)
        for pattern in ("file.json", "folder/secret.json", "**/*.json", "../outside/secret.json"):
            outputs = self._outputs(home, pattern)
            assert outputs.matches("trajectory") == []
            assert outputs.read("trajectory") is None

    def test_a_home_that_is_gone_or_a_link_holds_nothing(self, tmp_path):
        (tmp_path / "link").symlink_to(tmp_path)
        assert self._outputs(tmp_path / "gone", "*").matches("trajectory") == []
        assert self._outputs(tmp_path / "link", "*").matches("trajectory") == []

    def test_a_pipe_is_not_waited_for(self, tmp_path):
        os.mkfifo(tmp_path / "trajectory.json")
        outputs = self._outputs(tmp_path, "trajectory.json")
        assert outputs.matches("trajectory") == []
        assert list(outputs.lines_in(("trajectory.json",))) == []

    def test_a_folder_in_place_of_a_file_holds_nothing(self, tmp_path):
        (tmp_path / "trajectory.json").mkdir()
        assert self._outputs(tmp_path, "trajectory.json").read("trajectory") is None

    def test_any_folders_match_two_stars_also_none(self, tmp_path):
        for place in ("a.jsonl", "x/a.jsonl", "x/y/a.jsonl", "x/y/a.txt"):
            (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / place).touch()
        assert self._outputs(tmp_path, "**/*.jsonl").matches("trajectory") == [
            ("a.jsonl",),
            ("x", "a.jsonl"),
            ("x", "y", "a.jsonl"),
        ]
        assert self._outputs(tmp_path, "x/*/a.txt").matches("trajectory") == [("x", "y", "a.txt")]

    def test_a_forest_of_folders_is_given_up_on(self, tmp_path, monkeypatch):
        monkeypatch.setattr(reading, "_MAX_ENTRIES", 5)
        for number in range(50):
            (tmp_path / f"{number}").mkdir()
            (tmp_path / f"{number}" / "a.json").touch()
        assert len(self._outputs(tmp_path, "**/a.json").matches("trajectory")) <= 5

    def test_a_file_that_is_too_large_is_unreadable(self, tmp_path, monkeypatch):
        monkeypatch.setattr(reading, "MAX_FILE_BYTES", 10)
        end = _end("mini-trajectory", tmp_path, trajectory=b'{"info": {"exit_status": "Submitted"}}')
        assert end.state == "none"
        assert end.unreadable is not None


class TestNumbers:
    @pytest.mark.parametrize("value", NOT_COUNTS)
    def test_what_is_no_count_makes_its_class_unknown_and_no_other(self, value, tmp_path):
        used = {
            "inputTokens": value,
            "cacheReadInputTokens": 2,
            "cacheCreationInputTokens": 3,
            "outputTokens": 4,
        }
        end = _end("claude-stream-json", tmp_path, _lines(_claude_result(modelUsage={"m": used})))
        assert end.tokens == TokenCounts(None, 2, 3, 4)

    @pytest.mark.parametrize("value", [True, -0.1, "1", None, float("nan"), float("inf"), 1e300])
    def test_what_is_no_amount_is_no_cost(self, value, tmp_path):
        end = _end("claude-stream-json", tmp_path, _lines(_claude_result(total_cost_usd=value)))
        assert (end.cost_reported_usd, end.cost_is_real) == (None, False)

    def test_cached_tokens_beyond_the_whole_make_the_rest_unknown(self, tmp_path):
        usage = {"input_tokens": 10, "cached_input_tokens": 50, "output_tokens": 1}
        end = _end("codex-jsonl", tmp_path, _lines({"type": "turn.completed", "usage": usage}))
        assert end.tokens == TokenCounts(None, 50, 0, 1)

    def test_models_and_sub_agents_are_added_up(self, tmp_path):
        used = {"inputTokens": 1, "cacheReadInputTokens": 2, "cacheCreationInputTokens": 3, "outputTokens": 4}
        end = _end("claude-stream-json", tmp_path, _lines(_claude_result(modelUsage={"a": used, "b": used})))
        assert end.tokens == TokenCounts(2, 4, 6, 8)

    def test_reasoning_is_counted_once_and_in_the_output(self, tmp_path):
        assert _end("opencode-jsonl", tmp_path, _lines(_step())).tokens == TokenCounts(10, 30, 40, 25)

    def test_sub_agents_of_codex_are_counted_from_the_rollouts(self, tmp_path):
        usage = {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 2}

        def record(response: str, thread: str) -> dict[str, object]:
            payload = {"response_id": response, "thread_id": thread, "session_id": "main", "usage": usage}
            return {"type": "token_usage_record", "payload": payload}

        stdout = _lines(
            {"type": "thread.started", "thread_id": "main"}, {"type": "turn.completed", "usage": usage}
        )
        rollout = _lines(record("1", "main"), record("2", "sub"), record("2", "sub"))
        end = _end("codex-jsonl", tmp_path, stdout, rollout=rollout)
        assert (end.tokens, end.turns) == (TokenCounts(12, 8, 0, 4), 2)

    def test_rollouts_of_another_run_are_not_counted(self, tmp_path):
        usage = {"input_tokens": 10, "output_tokens": 2}
        other = {"response_id": "1", "thread_id": "other", "session_id": "other", "usage": usage}
        stdout = _lines({"type": "thread.started", "thread_id": "main"})
        rollout = _lines({"type": "token_usage_record", "payload": other})
        assert _end("codex-jsonl", tmp_path, stdout, rollout=rollout).tokens == TokenCounts()

    def test_a_hidden_sub_agent_of_opencode_makes_the_sums_unknown(self, tmp_path):
        call = {"type": "tool_use", "sessionID": "a", "part": {"tool": "task"}}
        end = _end("opencode-jsonl", tmp_path, _lines(call, _step()))
        assert (end.state, end.tokens, end.turns, end.cost_reported_usd) == (
            "completed",
            TokenCounts(),
            None,
            None,
        )

    def test_a_shown_sub_agent_of_opencode_is_counted_and_does_not_end_the_run(self, tmp_path):
        sub = {**_step(), "sessionID": "b"}
        end = _end("opencode-jsonl", tmp_path, _lines(_step(reason="tool-calls"), sub))
        assert (end.state, end.tokens.input, end.turns) == ("none", 20, 2)

    def test_mini_counts_cache_writes_where_a_provider_bills_them(self, tmp_path):
        usage = {
            "prompt_tokens": 100,
            "completion_tokens": 5,
            "cache_creation_input_tokens": 30,
            "prompt_tokens_details": {"cached_tokens": 20},
        }
        run = {"info": {"exit_status": "Submitted"}, "messages": [{"extra": {"response": {"usage": usage}}}]}
        end = _end("mini-trajectory", tmp_path, trajectory=json.dumps(run).encode())
        assert end.tokens == TokenCounts(50, 20, 30, 5)


class TestCosts:
    def test_a_guessed_price_is_not_real(self, tmp_path):
        used = {"inputTokens": 1, "cacheReadInputTokens": 2, "cacheCreationInputTokens": 3, "outputTokens": 4}
        models = {"a": {**used, "costBasis": "list"}, "b": {**used, "costBasis": "unknown"}}
        end = _end("claude-stream-json", tmp_path, _lines(_claude_result(modelUsage=models)))
        assert (end.cost_reported_usd, end.cost_is_real) == (0.5, False)

    def test_one_step_without_a_price_makes_the_sum_no_real_cost(self, tmp_path):
        lines = _lines(_step(reason="tool-calls", cost=0), _step())
        end = _end("opencode-jsonl", tmp_path, lines)
        assert (end.cost_reported_usd, end.cost_is_real) == (0.1, False)


class TestEnds:
    def test_an_outage_in_which_aider_exits_0_is_an_error_also_after_a_request_that_went_well(self, tmp_path):
        sent = {"event": "message_send", "properties": {"prompt_tokens": 1, "completion_tokens": 1}}
        start = {"event": "message_send_starting", "properties": {}}
        over = {"event": "exit", "properties": {"reason": "Completed --message"}}
        end = _end("aider-analytics", tmp_path, analytics=_lines(start, sent, start, over), chat=b"")
        assert (end.state, end.error_class) == ("error", "unknown")

    def test_a_model_cannot_forge_an_error_or_a_limit_of_aider_in_its_answer(self, tmp_path):
        sent = {"event": "message_send", "properties": {"prompt_tokens": 1, "completion_tokens": 1}}
        start = {"event": "message_send_starting", "properties": {}}
        over = {"event": "exit", "properties": {"reason": "Completed --message"}}
        chat = b"#### prompt\n> litellm.RateLimitError: x\n> Only 3 reflections allowed, stopping.\n"
        end = _end("aider-analytics", tmp_path, analytics=_lines(start, sent, over), chat=chat)
        assert end.state == "completed"

    @pytest.mark.parametrize(
        ("changes", "state", "error_class"),
        [
            ({"is_error": True, "terminal_reason": "max_turns"}, "limit", None),
            ({"terminal_reason": "budget_exhausted"}, "limit", None),
            ({"is_error": True, "subtype": "error_max_turns"}, "limit", None),
            ({"is_error": True, "api_error_status": 529}, "error", "overload"),
            ({"is_error": True, "result": "Prompt is too long"}, "limit", None),
            ({"stop_reason": "refusal"}, "error", "refused"),
            ({"is_error": "no"}, "none", None),
            ({}, "completed", None),
        ],
    )
    def test_how_claude_code_ended(self, changes, state, error_class, tmp_path):
        end = _end("claude-stream-json", tmp_path, _lines(_claude_result(**changes)))
        assert (end.state, end.error_class) == (state, error_class)

    @pytest.mark.parametrize(
        ("reason", "state", "error_class"),
        [
            ("stop", "completed", None),
            ("length", "limit", None),
            ("tool-calls", "none", None),
            ("content-filter", "error", "refused"),
            ("other", "error", "unknown"),
            (7, "error", "unknown"),
        ],
    )
    def test_how_opencode_ended(self, reason, state, error_class, tmp_path):
        end = _end("opencode-jsonl", tmp_path, _lines(_step(reason=reason)))
        assert (end.state, end.error_class) == (state, error_class)

    def test_an_error_of_opencode_stands_whatever_comes_after_it(self, tmp_path):
        error = {
            "type": "error",
            "sessionID": "a",
            "error": {"name": "APIError", "data": {"statusCode": 500}},
        }
        assert _end("opencode-jsonl", tmp_path, _lines(error, _step())).error_class == "overload"

    def test_a_conversation_that_no_longer_fits_codex_is_a_limit(self, tmp_path):
        failed = {
            "type": "turn.failed",
            "error": {"message": "ran out of room in the model's context window"},
        }
        assert _end("codex-jsonl", tmp_path, _lines(failed)).state == "limit"

    def test_a_trajectory_without_an_end_was_killed(self, tmp_path):
        assert _end("mini-trajectory", tmp_path, trajectory=b'{"info": {"exit_status": ""}}').state == "none"
        assert _end("mini-trajectory", tmp_path).state == "none"

    def test_an_unknown_format_is_an_error_that_lists_the_known_ones(self, tmp_path):
        with pytest.raises(NotFoundError, match="codex-jsonl"):
            _end("nonsense", tmp_path)


class TestOwnFormat:
    REPORT: ClassVar = {
        "state": "completed",
        "tokens": {"input": 1, "cache_read": 2, "cache_write": 3, "output": 4},
        "turns": 5,
        "tool_calls": 6,
        "cost_usd": 0.25,
        "final_text": "done",
        "more": "is passed over",
    }

    def test_the_last_line_of_standard_output_is_read(self, tmp_path):
        end = _end("bench-json", tmp_path, b"working\n" + _lines(self.REPORT) + b"\n  \n")
        assert end == ToolEnd(
            "completed", tokens=TokenCounts(1, 2, 3, 4), turns=5, tool_calls=6, cost_reported_usd=0.25,
            cost_is_real=True, final_text="done",
        )  # fmt: skip

    def test_a_named_file_is_read_instead(self, tmp_path):
        assert _end("bench-json", tmp_path, b"noise", result=_lines(self.REPORT)).turns == 5

    def test_the_last_words_of_a_tool_that_names_no_error_are_its_error(self, tmp_path):
        last = {"state": "error", "final_text": "no model called x"}
        assert _end("bench-json", tmp_path, _lines(last)).error == "no model called x"
        assert _end("bench-json", tmp_path, _lines({**last, "error": "quota"})).error == "quota"
        assert _end("bench-json", tmp_path, _lines({**last, "state": "limit"})).error is None

    def test_an_error_has_the_class_that_it_names_or_that_its_text_says(self, tmp_path):
        named = {"state": "error", "error": "rate limit", "error_class": "refused"}
        assert _end("bench-json", tmp_path, _lines(named)).error_class == "refused"
        assert _end("bench-json", tmp_path, _lines({**named, "error_class": 3})).error_class == "rate"

    @pytest.mark.parametrize(
        "output", [b"nothing of ours", b"[]", b"{}", b'{"state": "exit"}', b'{"state": {}}']
    )
    def test_anything_else_is_unreadable(self, output, tmp_path):
        end = _end("bench-json", tmp_path, output)
        assert (end.state, bool(end.unreadable)) == ("none", True)

    def test_no_output_is_no_end(self, tmp_path):
        assert _end("bench-json", tmp_path) == ToolEnd("none")

    def test_a_cost_of_zero_is_unknown(self, tmp_path):
        assert not _end("bench-json", tmp_path, _lines({"state": "completed", "cost_usd": 0})).cost_is_real


class TestErrorClasses:
    @pytest.mark.parametrize(
        ("text", "status", "expected"),
        [
            ("anything", 401, "auth"),
            ("anything", 403, "auth"),
            ("anything", 429, "rate"),
            ("anything", 503, "overload"),
            ("anything", 504, "timeout"),
            ("unexpected status 401 Unauthorized", None, "auth"),
            ("last status: 429 Too Many Requests", None, "rate"),
            ("AuthenticationError: x", None, "auth"),
            ("RateLimitError: x", None, "rate"),
            ("litellm.Timeout: x", None, "timeout"),
            ("InternalServerError", None, "overload"),
            ("APIConnectionError", None, "overload"),
            ("ContentPolicyViolationError", None, "refused"),
            ("something else", None, "unknown"),
            ("bad request", 400, "unknown"),
        ],
    )
    def test_the_status_decides_and_else_the_text(self, text, status, expected):
        assert error_class(text, status) == expected

    def test_a_full_context_is_known_by_its_text(self):
        assert is_context_limit(
            "ContextWindowExceededError: This model's maximum context length is 8192 tokens"
        )
        assert not is_context_limit("rate limit")


class TestSteps:
    DONE = ToolEnd("completed", tokens=TokenCounts(1, 1, 1, 1), turns=1, tool_calls=2, cost_reported_usd=0.5,
        cost_is_real=True, final_text="one")  # fmt: skip

    def test_steps_add_up(self):
        both = merge_ends([self.DONE, ToolEnd("completed", tokens=TokenCounts(1, 2, 3, 4), turns=1, tool_calls=0,
            cost_reported_usd=0.25, cost_is_real=True, final_text="two")])  # fmt: skip
        assert both == ToolEnd("completed", tokens=TokenCounts(2, 3, 4, 5), turns=2, tool_calls=2,
            cost_reported_usd=0.75, cost_is_real=True, final_text="two")  # fmt: skip

    def test_what_one_step_does_not_say_the_sum_does_not_say(self):
        both = merge_ends([self.DONE, ToolEnd("completed", tokens=TokenCounts(1, None, 1, 1))])
        assert (both.tokens, both.turns, both.cost_reported_usd) == (TokenCounts(2, None, 2, 2), None, None)
        assert not both.cost_is_real

    def test_the_first_failure_decides_then_a_limit_then_the_last_step(self):
        limit, error = ToolEnd("limit", error="turns"), ToolEnd("error", "x", "auth")
        assert merge_ends([limit, error, ToolEnd("none")]).error_class == "auth"
        assert merge_ends([limit, self.DONE]).state == "limit"
        assert merge_ends([ToolEnd("exit"), self.DONE]).state == "completed"
        assert merge_ends([self.DONE]) == self.DONE


def test_sums_beyond_a_column_are_unknown_in_the_row_and_in_the_steps() -> None:
    end = ToolEnd("completed", tokens=TokenCounts(2**63, 1, 0, 2**63 - 1), turns=2**64)
    steps = [StepUse("m", end), StepUse("m", end)]
    usage = Usage.of(end=end, steps=steps, exit_code=0, signal=None, duration_s=1.0, orphans=0)
    assert usage.columns["tokens_input"] is None
    assert usage.columns["turns"] is None
    assert usage.columns["tokens_output"] == 2**63 - 1
    assert [step["input"] for step in json.loads(str(usage.columns["step_usage"]))] == [None, None]


@pytest.mark.parametrize("value", [10**400, float("inf"), float("nan"), -1, True, "1"])
def test_no_amount_is_read_from_what_is_none(value: object) -> None:
    assert reading.usd(value) is None
