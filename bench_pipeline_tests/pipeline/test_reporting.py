"""What a report says: what changed since which state, what is missing, and nothing that nobody measured."""

from pathlib import Path
from typing import Any

import pytest

from bench_pipeline.errors import NotFoundError, NothingToEvaluateError
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.report_state import kept_states
from bench_pipeline.pipeline.reporting import refuse_empty
from bench_pipeline_tests.outcomes import tasks
from bench_pipeline_tests.reports.documents import (
    FIRST,
    SECOND,
    THIRD,
    empty_project,
    ledger_route,
    report_at,
    score,
    write_outcomes,
    write_rows,
)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return empty_project(tmp_path / "project")


def test_a_project_without_any_table_has_nothing_to_report_and_keeps_no_state(bench: Bench) -> None:
    document = report_at(bench, FIRST)
    with pytest.raises(NothingToEvaluateError):
        refuse_empty(document)
    assert kept_states(bench.store) == []


def test_new_verdicts_flips_and_the_paired_difference_are_told_since_the_report_before(bench: Bench) -> None:
    before = {"a": tasks(*[True] * 6, *[False] * 5, None), "b": tasks(*[False] * 12)}
    now = {"a": tasks(*[True] * 5, False, *[True] * 3, False, False, True), "b": tasks(*[False] * 12)}
    write_outcomes(bench, before)
    assert report_at(bench, FIRST)["changes"] is None
    write_outcomes(bench, now)
    changes = report_at(bench, SECOND)["changes"]
    (counts,) = changes["evaluations"]
    assert (counts["new_verdicts"], counts["new_passed"], counts["measured"], counts["cells"]) == (
        1,
        1,
        24,
        24,
    )
    assert (changes["flips_total"], changes["flips_to_failed"]) == (4, 1)
    assert (changes["flips"][0]["task_id"], changes["flips"][0]["after"]) == ("t005", False)
    (rate,) = changes["rates"]
    # Eleven tasks were measured both times: -1, +1, +1, +1 and seven that are as before.
    assert (rate["setup"], rate["tasks"], rate["anew"]) == ("a", 11, 4)
    assert rate["difference"] == pytest.approx(2 / 11)
    assert rate["diff_low"] < rate["difference"] < rate["diff_high"]
    assert "n=11 tasks" in rate["method"]


def test_the_same_state_gives_the_same_report_however_often_it_is_made(bench: Bench) -> None:
    write_outcomes(bench, {"a": tasks(True, False)})
    report_at(bench, FIRST)
    write_outcomes(bench, {"a": tasks(True, True)})
    second = report_at(bench, SECOND)
    assert report_at(bench, THIRD) == second
    assert second["changes"]["flips_total"] == 1
    assert len(kept_states(bench.store)) == 2


def test_a_state_that_comes_back_is_another_report_that_says_so(bench: Bench) -> None:
    for moment, last in ((FIRST, True), (SECOND, False), (THIRD, True)):
        write_outcomes(bench, {"a": tasks(True, last)})
        document = report_at(bench, moment)
    assert len(kept_states(bench.store)) == 3
    assert document["changes"]["flips"][0]["after"] is True


