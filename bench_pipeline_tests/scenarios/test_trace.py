"""Traces: read strictly, written so that they read back, and measured alike in memory and from disk."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench_pipeline.errors import DocumentError, NotFoundError, RefusedError, UsageError
from bench_pipeline.scenarios import find_trace, load_scenario, read_trace, scored_cell, write_trace
from bench_pipeline.scenarios.checks import CHECK_NAMES
from bench_pipeline.scenarios.trace import MAX_TEXT, make_trace, new_run_id, time_text
from bench_pipeline_tests.scenarios.making import RUN_ID, START, scenario_file, trace_file

END = {"type": "end", "time": "2026-01-31T12:00:07.900Z"}


def _refused(path: Path) -> str:
    with pytest.raises(DocumentError) as raised:
        read_trace(path)
    return str(raised.value)


def test_steps_seconds_evidence_and_tokens_are_derived(tmp_path: Path) -> None:
    path = trace_file(
        tmp_path,
        {"type": "step", "tool": "bash", "summary": "ls", "time": "2026-01-31T12:00:01Z"},
        {"type": "artifact", "text": "first draft"},
        {"type": "evidence", "text": "python-tests"},
        {"type": "step"},
        {"type": "usage", "prompt_tokens": 10, "completion_tokens": 2},
        {"type": "artifact", "text": "the answer"},
        {"type": "usage", "prompt_tokens": 5, "completion_tokens": 1},
        END,
    )
    trace = read_trace(path)
    measured = trace.measured()
    assert (measured.steps, measured.seconds) == (2, 7)
    assert [(item.text, item.passed_check) for item in measured.evidence] == [
        ("python-tests", "python-tests"),
        ("the answer", None),
    ]
    assert trace.tokens == (15, 3)


def test_stated_seconds_stand_for_a_clock(tmp_path: Path) -> None:
    path = trace_file(tmp_path, {"type": "step"}, {"type": "end", "seconds": 12}, started_at=None)
    assert read_trace(path).measured().seconds == 12


def test_unknown_seconds_refuse_to_score(tmp_path: Path) -> None:
    trace = read_trace(trace_file(tmp_path, {"type": "step"}, {"type": "end"}))
    with pytest.raises(RefusedError, match="seconds are unknown"):
        trace.measured()


def test_usage_that_does_not_say_leaves_tokens_unknown(tmp_path: Path) -> None:
    path = trace_file(tmp_path, {"type": "usage", "prompt_tokens": 3}, END)
    assert read_trace(path).tokens == (3, None)


def test_a_check_that_failed_is_evidence_of_nothing(tmp_path: Path) -> None:
    check = {"name": "python-tests", "passed": False, "commands": ["python3 -m unittest"]}
    path = trace_file(tmp_path, {"type": "evidence", "text": "python-tests failed", "check": check}, END)
    assert read_trace(path).measured().evidence == ()


def test_an_artifact_is_no_label_of_a_check(tmp_path: Path) -> None:
    path = trace_file(tmp_path, {"type": "artifact", "text": "python-tests"}, END)
    assert [item.passed_check for item in read_trace(path).measured().evidence] == [None]


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([{"type": "step"}], ":2: the run has no end"),
        ([{"type": "step"}, {"type": "end", "seq": 3}], ":3: seq: expected 2, found 3"),
        ([{"type": "step", "seq": 0}, END], ":2: seq: "),
        ([{"type": "step", "time": "2026-01-31T11:59:59Z"}, END], ":2: time: 2026-01-31T11:59:59Z goes back"),
        ([{"type": "step", "time": "2026-01-31T12:00:09Z"}, END], ":3: time: "),
        ([{"type": "step", "time": "2026-01-31T12:00:01+02:00"}, END], ":2: time: "),
        ([{"type": "step", "time": "noon"}, END], ":2: time: "),
        ([{"type": "thought"}, END], ":2: type: "),
        ([{"type": "evidence"}, END], ":2: an event of type evidence needs text"),
        ([{"type": "step", "text": "x"}, END], ":2: an event of type step has no text"),
        ([{"type": "usage", "prompt_tokens": -1}, END], ":2: prompt_tokens: "),
        ([END, {"type": "step"}], ":3: is an event after the end"),
        ([{"type": "step"}, END, {"run_id": RUN_ID}], ":4: is the header of a second run"),
        ([{"type": "step", "colour": "red"}, END], ":2: colour: "),
    ],
)
def test_what_cannot_be_scored_is_refused_with_its_line(
    tmp_path: Path, events: list[dict[str, object]], said: str
) -> None:
    path = trace_file(tmp_path, *events)
    assert f"{path}{said}" in _refused(path)


def test_a_broken_line_a_cut_line_and_an_empty_file_are_told(tmp_path: Path) -> None:
    path = trace_file(tmp_path, {"type": "step"}, END)
    whole = path.read_text()
    path.write_text(whole.replace('{"seq": 1', '{"seq": 1,,'))
    assert f"{path}:2: is not a JSON row" in _refused(path)
    path.write_text(whole.rstrip()[:-3])
    assert f"{path}:3: the last line is cut off" in _refused(path)
    path.write_text("")
    assert "holds no run" in _refused(path)


def test_a_header_of_another_run_or_schema_is_refused(tmp_path: Path) -> None:
    path = trace_file(tmp_path, END)
    other = path.with_name(f"{new_run_id()}.jsonl")
    path.rename(other)
    assert "expected the file's name" in _refused(other)
    assert ":1: schema: " in _refused(trace_file(tmp_path, END, schema=2))


@pytest.mark.parametrize(
    "run_id", ["../../etc/passwd", "x", RUN_ID.upper(), RUN_ID + "\n", "", f"a/{RUN_ID}"]
)
def test_an_id_that_is_no_uuid_never_becomes_a_path(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(UsageError, match="is no run id"):
        find_trace([tmp_path], run_id)


def test_a_trace_that_is_not_there_is_told_with_the_places(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"one/.*, .*two/"):
        find_trace([tmp_path / "one", tmp_path / "two"], RUN_ID)


def test_a_trace_is_never_overwritten(tmp_path: Path) -> None:
    trace = make_trace({"run_id": RUN_ID, "scenario": "s"}, [END])
    path = write_trace(tmp_path, trace)
    before = path.read_bytes()
    with pytest.raises(RefusedError, match="never overwritten"):
        write_trace(tmp_path, make_trace({"run_id": RUN_ID, "scenario": "t"}, [END]))
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_a_huge_text_is_cut_and_says_so() -> None:
    trace = make_trace(
        {"run_id": RUN_ID, "scenario": "s"}, [{"type": "artifact", "text": "x" * (MAX_TEXT + 5)}, END]
    )
    assert trace.artifact is not None
    assert trace.artifact.endswith("x\n[cut: 5 more characters]")


TEXT = st.text(st.characters(), max_size=20) | st.sampled_from(sorted(CHECK_NAMES))
EVENTS = st.lists(
    st.one_of(
        st.fixed_dictionaries({"type": st.just("step"), "summary": TEXT, "time": st.integers(-3, 40)}),
        st.fixed_dictionaries({"type": st.just("evidence"), "text": TEXT}),
        st.builds(
            lambda name, passed: {
                "type": "evidence",
                "text": name,
                "check": {"name": name, "passed": passed},
            },
            st.sampled_from(sorted(CHECK_NAMES)),
            st.booleans(),
        ),
        st.fixed_dictionaries({"type": st.just("artifact"), "text": TEXT}),
        st.fixed_dictionaries(
            {
                "type": st.just("usage"),
                "prompt_tokens": st.none() | st.integers(0, 9),
                "completion_tokens": st.just(1),
            }
        ),
    ),
    max_size=12,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    EVENTS,
    st.integers(0, 60_000_000),
    st.lists(st.sampled_from([*sorted(CHECK_NAMES), "a", "é"]), unique=True),
)
def test_a_run_and_the_replay_of_its_trace_score_alike(
    tmp_path: Path, events: list[dict[str, object]], micros: int, required: list[str]
) -> None:
    """Whatever a run holds, lone surrogates and clocks that go back included."""
    scenario = load_scenario(scenario_file(tmp_path, required=tuple(required)))
    start = datetime.fromisoformat(START)
    for event in events:
        if "time" in event:
            event["time"] = time_text(start + timedelta(seconds=int(str(event["time"]))))
    end = {"type": "end", "time": time_text(start + timedelta(microseconds=micros))}
    header = {
        "run_id": new_run_id(),
        "scenario": scenario.name,
        "started_at": time_text(start.astimezone(UTC)),
    }
    live = make_trace(header, [*events, end])
    replayed = read_trace(write_trace(tmp_path / "traces", live))
    assert scored_cell(scenario, live) == scored_cell(scenario, replayed)
    assert live.seconds == micros // 1_000_000
    assert replayed == live


def test_a_trace_of_another_scenario_is_refused(tmp_path: Path) -> None:
    trace = read_trace(trace_file(tmp_path, END, scenario="another"))
    with pytest.raises(RefusedError, match=r'"another".*"fix the sum"'):
        scored_cell(load_scenario(scenario_file(tmp_path)), trace)


def test_lines_end_at_line_feeds_only(tmp_path: Path) -> None:
    text = "a\u2028b\u0085c\fd"
    path = trace_file(tmp_path, {"type": "artifact", "text": text}, END)
    path.write_bytes(
        b"\xef\xbb\xbf"
        + b"\r\n\r\n".join(
            json.dumps(json.loads(line), ensure_ascii=False).encode()
            for line in path.read_text().splitlines()
        )
    )
    assert read_trace(path).artifact == text
