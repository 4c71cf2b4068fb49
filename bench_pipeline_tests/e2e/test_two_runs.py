"""Two runs over one store at once: each cell is executed by one of them, and both come to the same tables."""

import threading
from collections import Counter
from collections.abc import Callable

import pytest

from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.selection import Selection
from bench_pipeline_tests.e2e.projects import Measured, Project, run_in, wait_for

Make = Callable[..., Project]


class Running(threading.Thread):
    """A run in a thread of its own."""

    def __init__(self, project: Project, *tasks: str) -> None:
        super().__init__()
        self.bench = Bench(project.root, backend="process")
        self.tasks = tasks
        self.done: Measured | None = None
        self.start()

    def run(self) -> None:
        self.done = run_in(self.bench, Selection(("one",), self.tasks), concurrency=1)

    def result(self) -> Measured:
        self.join(120)
        assert self.done is not None
        return self.done


def test_two_processes_execute_each_cell_once(make: Make) -> None:
    project = make("alpha", "beta", "gamma", "delta", "epsilon")
    project.acts("one", "trace", "wrong", attempts=2)
    with project.start("run", "one", "--json") as left, project.start("run", "one", "--json") as right:
        outputs = [process.communicate(timeout=240) for process in (left, right)]
    assert (left.returncode, right.returncode) == (0, 0), outputs
    deeds = project.table("run_cells")
    assert len(deeds) == 40
    executed = Counter(deed["identity"] for deed in deeds if deed["action"] == "executed")
    assert set(executed.values()) == {1}
    assert len(executed) == len(project.calls()) == 20
    rows = project.table("verdicts")
    assert [row["tries"] for row in rows] == [1] * 20
    assert project.ask("store", "verify").status == 0


@pytest.fixture
def gated(make: Make) -> Project:
    """A project whose agent works until the file ``gate`` goes away."""
    project = make("alpha", "beta", "gamma")
    project.acts("one", "wait")
    project.write("gate", "")
    return project


def test_a_cell_that_another_run_has_does_not_keep_the_others_waiting(gated: Project) -> None:
    first = Running(gated, "beta")
    wait_for(lambda: gated.calls() == ["wait|beta"])
    second = Running(gated)
    wait_for(lambda: len(gated.calls()) == 2)
    (gated.root / "gate").unlink()
    assert (first.result().actions, second.result().actions) == (
        {"executed": 1},
        {"executed": 2, "reused": 1},
    )
    assert sorted(gated.calls()) == ["wait|alpha", "wait|beta", "wait|gamma"]


def test_a_run_that_waits_for_another_one_can_be_stopped(gated: Project) -> None:
    first = Running(gated, "beta")
    wait_for(lambda: gated.calls() == ["wait|beta"])
    second = Running(gated, "beta")
    second.bench.stop.ask()
    stopped = second.result()
    assert (stopped.actions, stopped.outcomes) == ({"skipped": 1}, {"not_attempted": 1})
    (gated.root / "gate").unlink()
    assert first.result().outcomes == {"passed": 1}
