"""Execution failures: tried again as often as asked for, counted, paid for, and never in the way of a verdict."""

from collections.abc import Callable

import pytest

from bench_pipeline.pipeline.bench import Bench
from bench_pipeline_tests.e2e.projects import Project

Make = Callable[..., Project]


def test_only_what_failed_is_tried_again_and_what_fails_again_is_history(make: Make) -> None:
    project = make("alpha", "beta", "gamma")
    project.acts("one", "fix", "flaky", attempts=3)
    project.write("outage", "beta 4\n")
    first = project.measure("one", concurrency=1)
    assert (first.outcomes, len(project.calls())) == ({"passed": 15, "adapter_error": 3}, 18)

    second = project.measure("one", concurrency=1)
    assert (second.actions, second.outcomes) == (
        {"reused": 15, "executed": 3}, {"passed": 17, "adapter_error": 1},
    )  # fmt: skip
    untouched = [row for row in first.rows if row["passed"]]
    assert all(row in second.rows for row in untouched)
    assert sorted(row["tries"] for row in second.rows) == [1] * 15 + [2] * 3

    third = project.measure("one", concurrency=1)
    assert (third.actions, third.outcomes) == ({"reused": 17, "executed": 1}, {"passed": 18})
    assert sorted(row["tries"] for row in third.rows) == [1] * 15 + [2, 2, 3]
    worst = max(third.rows, key=lambda row: row["tries"])
    history = Bench(project.root).store.verdicts.history(worst["identity"])
    assert history["outcome"].to_pylist() == ["adapter_error", "adapter_error", "passed"]


def test_a_newer_failure_never_erases_a_success(make: Make) -> None:
    project = make()
    project.acts("one", "flaky")
    project.write("outage", "")
    first = project.measure("one")
    project.write("outage", "alpha 999\n")
    second = project.measure("one", fresh=True)
    assert second.events[0].outcome == "adapter_error"
    assert second.row == {**first.row, "tries": 2}
    assert project.measure("one").actions == {"reused": 1}


def test_a_cell_that_keeps_failing_is_left_alone_until_it_is_asked_for(make: Make) -> None:
    project = make()
    project.configure(tries=2)
    project.acts("one", "flaky")
    project.write("outage", "alpha 3\n")
    for _ in range(2):
        assert project.measure("one").actions == {"executed": 1}
    worn = project.measure("one")
    assert (worn.actions, len(project.calls())) == ({"skipped": 1}, 2)
    assert (worn.deeds[0]["reason"], worn.summary["not_measured"]) == (
        "2 of 2 tries failed; --retry tries again",
        1,
    )
    assert worn.outcomes == {"adapter_error": 1}
    again = project.measure("one", retry=1)
    assert (again.outcomes, again.row["tries"], len(project.calls())) == ({"passed": 1}, 4, 4)


def test_failed_tries_are_in_the_cost_of_the_cell_that_passed(make: Make) -> None:
    project = make()
    project.acts("one", "flaky")
    project.write("outage", "alpha 3\n")
    assert project.measure("one").summary["cost_usd"] == pytest.approx(1.0)
    done = project.measure("one", retry=2)
    assert (done.row["outcome"], done.row["tries"]) == ("passed", 4)
    assert done.row["cost_usd"] == pytest.approx(4.0)
    assert done.summary["cost_usd"] == pytest.approx(3.0)


def test_an_unknown_price_is_null_and_counted_and_never_a_partial_sum(make: Make) -> None:
    project = make()
    project.evaluation("one", {"model": ["small", "large"]}, {"options": {"act": "free"}})
    done = project.measure("one")
    assert [row["cost_usd"] for row in done.rows] == [pytest.approx(1.0), None, None]
    summary = done.summary
    assert (summary["cost_usd"], summary["cost_known"], summary["cost_unknown"]) == (pytest.approx(1.0), 1, 2)


def test_a_try_that_ended_before_it_could_report_makes_the_cell_unknown(make: Make) -> None:
    project = make()
    project.acts("one", "exit 1")
    done = project.measure("one", retry=1)
    assert (done.row["tries"], done.row["cost_usd"], done.summary["cost_usd"]) == (2, None, None)


def test_missing_credentials_are_told_before_anything_runs_and_cost_nothing(make: Make) -> None:
    from bench_pipeline_tests.e2e.projects import AGENT

    project = make()
    project.document("tools/agent.yaml", "Tool", {**AGENT, "credentials": {"env": ["E2E_ABSENT_KEY"]}})
    project.evaluation("one")
    done = project.measure("one")
    assert (done.row["outcome"], done.row["reason"]) == (
        "adapter_error",
        "credential E2E_ABSENT_KEY is not set",
    )
    assert (done.row["cost_usd"], done.summary["cost_usd"], project.calls()) == (0.0, 0.0, [])
