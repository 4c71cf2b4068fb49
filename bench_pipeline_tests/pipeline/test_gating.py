"""Gates: what passes, what fails, and what is never a pass."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest

from bench_pipeline.errors import NotFoundError, UsageError
from bench_pipeline.pipeline.gating import EXIT_CODES, GateDecision, GateTerms, gate
from bench_pipeline.tables import table_schema
from bench_pipeline_tests.outcomes import Result, sha, tables, tasks


def decide(
    baseline: Mapping[str, Sequence[Result]], candidate: Mapping[str, Sequence[Result]], **terms: object
) -> GateDecision:
    cells, verdicts = tables({"old": baseline, "new": candidate}, cost_usd=0.5)
    return gate(
        cells, verdicts, evaluation="nightly", baseline="old", candidate="new", terms=GateTerms(**terms)
    )


def reason(decision: GateDecision) -> object:
    assert decision.document["passed"] is (decision.exit_code == 0)
    assert decision.exit_code == EXIT_CODES[str(decision.document["reason"])]
    return decision.document["reason"]


MANY = 400


def test_a_candidate_that_is_as_good_passes_and_every_check_says_its_limit() -> None:
    decision = decide(tasks(*[True, False] * (MANY // 2)), tasks(*[True, False] * (MANY // 2)))
    assert reason(decision) == "passed"
    document = decision.document
    assert (document["shared_tasks"], document["difference"]) == (MANY, 0.0)
    assert document["checks"] == [
        {"name": "min_tasks", "value": MANY, "limit": 10, "passed": True},
        {"name": "non_inferiority", "value": document["diff_low"], "limit": -0.05, "passed": True},
    ]
    assert {
        "gate",
        "passed",
        "reason",
        "shared_tasks",
        "difference",
        "diff_low",
        "diff_high",
        "checks",
    } <= set(document)


def test_a_regression_fails_and_the_difference_is_candidate_minus_baseline() -> None:
    decision = decide(tasks(*[True] * 40), tasks(*[True] * 20, *[False] * 20))
    assert (reason(decision), decision.exit_code) == ("failed", 4)
    assert decision.document["difference"] == -0.5


def test_a_loss_that_cannot_be_excluded_fails() -> None:
    decision = decide(tasks(*[True, False] * 10), tasks(*[True, False] * 10))
    assert (reason(decision), decision.exit_code) == ("failed", 4)
    assert "cannot be excluded" in str(decision.document["detail"])
    assert reason(decide(tasks(*[True, False] * 10), tasks(*[True, False] * 10), margin=0.5)) == "passed"


def test_too_few_tasks_are_insufficient_however_they_look() -> None:
    decision = decide(tasks(True, False, True), tasks(True, True, True))
    assert (reason(decision), decision.exit_code) == ("insufficient", 3)
    assert reason(decide(tasks(*[True] * 30), tasks(*[True] * 30), min_tasks=31)) == "insufficient"


def test_without_an_interval_nothing_passes() -> None:
    """Equal scores between 0 and 1 have no variance, and no exact interval either."""
    half = {f"t{place}": [True, False] for place in range(20)}
    decision = decide(half, half)
    assert (reason(decision), decision.exit_code) == ("insufficient", 3)
    assert decision.document["diff_low"] is None


def test_a_shown_regression_fails_even_on_few_tasks() -> None:
    assert reason(decide(tasks(*[True] * 8), tasks(*[False] * 8))) == "failed"


@pytest.mark.parametrize("gap", ["timeout", None])
def test_an_unfinished_selection_is_incomplete_and_says_how_to_finish_it(gap: Result) -> None:
    decision = decide(tasks(*[True] * 30), tasks(*[True] * 29, gap))
    assert (reason(decision), decision.exit_code) == ("incomplete", 3)
    assert "bench run nightly --task t029" in str(decision.document["detail"])


def test_a_candidate_planned_on_fewer_tasks_is_incomplete() -> None:
    assert reason(decide(tasks(*[True] * 30), tasks(*[True] * 29))) == "incomplete"


def test_an_empty_selection_is_nothing_evaluated() -> None:
    decision = decide(tasks(*[None] * 20), tasks(*[None] * 20))
    assert (reason(decision), decision.exit_code) == ("nothing evaluated", 5)
    empty = [table_schema(name).empty() for name in ("evaluation_cells", "verdicts")]
    decision = gate(*empty, evaluation="nightly", baseline="old", candidate="new")
    assert (reason(decision), decision.exit_code) == ("nothing evaluated", 5)
    assert decision.document["shared_tasks"] == 0


def test_a_selection_over_two_contents_of_a_task_is_mixed_and_never_passes() -> None:
    cells, verdicts = tables({"old": tasks(*[True] * 100), "new": tasks(*[True] * 100)})
    digests = cells["task_digest"].to_pylist()
    digests[0] = sha("before")
    place = cells.schema.get_field_index("task_digest")
    cells = cells.set_column(place, "task_digest", pa.array(digests))
    decision = gate(cells, verdicts, evaluation="nightly", baseline="old", candidate="new")
    assert (reason(decision), decision.exit_code) == ("mixed", 3)


def test_a_rate_and_a_cost_that_were_asked_for_are_checked() -> None:
    good, poor = tasks(*[True] * MANY), tasks(*[True] * 100, *[False] * 300)
    assert reason(decide(good, good, min_rate=0.9, max_cost=0.5 * MANY)) == "passed"
    assert reason(decide(poor, poor, min_rate=0.9)) == "failed"
    decision = decide(good, good, max_cost=1.0)
    assert reason(decision) == "failed"
    assert decision.document["checks"][-1] == {
        "name": "max_cost",
        "value": 0.5 * MANY,
        "limit": 1.0,
        "passed": False,
    }


def test_an_unknown_cost_is_insufficient_rather_than_free() -> None:
    cells, verdicts = tables({"old": tasks(*[True] * MANY), "new": tasks(*[True] * MANY)})
    terms = GateTerms(max_cost=1.0)
    decision = gate(cells, verdicts, evaluation="nightly", baseline="old", candidate="new", terms=terms)
    assert reason(decision) == "insufficient"


def test_alpha_sets_the_level_of_the_interval() -> None:
    old, new = tasks(*[True, False] * 20), tasks(*[True, True, False, False] * 10)
    wide, narrow = decide(old, new, alpha=0.01).document, decide(old, new, alpha=0.2).document
    assert wide["diff_low"] < narrow["diff_low"] < narrow["diff_high"] < wide["diff_high"]


def test_unknown_and_equal_setups_are_refused() -> None:
    cells, verdicts = tables({"old": tasks(True), "new": tasks(True)})
    with pytest.raises(NotFoundError, match="nearest: new"):
        gate(cells, verdicts, evaluation="nightly", baseline="old", candidate="mew")
    with pytest.raises(UsageError, match="same setup"):
        gate(cells, verdicts, evaluation="nightly", baseline="old", candidate="old")


@pytest.mark.parametrize(
    "terms",
    [
        {"margin": -0.1},
        {"margin": 1.0},
        {"alpha": 0.0},
        {"alpha": 0.9},
        {"min_tasks": 0},
        {"min_rate": 1.5},
        {"max_cost": -1.0},
        {"max_cost": float("nan")},
        {"margin": float("nan")},
    ],
)
def test_terms_that_make_no_sense_are_refused(terms: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(terms)).replace("_", "-")):
        GateTerms(**terms)
