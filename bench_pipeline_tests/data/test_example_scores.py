"""The telemetry of the example project: it is valid, and each of its attempts shows what the tour says."""

from pathlib import Path
from typing import Any

import pytest

from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.golden_scores import ScoreRequest, Scores, make_scores

DATA = Path(__file__).resolve().parents[2] / "data"
SETUPS = ("patient-agent", "hasty-agent")


@pytest.fixture(scope="module")
def scores() -> Scores:
    return make_scores(Bench(DATA, read_only=True), ScoreRequest(save=False))


def row(scores: Scores, setup: str, attempt: int) -> dict[str, Any]:
    (found,) = (
        item.row for item in scores.scores if (item.row["setup"], item.row["attempt"]) == (setup, attempt)
    )
    return found


def failures(scores: Scores, setup: str, attempt: int) -> dict[str, str]:
    (run,) = (item.run for item in scores.scores if (item.run.setup, item.run.attempt) == (setup, attempt))
    return {failure.task: failure.category for failure in run.failures}


def test_every_record_and_judgement_is_valid(scores: Scores) -> None:
    assert scores.gathered is not None
    assert not scores.gathered.problems
    assert not scores.gathered.conflicts
    for setup in SETUPS:
        for attempt in (1, 2, 3):
            assert row(scores, setup, attempt)["complete"]


def test_a_regression_makes_a_score_zero_and_the_reason_stands_beside_it(scores: Scores) -> None:
    found = row(scores, "hasty-agent", 2)
    assert (found["score"], found["safety"]) == (0.0, 0.0)
    assert found["reasons"] == ["safety 0: tests that passed fail after it: orders-migration"]
    assert failures(scores, "hasty-agent", 2) == {"orders-migration": "test_regression"}


def test_a_scope_creep_a_timeout_and_an_unknown_cost_are_told(scores: Scores) -> None:
    assert failures(scores, "hasty-agent", 1) == {"receipt-refunds": "scope_creep"}
    assert failures(scores, "patient-agent", 2) == {"orders-migration": "timeout"}
    unknown = row(scores, "patient-agent", 3)
    assert (unknown["cost_unknown"], unknown["judge_failed"]) == (1, 1)
    assert any("cost half is 0" in reason for reason in unknown["reasons"])


def test_the_patient_agent_leads_in_every_attempt(scores: Scores) -> None:
    for attempt in (1, 2, 3):
        better, worse = (row(scores, setup, attempt)["score"] for setup in SETUPS)
        assert better > worse
    assert row(scores, "patient-agent", 1)["score"] == pytest.approx(0.934, abs=1e-3)
