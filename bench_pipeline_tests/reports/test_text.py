"""The wording of rankings, comparisons and gates."""

import pytest

from bench_pipeline.reports.text import (
    Note,
    comparison_display,
    comparison_lines,
    cost_text,
    counts_text,
    flip_display,
    gate_lines,
    percent,
    ranking_display,
    ranking_notes,
    rate_text,
    seconds_text,
)


def row(setup: str, **values: object) -> dict[str, object]:
    return {
        "ranked": True,
        "rank": 1,
        "band_low": 1,
        "band_high": 2,
        "setup": setup,
        "setup_digest": f"digest of {setup}",
        "shared_tasks": 10,
        "total": 10,
        "attempted": 10,
        "measured": 10,
        "passed": 7,
        "pass_rate": 0.7,
        "rate_low": 0.4,
        "rate_high": 0.9,
        "method": "wilson n=10",
        "cost_usd": None,
        "cost_known": 0,
        "cost_unknown": 10,
        "tokens": None,
        "patch_lines": 1234,
        "duration_s": 5.0,
        "missing": [],
        **values,
    }


def pair(a: str, b: str, difference: float, p_holm: float | None) -> dict[str, object]:
    facts = {"p_value": p_holm and p_holm / 2, "method": "paired t, n=10 tasks; exact McNemar n=10 tasks"}
    return {"setup_a": a, "setup_b": b, "difference": difference, "p_holm": p_holm, **facts}


def test_a_cost_says_over_how_many_cells_it_is_and_unknown_is_a_dash() -> None:
    assert cost_text(1.0, 1, 1) == "1.00 USD over 1 of 2 cells"
    assert cost_text(None, 0, 2) == "-"


def test_counts_name_both_denominators_and_the_plan_where_it_is_larger() -> None:
    assert counts_text(row("a")) == "7/10 measured, 10 attempted"
    assert counts_text(row("a", passed=1, measured=1, total=12)) == "1/1 measured, 10 attempted of 12"


def test_a_rate_stands_beside_its_interval() -> None:
    assert rate_text(0.7, 0.397, 0.892) == "70.0% (39.7 to 89.2)"
    assert rate_text(0.5, None, None) == "50.0% (no interval)"
    assert rate_text(None, None, None) == percent(None) == "-"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (9.51, "9.5s"), (59.96, "1m00s"), (65.0, "1m05s"), (3599.9, "1h00m"), (3725.0, "1h02m")],
)
def test_durations_are_short(seconds: float | None, text: str) -> None:
    assert seconds_text(seconds) == text


def test_a_ranking_row_is_shown_with_dashes_for_the_unknown() -> None:
    assert ranking_display(row("a"))["band"] == "1 to 2"
    assert ranking_display(row("a", band_high=1))["band"] == "1"
    assert ranking_display(row("a"))["patch lines"] == "1,234"
    unranked = row("a", ranked=False, rank=None, band_low=None, band_high=None, pass_rate=None)
    shown = ranking_display(unranked)
    assert (shown["rank"], shown["band"], shown["pass rate"], shown["tokens"]) == ("-", "-", "-", "-")


def test_a_lead_that_is_not_separable_is_a_warning_that_names_whom_it_may_be() -> None:
    rows = [row("a"), row("b", rank=2), row("c", rank=3)]
    pairs = [pair("a", "b", 0.1, 0.4), pair("a", "c", 0.9, 0.001), pair("b", "c", 0.8, 0.04)]
    notes = ranking_notes(rows, pairs, {}, {})
    said = "the lead of a is not distinguishable from b (p 0.2, 0.4 after Holm)"
    assert Note("warning", f"{said}; exact McNemar n=10 tasks, Holm over 3 pairs") in notes
    assert Note("told apart", "a above c, difference +90.0 points, p 0.001 after Holm") in notes
    assert Note("over", "10 tasks that all ranked setups measured") in notes


def test_a_separable_lead_has_no_warning_and_a_single_setup_none_either() -> None:
    apart = ranking_notes([row("a"), row("b", rank=2)], [pair("b", "a", -0.9, 0.001)], {}, {})
    assert not [note for note in apart if note.kind == "warning"]
    assert not [note for note in ranking_notes([row("a")], [], {}, {}) if note.kind == "warning"]


def test_setups_that_share_the_first_rank_are_not_told_apart() -> None:
    notes = ranking_notes([row("a"), row("b")], [pair("a", "b", 0.0, None)], {}, {})
    (warning,) = [note.text for note in notes if note.kind == "warning"]
    assert warning.startswith("the lead of a is not distinguishable from b (p -, - after Holm)")


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(3, 4, True), (2, 4, False), (None, None, False)],
    ids=["apart", "touching", "none"],
)
def test_bands_that_lie_apart_while_the_test_does_not_are_explained(
    low: int | None, high: int | None, said: bool
) -> None:
    rows = [row("a"), row("b", rank=2, band_low=low, band_high=high)]
    notes = ranking_notes(rows, [pair("a", "b", 0.3, 0.06)], {}, {})
    assert [note.text.partition(":")[0] for note in notes if note.kind == "bands"] == ["a and b"] * said


