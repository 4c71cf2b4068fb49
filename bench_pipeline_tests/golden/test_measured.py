"""Results of cells that were executed: read off verdicts and evidence, not told."""

import json
from typing import Any

import pytest

from bench_pipeline.errors import NotFoundError
from bench_pipeline.golden.judgements import Judgement, JudgementRecord, Judgements
from bench_pipeline.golden.measured import measured_row, told_apart
from bench_pipeline.golden.results import settle
from bench_pipeline.tables import table_schema
from bench_pipeline.tasks.signals import parse_signal
from bench_pipeline_tests.golden.results import task

GOLDEN = task(
    "add-totals",
    signals=tuple(map(parse_signal, ("path_exists: a.py", "test_passes: make test", "It reads well."))),
    owned_files=("src",),
)
SIGNALS: dict[str, Any] = {
    "schema": 1,
    "signals": [
        {"signal": "path_exists: a.py", "kind": "path_exists", "passed": True, "detail": None},
        {"signal": "test_passes: make test", "kind": "test_passes", "passed": True, "detail": None},
    ],
    "tests": [{"command": "make test", "expected": True, "before": False, "after": True}],
    "files_modified": ["src/a.py"],
    "missing_modules": [],
}
VERDICT: dict[str, Any] = {
    "identity": "1" * 64,
    "evaluation": "nightly",
    "setup": "tool/model/-",
    "setup_digest": "d",
    "attempt": 1,
    "tier": "smoke",
    "task_id": "add-totals",
    "outcome": "passed",
    "reason": None,
    "signal": None,
    "orphans": 0,
    "duration_s": 30.0,
    "cost_usd": 0.2,
    "artifacts": [("signals", "s"), ("patch", "p")],
}


def row(
    verdict: dict[str, Any] | None = None,
    signals: dict[str, Any] | None = None,
    judged: Judgements | None = None,
    **artifacts: Any,
) -> dict[str, Any]:
    kept = {"s": SIGNALS | (signals or {}), **artifacts}

    def get(digest: str) -> bytes:
        if digest not in kept:
            raise NotFoundError("opening an artifact", "it is not there")
        return json.dumps(kept[digest]).encode()

    found = measured_row(VERDICT | (verdict or {}), GOLDEN, judged or Judgements(), get)
    return settle(table_schema("task_results").from_rows([found])).to_pylist()[0]


def test_a_cell_whose_signals_hold_passed() -> None:
    found = row()
    assert (found["passed"], found["source"], found["telemetry_valid"]) == (True, "executed", True)
    assert (found["signals_checked"], found["signals_passed"], found["tests_failed"]) == (2, 2, 0)
    assert (found["files_modified"], found["out_of_scope"], found["candidate"]) == (1, [], "p")


def test_the_formula_decides_and_not_the_outcome() -> None:
    failed = [SIGNALS["signals"][0] | {"passed": False}]
    assert row(signals={"signals": failed})["passed"] is False
    assert row({"outcome": "failed"})["passed"] is True


@pytest.mark.parametrize("outcome", ["not_attempted", "infrastructure_error", "adapter_error"])
def test_a_cell_that_measured_nothing_was_not_attempted(outcome: str) -> None:
    found = row({"outcome": outcome, "reason": "the API was down", "signal": 9, "orphans": 3})
    assert (found["attempted"], found["telemetry_valid"], found["passed"]) == (False, False, None)
    assert (found["crashes"], found["orphans"], found["duration_s"]) == (0, 0, None)
    assert found["failure_details"] == f"{outcome}: the API was down"


def test_a_timeout_is_a_measured_failure_and_never_a_pass() -> None:
    found = row({"outcome": "timeout", "artifacts": [], "signal": 9})
    assert (found["attempted"], found["telemetry_valid"], found["passed"]) == (True, True, False)
    assert (found["failure_category"], found["signals_checked"], found["crashes"]) == ("timeout", 3, 0)


