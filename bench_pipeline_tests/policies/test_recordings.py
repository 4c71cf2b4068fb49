"""Recordings are read strictly, replayed from the start by each policy, and written so that a replay equals the run."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.errors import RefusedError
from bench_pipeline.policies.comparing import Terms, run_attempt
from bench_pipeline.policies.digests import indented_json
from bench_pipeline.policies.inputs import InputError
from bench_pipeline.policies.recordings import Recording, Replay, read_recording, recorded
from bench_pipeline_tests.policies.orchard import ORCHARD, case_set, recording, written

SETTINGS = {"temperature": 0, "max_tokens": 128}
GOOD = {"kind": "authored_fixture", "model": "m", "settings": SETTINGS, "responses": {"p": [{"answer": "e"}]}}
CASES = case_set(("a", "p", "e"), ("b", "p", "e"), ("c", "p", "e"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "live"}, "expected 'authored_fixture' or 'recorded_provider'"),
        ({"model": " "}, "is blank"),
        ({"settings": {"temperature": 2.1, "max_tokens": 1}}, "at most 2"),
        ({"settings": {"temperature": -0.1, "max_tokens": 1}}, "at least 0"),
        ({"settings": {"temperature": "0", "max_tokens": 1}}, "without quotes"),
        ({"settings": {"temperature": 0, "max_tokens": 0}}, "at least 1"),
        ({"settings": {"temperature": 0, "max_tokens": 1.5}}, "a whole number"),
        ({"settings": {"temperature": True, "max_tokens": 1}}, "a finite number"),
        ({"responses": {"p": []}}, "at least 1"),
        ({"responses": {"p": [{"answer": "e"}] * 33}}, "at most 32"),
        ({"responses": {"p": [{"error": "x"}]}}, "is required"),
        ({"responses": {"p": [{"answer": None}]}}, "expected text"),
        ({"responses": []}, "expected a mapping"),
        ({"more": 1}, "is not a known field"),
        ({"version": 3}, "expected 2"),
    ],
)
def test_a_recording_that_says_something_else_is_refused(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    with pytest.raises(InputError) as error:
        read_recording(written(tmp_path / "recording.json", {**GOOD, **change}))
    assert error.value.reason == "decode"
    assert said in str(error.value)


def test_a_recording_without_an_object_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a recording"):
        read_recording(written(tmp_path / "recording.json", []))


def test_missing_prompts_and_answers_past_the_end_are_counted_errors_without_wrapping_around() -> None:
    cases = case_set(("a", "p", "e"), ("b", "p", "e"), ("c", "gone", "e"))
    (baseline, _, _) = run_attempt(cases, Replay(recording({"p": [("e", "")]})), Terms(9, 60), 1).results
    assert (baseline.tally.correct, baseline.tally.errors, baseline.tally.state) == (1, 2, "completed")
    assert [call.failure and call.failure.split(":")[0] for call in baseline.tally.calls] == [
        None,
        "not_recorded",
        "not_recorded",
    ]


def test_each_policy_reads_the_answers_from_the_start() -> None:
    answers = {"p": [("e", ""), ("wrong", ""), ("e", "")]}
    results = run_attempt(CASES, Replay(recording(answers)), Terms(9, 60), 1).results
    assert [result.tally.correct for result in results] == [2, 2, 2]


def test_prompts_are_matched_exactly() -> None:
    cases = case_set(("a", "P", "e"), ("b", "p ", "e"))
    (baseline, _, _) = run_attempt(cases, Replay(recording({"p": [("e", "")]})), Terms(9, 60), 1).results
    assert baseline.tally.errors == 2


def test_a_failed_call_keeps_the_reason_and_is_never_correct() -> None:
    results = run_attempt(
        case_set(("a", "p", "e")), Replay(recording({"p": [("e", "down")]})), Terms(9, 60), 1
    ).results
    (call,) = results[0].tally.calls
    assert (call.failure, call.correct, call.latency_s) == ("down", False, None)


def separate(runs: object) -> dict[str, object]:
    head = {name: value for name, value in GOOD.items() if name != "responses"}
    return {"version": 2, **head, "runs": runs}


def test_version_2_keeps_the_answers_of_policies_and_attempts_apart(tmp_path: Path) -> None:
    runs = [
        {"policy": policy, "attempt": attempt, "responses": {"p": [{"answer": answer}]}}
        for policy, attempt, answer in (("baseline", 1, "e"), ("retry-errors", 1, "x"), ("evidence", 1, "e"))
    ]
    model = Replay(read_recording(written(tmp_path / "recording.json", separate(runs))))
    results = run_attempt(case_set(("a", "p", "e")), model, Terms(9, 60), 1).results
    assert [result.tally.correct for result in results] == [1, 0, 1]
    with pytest.raises(RefusedError, match="the recording holds baseline 1, evidence 1, retry-errors 1"):
        run_attempt(case_set(("a", "p", "e")), model, Terms(9, 60), 2)


def test_two_runs_of_one_policy_and_attempt_are_a_conflict(tmp_path: Path) -> None:
    run = {"policy": "baseline", "attempt": 1, "responses": {}}
    with pytest.raises(InputError) as error:
        read_recording(written(tmp_path / "recording.json", separate([run, run])))
    assert error.value.reason == "conflict"


def test_order_of_prompts_and_runs_does_not_change_the_digest(tmp_path: Path) -> None:
    text = json.loads((ORCHARD / "recording.json").read_text())
    text["responses"] = dict(reversed(text["responses"].items()))
    turned = Replay(read_recording(written(tmp_path / "recording.json", text)))
    assert turned.config == Replay(read_recording(ORCHARD / "recording.json")).config


ANSWERS = st.lists(
    st.tuples(
        st.text(st.characters(exclude_categories=("Cs",)), max_size=5), st.sampled_from(["", "", "down"])
    ),
    min_size=1,
    max_size=6,
)


@given(st.dictionaries(st.sampled_from(["p", "q"]), ANSWERS), st.integers(0, 8), st.integers(1, 3))
def test_a_replay_of_what_was_recorded_equals_the_run(
    tmp_path_factory: pytest.TempPathFactory,
    answers: dict[str, list[tuple[str, str]]],
    budget: int,
    attempts: int,
) -> None:
    cases = case_set(("a", "p", "e"), ("b", "q", ""), ("c", "p", "e", ["x"]), ("d", "q", "e"))
    model, terms = Replay(recording(answers)), Terms(budget, 60)
    ran = [run_attempt(cases, model, terms, number) for number in range(1, attempts + 1)]
    path = tmp_path_factory.getbasetemp() / "recorded.json"
    path.write_text(indented_json(recorded(ran).document()), encoding="utf-8")
    again = Replay(read_recording(path))
    for attempt in ran:
        replayed = run_attempt(cases, again, terms, attempt.number)
        assert [result.tally for result in replayed.results] == [result.tally for result in attempt.results]


def test_version_1_holds_one_run_and_at_most_32_answers_to_a_prompt() -> None:
    cases = case_set(*((str(number), "p", "e") for number in range(40)))
    ran = run_attempt(
        cases, Replay(recording({"p": [("e", "")]})), Terms(32, 60, (Terms(0, 1).policies[0],)), 1
    )
    assert set(recorded([ran], version=1).document()) == {"kind", "model", "settings", "responses"}
    longer = run_attempt(
        cases, Replay(recording({"p": [("e", "")]})), Terms(33, 60, (Terms(0, 1).policies[0],)), 1
    )
    with pytest.raises(RefusedError, match="at most 32 answers"):
        recorded([longer], version=1)


def test_a_recording_of_a_live_run_says_so() -> None:
    ran = run_attempt(CASES, Replay(recording({})), Terms(9, 60), 1)
    assert recorded([ran]).kind == "recorded_provider"
    assert isinstance(recorded([ran]), Recording)