def test_only_the_newest_states_are_kept(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_pipeline.pipeline.report_state._KEPT", 4)
    for number in range(6):
        write_outcomes(bench, {"a": tasks(True, number % 2 == 0)})
        document = report_at(bench, FIRST.replace(minute=number))
        assert len(kept_states(bench.store)) == min(number + 1, 4)
    assert kept_states(bench.store)[-1] == document["report"]


def test_a_clock_that_was_set_back_puts_no_state_before_an_older_one(bench: Bench) -> None:
    write_outcomes(bench, {"a": tasks(True)})
    first = report_at(bench, SECOND)
    write_outcomes(bench, {"a": tasks(False)})
    later = report_at(bench, FIRST)
    assert later["since"]["report"] == first["report"] < later["report"]


def test_since_takes_a_report_or_a_run_and_names_what_is_kept_otherwise(bench: Bench) -> None:
    reports = []
    for moment, last in ((FIRST, None), (SECOND, False), (THIRD, True)):
        write_outcomes(bench, {"a": tasks(True, last)})
        reports.append(report_at(bench, moment)["report"])
    run = {
        "run_id": "3f2a-run",
        "identity": "i",
        "action": "executed",
        "evaluation": "nightly",
        "tier": "standard",
    }
    write_rows(bench, "run_cells", [{**run, "attempt": 1, "started_at": SECOND}], run_id="3f2a-run")
    assert report_at(bench, THIRD)["since"]["report"] == reports[1]
    assert report_at(bench, THIRD, reports[0][:12])["since"]["report"] == reports[0]
    assert report_at(bench, THIRD, "3f2a")["since"]["report"] == reports[0]
    with pytest.raises(NotFoundError, match=reports[1]):
        report_at(bench, THIRD, "nothing-like-it")


def test_another_identity_of_a_task_is_a_flip_that_says_that_something_changed(bench: Bench) -> None:
    write_outcomes(bench, {"a": tasks(True)})
    report_at(bench, FIRST)
    write_outcomes(bench, {"a": tasks(False)})
    (flip,) = report_at(bench, SECOND)["changes"]["flips"]
    assert flip["same_cell"] is True
    cells, verdicts = (bench.store.tables.read(name) for name in ("evaluation_cells", "verdicts"))
    for name, table in (("evaluation_cells", cells), ("verdicts", verdicts)):
        rows = [{**row, "identity": "f" * 64, **_passed(name)} for row in table.to_pylist()]
        write_rows(bench, name, rows, tier="standard", attempt=1)
    changes = report_at(bench, THIRD)["changes"]
    assert changes["flips"][0]["same_cell"] is False
    assert changes["evaluations"][0]["gone_verdicts"] == 1


def _passed(name: str) -> dict[str, Any]:
    return {"outcome": "passed", "passed": True} if name == "verdicts" else {}


def test_setups_on_few_tasks_are_compared_on_the_shared_ones_and_the_gap_has_its_command(
    bench: Bench,
) -> None:
    """The smaller set was easier, and its setup led."""
    write_outcomes(
        bench, {"all": tasks(*[True] * 5, *[False] * 5), "few": {**tasks(True), "t001": ["agent_error"]}}
    )
    document = report_at(bench, FIRST)
    rows = {row["setup"]: row for row in document["rankings"]}
    assert not rows["few"]["ranked"]
    (coverage,) = document["coverage"]
    assert (coverage["cells"], coverage["attempted"], coverage["measured"]) == (12, 12, 11)
    assert document["gaps"] == [
        {
            "where": "evaluation nightly",
            "what": "1 of 12 cells without a verdict, 1 of them attempted and failed to execute",
            "command": "bench run nightly --task t001 --retry 1",
        }
    ]


def test_costs_are_compared_only_where_every_cell_has_one(bench: Bench) -> None:
    costs = {"dear": {"cost_usd": 2.0}, "cheap": {"cost_usd": 1.0}, "bad": {"cost_usd": 3.0}}
    results = {
        "dear": tasks(True, True),
        "cheap": tasks(True, False),
        "bad": tasks(True, False),
        "free": tasks(True, True),
    }
    write_outcomes(bench, results, of_setup=costs)
    rows = {row["setup"]: row for row in report_at(bench, FIRST)["rankings"]}
    assert {name: row["on_front"] for name, row in rows.items()} == {
        "dear": True,
        "cheap": True,
        "bad": False,
        "free": None,
    }
    assert (rows["cheap"]["cost_per_cell"], rows["free"]["cost_per_cell"]) == (1.0, None)


def test_other_numbers_that_moved_stand_with_what_they_are_over(bench: Bench) -> None:
    write_rows(bench, "composite_scores", [score("a", 1, 0.5), score("b", 1, 0.4)], attempt=1)
    write_rows(bench, "ledger_summaries", [ledger_route("Baseline", "baseline", 1)])
    report_at(bench, FIRST)
    write_rows(bench, "composite_scores", [score("a", 1, 0.75), score("b", 1, 0.4)], attempt=1)
    write_rows(
        bench,
        "ledger_summaries",
        [ledger_route("Baseline", "baseline", 1, rows=9), ledger_route("Other", None, 2)],
    )
    moved = report_at(bench, SECOND)["changes"]["measures"]
    assert [(row["measure"], row["name"], row["before"], row["after"], row["new"]) for row in moved] == [
        ("ledger_rows", "", None, 5.0, True),
        ("ledger_rows", "baseline", 5.0, 9.0, False),
        ("score", "a", 0.5, 0.75, False),
    ]
    assert moved[2]["difference"] == pytest.approx(0.25)
