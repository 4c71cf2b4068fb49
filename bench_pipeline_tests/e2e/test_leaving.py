"""What a project no longer has leaves its tables with the next run; the store keeps what was measured."""

import shutil
from collections.abc import Callable

import pytest

from bench_pipeline.pipeline.bench import Bench
from bench_pipeline_tests.e2e.projects import Project

Make = Callable[..., Project]
Key = tuple[str, str, int]


@pytest.fixture
def project(make: Make) -> Project:
    """Two tasks of tier smoke, each tried three times."""
    made = make("alpha", "beta")
    made.evaluation("one", attempts=3)
    assert made.measure("one").outcomes == {"passed": 6}
    return made


def keys(project: Project, table: str) -> set[Key]:
    return {(row["task_id"], row["tier"], row["attempt"]) for row in project.table(table)}


def stored_verdicts(project: Project) -> int:
    log = Bench(project.root).store.verdicts.log
    return sum(table.num_rows for info in log.parts() if (table := log.read(info)) is not None)


@pytest.mark.parametrize("everything", [False, True])
def test_lowered_attempts_leave_the_tables_and_come_back_for_nothing(
    project: Project, everything: bool
) -> None:
    name = None if everything else "one"
    project.evaluation("one", attempts=1)
    done = project.measure(name)
    assert done.actions == {"reused": 2}
    for table in ("evaluation_cells", "verdicts"):
        assert keys(project, table) == {("alpha", "smoke", 1), ("beta", "smoke", 1)}
    assert stored_verdicts(project) == 6
    project.evaluation("one", attempts=3)
    assert project.measure(name).actions == {"reused": 6}
    assert len(project.calls()) == 6


def test_a_deleted_task_leaves_the_tables_and_the_store_keeps_its_evidence(project: Project) -> None:
    shutil.rmtree(project.root / "tasks/beta")
    assert project.measure("one").actions == {"reused": 3}
    assert {task for task, _, _ in keys(project, "verdicts")} == {"alpha"}
    assert stored_verdicts(project) == 6


def test_a_task_that_moved_to_another_tier_stands_there_alone(project: Project) -> None:
    task = project.root / "tasks/beta/task.yaml"
    task.write_text(task.read_text().replace('tier: "smoke"', 'tier: "stretch"'))
    assert project.measure("one").actions == {"reused": 6}
    tiers = {(task, tier) for task, tier, _ in keys(project, "verdicts")}
    assert tiers == {("alpha", "smoke"), ("beta", "stretch")}
    assert len(project.calls()) == 6


def test_a_deleted_evaluation_leaves_the_tables_with_the_next_run_of_everything(project: Project) -> None:
    project.evaluation("two", {"options": {"tone": "loud"}})
    (project.root / "evaluations/one.yaml").unlink()
    project.measure()
    assert {row["evaluation"] for row in project.table("verdicts")} == {"two"}
    assert stored_verdicts(project) == 8


def test_a_run_of_one_task_leaves_the_rows_of_the_others_alone(project: Project) -> None:
    before = project.table("verdicts")
    project.measure("one", tasks=["beta"])
    assert project.table("verdicts") == before
