"""What each agent did is read from what it wrote: recorded runs give their reads, writes, commands and results."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.execution.transcripts import TRANSCRIPTS, Event, transcript_of
from bench_pipeline.execution.usage import PARSERS, ToolOutputs
from bench_pipeline_tests.execution.test_usage_recorded import AGENTS, FORMATS, KEPT

READ_BACK = 'def add(a, b):\n    """Return the sum of a and b."""\n    return a - b\n'


def _recorded(tool: str, case: str, tmp_path: Path, *, kept: bool = True) -> list[Event]:
    home = tmp_path / "home"
    files = KEPT[tool] if kept else {}
    for suffix, (_, place) in files.items():
        if (AGENTS / tool / f"{case}.{suffix}").exists():
            (home / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(AGENTS / tool / f"{case}.{suffix}", home / place)
    stdout = next(
        path for end in ("jsonl", "json", "txt") if (path := AGENTS / tool / f"{case}.{end}").exists()
    )
    outputs = ToolOutputs(stdout, stdout, home, dict(files.values()))
    return list(transcript_of(FORMATS[tool]).events(outputs))


def _told(tmp_path: Path, usage_format: str, *lines: object) -> list[Event]:
    stdout = tmp_path / "stdout"
    stdout.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return list(transcript_of(usage_format).events(ToolOutputs(stdout, stdout, tmp_path)))


def _of(events: list[Event], kind: str, key: str = "text") -> list[Any]:
    return [event.payload.get(key) for event in events if event.kind == kind]


def test_every_usage_format_has_a_transcript() -> None:
    assert TRANSCRIPTS.keys() == PARSERS.keys()
    assert not transcript_of("none").shows.expected
    assert all(transcript.shows.expected for name, transcript in TRANSCRIPTS.items() if name != "none")


@pytest.mark.parametrize("tool", FORMATS)
def test_a_recorded_run_shows_what_every_run_of_its_tool_shows(tool: str, tmp_path: Path) -> None:
    kinds = {event.kind for event in _recorded(tool, "success", tmp_path)}
    assert kinds & set(transcript_of(FORMATS[tool]).shows.expected)


@pytest.mark.parametrize("tool", ["claude", "opencode"])
def test_a_file_that_was_read_is_told_without_line_numbers(tool: str, tmp_path: Path) -> None:
    events = _recorded(tool, "success", tmp_path)
    assert _of(events, "read", "path") == ["$WORK/calc.py"]
    assert [text.strip() for text in _of(events, "read")] == [READ_BACK.strip()]


@pytest.mark.parametrize("tool", ["codex", "mini"])
def test_a_file_that_was_read_by_a_command_is_its_result(tool: str, tmp_path: Path) -> None:
    events = _recorded(tool, "success", tmp_path)
    assert "cat calc.py" in _of(events, "command")[0]
    assert any(READ_BACK in text for text in _of(events, "result"))


@pytest.mark.parametrize(
    ("tool", "path"),
    [("claude", "$WORK/calc.py"), ("opencode", "$WORK/calc.py"), ("codex", "calc.py"), ("aider", "calc.py")],
)
def test_a_change_is_told_with_what_was_written(tool: str, path: str, tmp_path: Path) -> None:
    events = _recorded(tool, "success", tmp_path)
    assert _of(events, "write", "path") == [path]
    out = [*_of(events, "write"), *_of(events, "message")]
    assert any("return a + b" in (text or "") for text in out)


@pytest.mark.parametrize("tool", ["claude", "opencode", "codex", "mini"])
def test_commands_are_told_with_their_results_under_one_name(tool: str, tmp_path: Path) -> None:
    events = _recorded(tool, "success", tmp_path)
    (call,) = [
        event.payload["call"]
        for event in events
        if event.kind == "command" and "python3 -m unittest -q" in str(event.payload["text"])
    ]
    results = [
        event.payload for event in events if event.kind == "result" and event.payload.get("call") == call
    ]
    assert ["Ran 1 test" in str(result["text"]) for result in results] == [True]
    assert not results[0].get("failed")


@pytest.mark.parametrize("tool", ["claude", "opencode", "codex"])
def test_a_call_that_failed_is_told_as_failed(tool: str, tmp_path: Path) -> None:
    events = _recorded(tool, "badtool", tmp_path)
    assert True in _of(events, "result", "failed")


def test_a_write_that_was_refused_is_no_write(tmp_path: Path) -> None:
    events = _recorded("claude", "permission_denied", tmp_path)
    assert _of(events, "write", "failed") == [True]
    assert _of(events, "command", "failed") == [True]


def test_a_call_that_was_cut_off_is_told_without_a_result(tmp_path: Path) -> None:
    events = _recorded("claude", "killed_in_tool_sigkill", tmp_path)
    assert len(_of(events, "command")) == 1
    assert not _of(events, "result")


def test_codex_without_its_rollout_tells_what_standard_output_shows(tmp_path: Path) -> None:
    events = _recorded("codex", "success", tmp_path, kept=False)
    assert _of(events, "write", "path") == ["$WORK/calc.py"]
    assert len(_of(events, "command")) == len(_of(events, "result")) == 2


def test_requests_to_the_network_are_told_with_their_addresses(tmp_path: Path) -> None:
    use = {
        "type": "tool_use",
        "id": "1",
        "name": "WebFetch",
        "input": {"url": "https://a.test/x", "prompt": "look"},
    }
    search = {"type": "tool_use", "id": "2", "name": "WebSearch", "input": {"query": "harbour"}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "page"}]}
    events = _told(
        tmp_path,
        "claude-stream-json",
        {"type": "assistant", "message": {"content": [use, search]}},
        {"type": "user", "message": {"content": [result]}},
    )
    assert _of(events, "request", "url") == ["https://a.test/x", "web_search"]
    assert _of(events, "response") == ["page"]
    (fetch,) = [
        event
        for event in _told(
            tmp_path,
            "opencode-jsonl",
            {"type": "tool_use", "part": {"tool": "webfetch", "callID": "1",
             "state": {"status": "completed", "input": {"url": "https://b.test/"}, "output": "page"}}},
        )
        if event.kind == "request"
    ]  # fmt: skip
    assert fetch.payload["url"] == "https://b.test/"
    item = {"type": "item.completed", "item": {"type": "web_search", "id": "i", "query": "harbour"}}
    assert _of(_told(tmp_path, "codex-jsonl", item), "request", "url") == ["web_search"]


def test_what_sub_agents_and_other_tools_get_is_told(tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "1", "name": "mcp__db__query", "input": {"sql": ["select", {"x": "y"}]}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": "rows"}
    events = _told(
        tmp_path,
        "claude-stream-json",
        {"type": "assistant", "parent_tool_use_id": "t", "message": {"content": [use]}},
        {"type": "user", "message": {"content": [result, {"type": "text", "text": "reminder"}]}},
        {"type": "user", "message": {"content": "a plain one"}},
    )
    assert _of(events, "message") == ["select\ny"]
    assert _of(events, "result") == ["rows", "reminder", "a plain one"]


def test_tools_that_people_write_tell_their_activity_line_by_line(tmp_path: Path) -> None:
    events = _told(
        tmp_path,
        "bench-json",
        {"activity": "read", "path": "a.py", "text": "x", "more": 1},
        {"activity": "glance", "text": "x"},
        {"activity": ["read"]},
        {"activity": "result", "text": 7, "failed": True, "call": "c"},
        {"state": "completed"},
    )
    assert events == [
        Event("read", {"text": "x", "path": "a.py"}),
        Event("result", {"call": "c", "failed": True}),
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["type", "message", "content", "id", "name", "input", "text", "item", "part", "state", "tool",
                         "payload", "output", "call_id", "tool_use_id", "changes", "metadata", "activity", "extra",
                         "messages", "actions", "role", "arguments", "edits", "file_path"]),
        inner | st.sampled_from(["assistant", "user", "tool_use", "tool_result", "item.completed", "file_change",
                                 "read", "response_item", "function_call", "function_call_output", "Read", "Edit",
                                 "bash"]),
        max_size=5,
    ),
    max_leaves=12,
)  # fmt: skip


@given(lines=st.lists(JSON, max_size=5))
@pytest.mark.parametrize("usage_format", sorted(TRANSCRIPTS))
def test_no_transcript_however_broken_raises(
    tmp_path_factory: pytest.TempPathFactory, usage_format: str, lines: list[object]
) -> None:
    home = tmp_path_factory.mktemp("home", numbered=True)
    data = "".join(json.dumps(line) + "\n" for line in lines)
    for name in ("stdout", "trajectory", "rollout", "chat"):
        (home / name).write_text(data if name != "trajectory" else json.dumps({"messages": lines}))
    files = {name: name for name in ("trajectory", "rollout", "chat")}
    outputs = ToolOutputs(home / "stdout", home / "stdout", home, files)
    for event in transcript_of(usage_format).events(outputs):
        assert isinstance(event.payload, dict)
    shutil.rmtree(home)


@pytest.mark.parametrize("usage_format", sorted(TRANSCRIPTS))
@pytest.mark.parametrize(
    "data",
    [b"", b"\xff\xfe\x00", b"[" * 200_000 + b"\n", b'{"type":' * 50_000 + b"\n", b"\n" * 100_000,
     b'{"activity":"read","text":"' + b"x" * (17 << 20) + b'"}\n', b'{"activity":"read","text":"\\ud800"}\n'],
    ids=["empty", "no UTF-8", "deep list", "deep object", "blank lines", "a line of 17 MB", "a lone surrogate"],
)  # fmt: skip
def test_a_hostile_transcript_is_bounded(tmp_path: Path, usage_format: str, data: bytes) -> None:
    for name in ("stdout", "trajectory", "rollout", "chat"):
        (tmp_path / name).write_bytes(data)
    files = {name: name for name in ("trajectory", "rollout", "chat")}
    events = list(
        transcript_of(usage_format).events(ToolOutputs(tmp_path / "stdout", tmp_path, tmp_path, files))
    )
    assert len(events) < 10
