"""Importers: real transcripts become traces that score, and what could not be mapped is listed."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench_pipeline.errors import BenchError, DocumentError, NotFoundError, RefusedError
from bench_pipeline.scenarios import load_scenario, read_trace, scored_cell, write_trace
from bench_pipeline.scenarios.importers import FORMATS, import_transcript
from bench_pipeline.scenarios.scenario import Scenario
from bench_pipeline.scenarios.trace import Trace
from bench_pipeline_tests.scenarios.making import RUN_ID, scenario_file

AGENTS = Path(__file__).parents[1] / "fixtures" / "agents"
ANSWER = "Fixed: add() now returns a + b; the unittest passes."


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return load_scenario(scenario_file(tmp_path, required=("the unittest passes",)))


def imported(
    scenario: Scenario, kind: str, path: str | Path, *, seconds: int | None = None, which: str | None = None
) -> tuple[Trace, tuple[str, ...]]:
    return import_transcript(
        kind, AGENTS / path, scenario, run_id=RUN_ID, cell="c", seconds=seconds, which=which
    )


@pytest.mark.parametrize(
    ("kind", "path", "tokens", "model"),
    [
        ("claude-stream-json", "claude/success.jsonl", (6380, 145), "claude-sonnet-4-5"),
        ("claude-stream-json", "claude/success_v2.1.197.jsonl", (6380, 145), "claude-sonnet-4-5"),
        ("codex-jsonl", "codex/success.jsonl", (6380, 145), None),
        ("opencode-jsonl", "opencode/success.jsonl", (6380, 145), None),
        ("mini-trajectory", "mini/success.traj.json", (6380, 145), "openai/stub-model"),
        ("inspect-log", "inspect/success.json", (4720, 95), "mockllm/model"),
        ("inspect-log", "inspect/success.eval", (4720, 95), "mockllm/model"),
    ],
)
def test_a_recorded_success_scores_the_same_from_memory_and_from_disk(
    tmp_path: Path, scenario: Scenario, kind: str, path: str, tokens: tuple[int, int], model: str | None
) -> None:
    """All did the same work: three calls and an answer; the Inspect task has two calls."""
    trace, _ = imported(scenario, kind, path, seconds=3 if kind == "codex-jsonl" else None)
    assert trace.artifact == ANSWER
    assert trace.tokens == tokens
    assert trace.header.model == model
    result = scored_cell(scenario, trace)
    assert (result.passed, result.steps) == (True, 3 if kind == "inspect-log" else 4)
    assert scored_cell(scenario, read_trace(write_trace(tmp_path, trace))) == result


@pytest.mark.parametrize(
    ("kind", "path", "listed"),
    [
        ("claude-stream-json", "claude/success.jsonl", "blocks of type thinking: 1"),
        ("claude-stream-json", "claude/success.jsonl", "lines of type system/init: 1"),
        ("codex-jsonl", "codex/success.jsonl", "items of type reasoning: 1"),
        ("codex-jsonl", "codex/success.jsonl", "times: it has no clock"),
        ("mini-trajectory", "mini/success.traj.json", "texts of reasoning: 1"),
        ("inspect-log", "inspect/success.json", "events of type score: 1"),
        ("inspect-log", "inspect/limit.json", "the sample's limit: 1"),
    ],
)
def test_what_could_not_be_mapped_is_listed(scenario: Scenario, kind: str, path: str, listed: str) -> None:
    assert listed in imported(scenario, kind, path, seconds=1)[1]


@pytest.mark.parametrize(
    ("kind", "path", "steps"),
    [
        ("claude-stream-json", "claude/nochange.jsonl", 1),
        ("codex-jsonl", "codex/nochange.jsonl", 1),
        ("opencode-jsonl", "opencode/nochange.jsonl", 1),
        ("mini-trajectory", "mini/nochange.traj.json", 1),
        ("inspect-log", "inspect/no_answer.json", 1),
        ("inspect-log", "inspect/limit.json", 3),
    ],
)
def test_an_answer_without_a_call_is_a_step(scenario: Scenario, kind: str, path: str, steps: int) -> None:
    assert len(imported(scenario, kind, path, seconds=1)[0].of_type("step")) == steps


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("claude-stream-json", "claude/err401_no_retries.jsonl"),
        ("codex-jsonl", "codex/err401.jsonl"),
        ("opencode-jsonl", "opencode/err401.jsonl"),
        ("mini-trajectory", "mini/err401.traj.json"),
        ("inspect-log", "inspect/failed.json"),
    ],
)
def test_a_failed_api_measured_nothing(scenario: Scenario, kind: str, path: str) -> None:
    with pytest.raises(RefusedError, match="the model or its API failed"):
        imported(scenario, kind, path, seconds=1)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("claude-stream-json", "claude/killed_in_tool_sigkill.jsonl"),
        ("codex-jsonl", "codex/killed_in_tool_sigkill.jsonl"),
        ("opencode-jsonl", "opencode/killed_in_tool_sigkill.jsonl"),
    ],
)
def test_a_killed_run_has_no_end_and_is_refused(scenario: Scenario, kind: str, path: str) -> None:
    with pytest.raises(RefusedError, match="it has no end"):
        imported(scenario, kind, path, seconds=1)


def test_a_transcript_without_a_clock_needs_its_seconds_stated(scenario: Scenario) -> None:
    with pytest.raises(RefusedError, match="--seconds"):
        imported(scenario, "codex-jsonl", "codex/success.jsonl")
    assert imported(scenario, "codex-jsonl", "codex/success.jsonl", seconds=41)[0].seconds == 41


def test_a_sample_of_several_is_chosen_by_id_and_epoch(scenario: Scenario) -> None:
    path = "inspect/two_samples.eval"
    with pytest.raises(DocumentError, match="calc/1, calc/2, other/1, other/2"):
        imported(scenario, "inspect-log", path)
    with pytest.raises(DocumentError, match="several samples"):
        imported(scenario, "inspect-log", path, which="calc")
    with pytest.raises(DocumentError, match="no sample nobody"):
        imported(scenario, "inspect-log", path, which="nobody")
    assert imported(scenario, "inspect-log", path, which="other/2")[0].artifact == ANSWER


HARBOR = {
    "schema_version": "ATIF-v1.4",
    "session_id": "s",
    "agent": {"name": "terminus-2", "version": "2", "model_name": "m"},
    "steps": [
        {"step_id": 1, "timestamp": "2026-01-31T12:00:00Z", "source": "user", "message": "Fix it."},
        {
            "step_id": 2,
            "timestamp": "2026-01-31T12:00:02Z",
            "source": "agent",
            "message": "I look.",
            "tool_calls": [
                {"tool_call_id": "1", "function_name": "bash", "arguments": {"command": "ls"}},
                {"tool_call_id": "2", "function_name": "bash", "arguments": {"command": "cat a"}},
            ],
            "observation": {"results": [{"source_call_id": "1", "content": "a"}]},
        },
        {"step_id": 3, "timestamp": "2026-01-31T12:00:05.5Z", "source": "agent", "message": ANSWER},
    ],
    "final_metrics": {"total_prompt_tokens": 30, "total_completion_tokens": 4},
}


def test_a_harbor_trajectory_is_read(tmp_path: Path, scenario: Scenario) -> None:
    path = tmp_path / "trajectory [1].json"
    path.write_text(json.dumps(HARBOR))
    trace, unmapped = imported(scenario, "harbor-trajectory", path)
    assert (len(trace.of_type("step")), trace.seconds, trace.tokens, trace.artifact) == (
        3,
        5,
        (30, 4),
        ANSWER,
    )
    assert (trace.header.harness, trace.header.model) == ("terminus-2", "m")
    assert unmapped == ("steps of the user: 1",)
    with pytest.raises(DocumentError, match="ATIF"):
        imported(scenario, "harbor-trajectory", "mini/success.traj.json")


def test_an_agents_words_are_no_label_of_a_check(tmp_path: Path) -> None:
    """A transcript whose answer is exactly a check's name, as one that lies would be."""
    scenario = load_scenario(scenario_file(tmp_path, required=("python-tests",)))
    path = tmp_path / "lie.jsonl"
    lie = (AGENTS / "claude" / "success.jsonl").read_text().replace(ANSWER, "python-tests")
    path.write_text(lie)
    trace, _ = imported(scenario, "claude-stream-json", path)
    assert trace.artifact == "python-tests"
    assert scored_cell(scenario, trace).missing_evidence == ("python-tests",)


