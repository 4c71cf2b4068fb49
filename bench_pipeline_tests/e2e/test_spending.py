"""Caps hold before money is spent: a cell that could break one is not started."""

from collections import Counter
from collections.abc import Callable

import pytest

from bench_pipeline.errors import RefusedError
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.running import dry_run_document, prepare
from bench_pipeline.pipeline.selection import RunOptions, Selection
from bench_pipeline_tests.e2e.projects import Project

Make = Callable[..., Project]


@pytest.fixture
def project(make: Make) -> Project:
    """Six cells of a dollar each."""
    made = make("alpha", "beta", "gamma")
    made.evaluation("one", attempts=2)
    return made


def digest(project: Project) -> str:
    bench = Bench(project.root, backend="process", read_only=True)
    return str(dry_run_document(bench, prepare(bench, RunOptions(Selection(("one",)))))["plan_digest"])


def test_no_more_cells_than_allowed_run_and_first_attempts_come_first(project: Project) -> None:
    done = project.measure("one", max_cells=4)
    assert (done.actions, len(project.calls())) == ({"executed": 4, "skipped": 2}, 4)
    assert sorted(row["attempt"] for row in done.rows if row["passed"]) == [1, 1, 1, 2]
    assert {deed["reason"] for deed in done.deeds if deed["action"] == "skipped"} == {"max_cells reached"}
    assert done.summary["not_measured"] == 2
    assert project.measure("one", max_cells=0).actions == {"reused": 4, "skipped": 2}
    assert project.measure("one", max_cells=2).outcomes == {"passed": 6}


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_capped_run_leaves_every_setup_with_the_same_tasks(make: Make, concurrency: int) -> None:
    project = make("alpha", "beta", "gamma")
    project.acts("one", "fix", "wrong", "nothing", attempts=2)
    project.measure("one", max_cells=6, concurrency=concurrency)
    done = project.measure("one", max_cells=0).rows
    measured = Counter((row["attempt"], row["task_id"]) for row in done if row["outcome"] != "not_attempted")
    assert measured == {(1, "alpha"): 3, (1, "beta"): 3}


def test_a_retried_cell_is_one_cell(project: Project) -> None:
    project.acts("one", "flaky")
    project.write("outage", "alpha 1\nbeta 1\ngamma 1\n")
    done = project.measure("one", max_cells=2, retry=1)
    assert (done.actions, len(project.calls())) == ({"executed": 2, "skipped": 1}, 4)
    assert done.outcomes == {"passed": 2, "not_attempted": 1}


def test_a_cost_cap_without_a_known_cost_is_refused_before_anything_is_written(project: Project) -> None:
    with pytest.raises(RefusedError, match="no cost is known for agent/small/-"):
        project.measure("one", max_cost_usd=3.0)
    assert (project.calls(), project.stored()) == ([], [])


def test_a_cost_cap_reserves_what_the_setup_cost_before(project: Project) -> None:
    project.measure("one", tasks=["alpha"], max_cells=1)
    done = project.measure("one", max_cost_usd=3.5)
    assert done.actions == {"reused": 1, "executed": 3, "skipped": 2}
    assert done.summary["cost_usd"] == pytest.approx(3.0)
    assert {deed["reason"] for deed in done.deeds if deed["action"] == "skipped"} == {"max_cost_usd reached"}


def test_a_declared_cost_stands_in_for_an_unknown_one_and_gives_way_to_the_real_one(project: Project) -> None:
    project.configure(spending={"max_cost_usd": 2.0, "assume_cost_usd": 0.25})
    done = project.measure("one", concurrency=1)
    assert done.summary["cost_usd"] == pytest.approx(2.0)
    assert done.actions == {"executed": 2, "skipped": 4}


def test_a_plan_that_changed_is_refused_and_nothing_runs(project: Project) -> None:
    planned = digest(project)
    project.evaluation("one", attempts=3)
    with pytest.raises(RefusedError, match=f"not {planned}"):
        project.measure("one", plan=planned)
    assert (project.calls(), project.stored()) == ([], [])


def test_the_plan_that_was_looked_at_runs_and_is_another_one_afterwards(project: Project) -> None:
    planned = digest(project)
    assert project.measure("one", plan=planned).outcomes == {"passed": 6}
    with pytest.raises(RefusedError, match="look at it again"):
        project.measure("one", plan=planned)


def test_the_start_of_a_digest_names_the_plan_when_it_is_long_enough(project: Project) -> None:
    planned = digest(project)
    for too_short in (planned[:7], "0" * 8):
        with pytest.raises(RefusedError, match="8 digits of it or more"):
            project.measure("one", plan=too_short)
    assert project.measure("one", plan=planned[:8].upper()).outcomes == {"passed": 6}


def test_a_price_does_not_change_the_plan(project: Project) -> None:
    planned = digest(project)
    (project.root / "pricing.yaml").unlink()
    assert digest(project) == planned
