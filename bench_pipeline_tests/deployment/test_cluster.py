"""Cells over worker processes: a Dask scheduler and two workers as programs of their own, one of them killed."""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import distributed
import pytest

from bench_pipeline_tests.deployment.conftest import EVALUATION, NewProject, tables_of
from bench_pipeline_tests.e2e.projects import ENDING, STOPPING, clean_environment, interrupt, wait_for


class Cluster:
    """A scheduler and workers, each a process."""

    def __init__(self, folder: Path, running: ExitStack) -> None:
        self.folder, self._running = folder, running
        self.file = folder / "scheduler.json"
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file")
        wait_for(lambda: self.file.exists() and self.file.stat().st_size > 0)

    def workers(self, number: int) -> "list[subprocess.Popen[bytes]]":
        started = [self._worker() for _ in range(number)]
        with distributed.Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(number, timeout=120)
        return started

    def _worker(self) -> "subprocess.Popen[bytes]":
        return self._start("worker", "--no-nanny", "--nthreads", "1", "--no-dashboard", "--scheduler-file")

    @property
    def address(self) -> str:
        address: str = json.loads(self.file.read_text())["address"]
        return address

    def _start(self, kind: str, *words: str) -> "subprocess.Popen[bytes]":
        log = self._running.enter_context((self.folder / f"{kind}.log").open("ab"))
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", kind, *words, str(self.file)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=clean_environment(self.folder),
            cwd=self.folder,
            start_new_session=True,
        )
        self._running.callback(process.wait)
        self._running.callback(process.kill)
        return process


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as running:
        (tmp_path / "cluster").mkdir()
        yield Cluster(tmp_path / "cluster", running)


def on(cluster: Cluster) -> dict[str, str]:
    return {"engine": "dask", "address": cluster.address}


def test_a_killed_worker_loses_no_finished_cell_and_the_tables_are_the_same(
    tmp_path: Path, new_project: NewProject, plain_tables: dict[str, list[str]], cluster: Cluster
) -> None:
    first, _ = cluster.workers(2)
    project = new_project(tmp_path / "project", execution=on(cluster))
    whole = project.bench("run", EVALUATION, "--json")
    assert (whole.status, whole.json["executed"]) == (0, 4), whole.err
    assert tables_of(project) == plain_tables
    before = Counter(project.calls())

    project.acts("held", "wait", attempts=2)
    (project.root / "gate").touch()
    with project.start("run", "held", "--json") as running:
        wait_for(lambda: sum(call.startswith("wait") for call in project.calls()) == 2)
        first.send_signal(signal.SIGKILL)
        (project.root / "gate").unlink()
        out, err = running.communicate(timeout=240)
    assert running.returncode == 0, err
    assert '"passed": 4' in out
    calls = Counter(project.calls()) - before
    assert (len(calls), calls.total()) == (2, 5), "the cell of the killed worker ran again, no other did"


def test_a_scheduler_that_is_not_there_is_one_clear_error(tmp_path: Path, new_project: NewProject) -> None:
    project = new_project(tmp_path / "project", execution={"engine": "dask", "address": "tcp://127.0.0.1:9"})
    ended = project.bench("run", EVALUATION)
    assert ended.status == 1
    assert "no scheduler answers at tcp://127.0.0.1:9" in ended.err
    assert "Traceback" not in ended.err


def test_a_scheduler_without_workers_is_one_clear_error(
    tmp_path: Path, new_project: NewProject, cluster: Cluster
) -> None:
    ended = new_project(tmp_path / "project", execution=on(cluster)).bench("run", EVALUATION)
    assert ended.status == 1
    assert "has no workers" in ended.err


def test_processes_of_this_machine_give_the_same_tables(
    tmp_path: Path, new_project: NewProject, plain_tables: dict[str, list[str]]
) -> None:
    project = new_project(tmp_path / "project", execution={"engine": "processes"})
    ended = project.bench("run", EVALUATION, "--json")
    assert (ended.status, ended.json["executed"]) == (0, 4), ended.err
    assert tables_of(project) == plain_tables


def test_ctrl_c_twice_ends_the_cells_of_the_workers(
    tmp_path: Path, new_project: NewProject, cluster: Cluster
) -> None:
    cluster.workers(1)
    project = new_project(tmp_path / "project", execution=on(cluster))
    project.acts("held", "wait")
    (project.root / "gate").touch()
    with project.start("run", "held", "--json") as running:
        wait_for(lambda: bool(project.calls()))
        interrupt(running, STOPPING, ENDING)
        _, err = running.communicate(timeout=240)
    assert running.returncode == 130, err
    assert {row["outcome"] for row in project.table("verdicts")} <= {"not_attempted"}