def test_an_unknown_format_and_a_missing_file_are_told(tmp_path: Path, scenario: Scenario) -> None:
    with pytest.raises(NotFoundError, match="did you mean codex-jsonl"):
        imported(scenario, "codex-json", "codex/success.jsonl")
    with pytest.raises(DocumentError, match="cannot be read"):
        imported(scenario, "codex-jsonl", tmp_path / "absent")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.sampled_from(sorted(FORMATS)), VALUES, st.integers(0, 4000), st.data())
def test_a_damaged_transcript_is_refused_in_words_or_read(
    tmp_path: Path, scenario: Scenario, kind: str, junk: object, place: int, data: st.DataObject
) -> None:
    """No value of a wrong type anywhere in it is a fault of ours."""
    source = {
        "claude-stream-json": "claude/success.jsonl",
        "codex-jsonl": "codex/success.jsonl",
        "opencode-jsonl": "opencode/success.jsonl",
        "mini-trajectory": "mini/success.traj.json",
        "inspect-log": "inspect/success.json",
        "harbor-trajectory": "",
    }[kind]
    text = (AGENTS / source).read_text() if source else json.dumps(HARBOR)
    rows = (
        [json.loads(line) for line in text.splitlines()] if source.endswith(".jsonl") else [json.loads(text)]
    )
    _spoil(rows, junk, place)
    path = tmp_path / "spoiled"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    try:
        trace, _ = imported(scenario, kind, path, seconds=1)
    except BenchError:
        return
    assert trace.events[-1].type == "end"


def _spoil(rows: list[object], junk: object, place: int) -> None:
    """Put ``junk`` in the place of one value, counted through all of them."""
    places: list[tuple[object, object]] = []
    left: list[object] = [rows]
    while left:
        value = left.pop()
        keys = (
            list(value)
            if isinstance(value, dict)
            else list(range(len(value)))
            if isinstance(value, list)
            else []
        )
        for key in keys:
            places.append((value, key))
            left.append(value[key])  # type: ignore[index]
    holder, key = places[place % len(places)]
    holder[key] = junk  # type: ignore[index]
