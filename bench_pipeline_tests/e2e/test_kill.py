"""A run that is killed again and again ends with the tables of a run that nobody disturbed."""

import random
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from bench_pipeline.pipeline.bench import Bench
from bench_pipeline_tests.e2e.projects import Ended, Project, wait_for, without_clocks

Make = Callable[..., Project]

CELLS = 60
TABLES = ("evaluation_cells", "verdicts", "evaluation_rankings", "paired_comparisons")
# Cells at once, so that a kill finds some of them running.
WIDTH = 4
KILLS = 3


def sixty_cells(make: Make) -> Project:
    project = make("alpha", "beta", "gamma", "delta", "epsilon")
    project.evaluation("one", {"model": ["small", "large"], "options": {"act": ["fix", "wrong"]}}, attempts=3)
    return project


def run_until(project: Project, calls: int) -> None:
    """Start a run and kill it, without a warning, when the agent was called ``calls`` times in all."""
    with project.start("run", "one", "--concurrency", str(WIDTH)) as process:
        wait_for(lambda: len(project.calls()) >= calls or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert process.returncode == -signal.SIGKILL


def working_in(root: Path) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if any(str(root) in word for word in process.info["cmdline"] or [])
    ]


@pytest.fixture(scope="module")
def undisturbed(make: Make) -> Project:
    project = sixty_cells(make)
    ended = project.bench("run", "one", "--concurrency", str(WIDTH), "--json")
    assert (ended.status, ended.json["executed"]) == (0, CELLS)
    return project


@pytest.fixture(scope="module")
def killed(make: Make) -> tuple[Project, Ended]:
    """A project whose run was killed at moments of chance, each resumed one too, and then left alone."""
    project = sixty_cells(make)
    chance = random.Random(20)
    for _ in range(KILLS):
        run_until(project, len(project.calls()) + chance.randint(1, CELLS // KILLS - WIDTH))
        psutil.wait_procs(working_in(project.root), timeout=60)
        assert working_in(project.root) == []
    return project, project.bench("run", "one", "--concurrency", str(WIDTH), "--json")


def test_the_last_run_finishes_what_the_killed_ones_left(killed: tuple[Project, Ended]) -> None:
    project, ended = killed
    assert ended.status == 0, ended.err
    document = ended.json
    assert document["executed"] + document["reverified"] + document["reused"] == document["cells"] == CELLS
    assert document["reused"] > 0
    # A kill loses at most the cells that were running.
    assert CELLS <= len(project.calls()) <= CELLS + KILLS * WIDTH


@pytest.mark.parametrize("table", TABLES)
def test_the_tables_are_those_of_an_undisturbed_run(
    undisturbed: Project, killed: tuple[Project, Ended], table: str
) -> None:
    expected = without_clocks(undisturbed.table(table))
    assert expected
    assert without_clocks(killed[0].table(table)) == expected


def test_every_finished_cell_is_counted_once(killed: tuple[Project, Ended]) -> None:
    rows = killed[0].table("verdicts")
    assert len({row["identity"] for row in rows}) == CELLS
    assert {row["tries"] for row in rows} == {1}


def test_no_torn_file_is_left_and_nothing_was_put_aside(killed: tuple[Project, Ended]) -> None:
    project, _ = killed
    assert project.ask("store", "verify").status == 0
    assert not list((project.root / ".bench").glob("quarantine/*"))


def test_the_folders_of_the_killed_runs_are_gone(killed: tuple[Project, Ended]) -> None:
    assert not list((killed[0].root / ".bench/workspaces").glob("workspace-*"))


def test_dagster_knows_the_killed_runs_as_failed(killed: tuple[Project, Ended]) -> None:
    from dagster import DagsterInstance, DagsterRunStatus

    with DagsterInstance.from_config(str(Bench(killed[0].root).project.local_dir / "dagster")) as instance:
        statuses = [run.status for run in instance.get_runs()]
    # The last command had two runs, one for each partition shape; those killed never came to their second.
    assert statuses == [*[DagsterRunStatus.SUCCESS] * 2, *[DagsterRunStatus.FAILURE] * KILLS]