def test_a_tool_that_dies_of_a_signal_crashed_and_orphans_are_counted() -> None:
    found = row({"outcome": "failed", "signal": 11, "orphans": 2})
    assert (found["crashes"], found["orphans"]) == (1, 2)


@pytest.mark.parametrize(
    ("before", "after", "expected", "failed", "regressed"),
    [
        (True, False, True, 1, 1),
        (False, False, True, 1, 0),
        (None, False, True, 1, 0),
        (True, True, True, 0, 0),
        (True, False, False, 0, 0),
        (False, True, False, 1, 0),
        (True, None, True, 1, 1),
    ],
)
def test_a_regression_is_a_command_that_passed_at_the_start_and_fails_or_hangs_after(
    before: bool | None, after: bool | None, expected: bool, failed: int, regressed: int
) -> None:
    tests = [{"command": "make test", "expected": expected, "before": before, "after": after}]
    found = row(signals={"tests": tests})
    assert (found["tests_failed"], found["tests_regressed"]) == (failed, regressed)


def test_a_change_that_does_not_apply_is_a_conflict() -> None:
    found = row({"outcome": "patch_apply_failed", "artifacts": []})
    assert (found["failure_category"], found["passed"]) == ("conflict", False)


def test_names_that_do_not_exist_are_a_hallucination_and_files_outside_a_scope_creep() -> None:
    failed = [SIGNALS["signals"][0] | {"passed": False}]
    found = row(signals={"missing_modules": ["totals.sum"], "signals": failed})
    assert found["failure_category"] == "hallucination"
    assert row(signals={"files_modified": ["setup.py"]})["warnings"] == [
        "changed outside its files: setup.py"
    ]


def test_files_read_are_known_only_where_the_transcript_tells() -> None:
    artifacts = [("signals", "s"), ("activity", "a")]
    told = {"schema": 1, "files_read": ["x", "y", "x"], "files_written": None, "commands": None}
    assert row({"artifacts": artifacts}, a=told)["files_read"] == 2
    assert row({"artifacts": artifacts}, a=told | {"files_read": None})["files_read"] is None
    assert row()["files_read"] is None


def test_a_signal_in_free_text_waits_for_a_judge_of_this_very_change() -> None:
    free = {"signal": "It reads well.", "kind": "free_text", "passed": None, "detail": None}
    signals = {"signals": [*SIGNALS["signals"], free]}
    marks = dict.fromkeys(("correctness", "style", "test_coverage", "safety"), 5)
    named = JudgementRecord(task_id="add-totals", signals_passed=("It reads well.",), **marks)
    assert row(signals=signals)["passed"] is False
    found = row(signals=signals, judged=Judgements({"add-totals": Judgement(named, "p")}))
    assert (found["passed"], found["judge_score"]) == (True, 1.0)
    other = row(signals=signals, judged=Judgements({"add-totals": Judgement(named, "q")}))
    assert (other["passed"], other["judged"]) == (False, "not_judged")


@pytest.mark.parametrize("kept", [{"signals": "none"}, {"signals": [{"signal": 1}]}, {"tests": [{}]}])
def test_evidence_that_is_gone_or_damaged_is_no_valid_telemetry(kept: dict[str, Any]) -> None:
    assert row(signals=kept)["telemetry_valid"] is False
    gone = row({"artifacts": [("signals", "gone")]})
    assert (gone["telemetry_valid"], gone["attempted"], gone["passed"]) == (False, True, None)
    assert "cannot be read" in gone["telemetry_problem"]


def test_a_cell_of_two_evaluations_counts_once_and_two_cells_are_told_apart_by_them() -> None:
    twin = VERDICT | {"evaluation": "weekly"}
    assert len(told_apart([VERDICT, twin])) == 1
    other = twin | {"identity": "2" * 64}
    assert [found["setup"] for found in told_apart([VERDICT, other])] == [
        "tool/model/- (nightly)",
        "tool/model/- (weekly)",
    ]