def test_tasks_that_may_not_be_measured_with_are_named_with_the_command_that_checks_them() -> None:
    notes = ranking_notes([row("a")], [], {}, {}, {"t1": "it was never validated"})
    assert notes[-2:] == [
        Note("not measured with", "t1: it was never validated"),
        Note("not measured with", "bench task validate checks them again"),
    ]


def test_what_is_missing_is_named_with_the_command_that_fills_it() -> None:
    gaps = [f"t{place} attempt 1: timeout" for place in range(7)]
    rows = [row("a"), row("b", ranked=False, missing=gaps)]
    notes = ranking_notes(rows, [], {}, {"digest of b": "bench run nightly --retry 1"})
    (note,) = [note for note in notes if note.kind == "missing"]
    assert note.text == (
        "b: not ranked, 7 cells missing (t0 attempt 1: timeout, t1 attempt 1: timeout, t2 attempt 1: timeout, "
        "t3 attempt 1: timeout, t4 attempt 1: timeout and 2 more); run: bench run nightly --retry 1"
    )


def test_tasks_that_are_left_out_are_listed_by_reason() -> None:
    notes = ranking_notes([row("a")], [], {"t1": "not measured by b", "t2": "not measured by b"}, {})
    assert Note("left out", "t1, t2: not measured by b") in notes


def test_a_ranking_without_ranked_setups_says_so() -> None:
    notes = ranking_notes([row("a", ranked=False)], [], {}, {})
    assert notes == [Note("warning", "no setup can be ranked: too few cells are measured")]


COMPARISON: dict[str, object] = {
    "evaluation": "nightly",
    "setup_a": "a",
    "setup_b": "b",
    "shared_tasks": 12,
    "only_a": 1,
    "only_b": 0,
    "difference": 0.25,
    "diff_low": 0.1,
    "diff_high": 0.4,
    "p_value": 0.02,
    "p_holm": None,
    "method": "paired t",
    "rate_a": 0.5,
    "rate_b": None,
    "passed_a": 6,
    "passed_b": 3,
    "measured_a": 12,
    "measured_b": 12,
    "tasks_only_a": ["t9"],
    "tasks_only_b": [],
    "tasks_mixed": [],
    "sums": [
        {"quantity": "cost_usd", "a": 1.5, "b": None, "cells": 3, "of": 12},
        {"quantity": "patch_lines", "a": 10.0, "b": 20.0, "cells": 1, "of": 1},
    ],
    "flips": [{"task_id": "t1", "a": 1.0, "b": 1 / 3}],
}


def test_a_comparison_reads_as_sentences() -> None:
    assert comparison_lines(COMPARISON) == [
        "a: a",
        "b: b",
        "evaluation: nightly",
        "difference a - b: +25.0 points (+10.0 to +40.0) over 12 shared tasks",
        "p: 0.02, after Holm over all pairs -",
        "method: paired t",
        "only a measured 1 task: t9",
    ]
    assert comparison_display(COMPARISON)[2:] == [
        {"": "cost over 3 of 12 cells", "a": "1.50 USD", "b": "-"},
        {"": "patch lines over 1 of 1 cell", "a": "10", "b": "20"},
    ]
    assert flip_display(COMPARISON) == [{"task": "t1", "a": "passed", "b": "0.33"}]


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        ({"diff_low": -0.1}, "warning: the difference is not distinguishable from none"),
        ({"diff_low": None, "diff_high": None}, "warning: the difference is not distinguishable from none"),
        ({"shared_tasks": 0, "difference": None, "diff_low": None}, "warning: no task was measured by both"),
        ({"tasks_mixed": ["t5"]}, "not comparable, the task changed in between: t5"),
    ],
)
def test_a_comparison_that_shows_nothing_says_so(changes: dict[str, object], warning: str) -> None:
    assert comparison_lines(COMPARISON | changes)[-1] == warning


def test_a_gate_reads_as_a_decision_and_its_checks() -> None:
    document = {
        "gate": "non-inferiority",
        "reason": "insufficient",
        "detail": "3 shared tasks, 10 needed; add tasks",
        "baseline": "old",
        "candidate": "new",
        "shared_tasks": 3,
        "difference": None,
        "diff_low": None,
        "diff_high": None,
        "method": None,
        "checks": [
            {"name": "min_tasks", "value": 3, "limit": 10, "passed": False},
            {"name": "non_inferiority", "value": None, "limit": -0.05, "passed": False},
            {"name": "min_rate", "value": 0.5, "limit": 0.4, "passed": True},
        ],
    }
    assert gate_lines(document) == [
        "gate non-inferiority: insufficient: 3 shared tasks, 10 needed; add tasks",
        "baseline: old",
        "candidate: new",
        "difference candidate - baseline: - (no interval) over 3 shared tasks",
        "method: -",
        "check min_tasks: 3, limit 10: not met",
        "check non_inferiority: -, limit -0.05: not met",
        "check min_rate: 0.5, limit 0.4: ok",
    ]
