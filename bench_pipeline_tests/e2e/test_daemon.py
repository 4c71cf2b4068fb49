"""The real daemon over a real project: what is dropped in is read, what follows is made, and a kill costs nothing."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import dagster as dg
import psutil
import pytest

from bench_pipeline.cli.launching import instance_in
from bench_pipeline.defs.runs import RUN_KEY
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.cells import write_cells
from bench_pipeline.pipeline.golden_results import write_results
from bench_pipeline.pipeline.golden_scores import write_scores
from bench_pipeline.pipeline.initialising import write_instance_config, write_workspace
from bench_pipeline.pipeline.measuring import write_verdicts
from bench_pipeline.pipeline.provenance import DERIVED, behind
from bench_pipeline.pipeline.reading import write_comparisons, write_rankings
from bench_pipeline.pipeline.selection import TIERS, RunOptions, rectangle
from bench_pipeline_tests.defs.conftest import small_project
from bench_pipeline_tests.e2e.projects import clean_environment
from bench_pipeline_tests.ledgers.writing import line, write_ledger

pytestmark = pytest.mark.services
LONG_AGO = 1_700_000_000


class Daemon:
    """A project and the daemon that works on it, which can be killed and started again."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = write_instance_config(Bench(root).project)
        self.workspace = write_workspace(Bench(root).project)
        self.said = root.parent / "said"
        self.family: list[psutil.Process] = []

    def start(self) -> None:
        with self.said.open("a") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "dagster._daemon", "run", "-w", str(self.workspace)],
                cwd=self.root,
                env={
                    **clean_environment(self.root),
                    "DAGSTER_HOME": str(self.home),
                    "BENCH_PROJECT": str(self.root),
                },
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def kill(self) -> None:
        """End the daemon without notice; what it started goes on."""
        if self.process.poll() is None:
            self.family += psutil.Process(self.process.pid).children(recursive=True)
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def end(self) -> None:
        """End it with everything that it started."""
        self.kill()
        for process in self.family:
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def drop(self, name: str, rows: int) -> None:
        """A ledger that nobody has written for long, so that the first look takes it as whole."""
        path = write_ledger(self.root / "ledgers" / name, *[line()] * rows)
        os.utime(path, (LONG_AGO + rows, LONG_AGO + rows))

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Until the condition holds. Looking seldom: the daemon needs the processors."""
        deadline = time.monotonic() + 240
        while not condition():
            assert self.process.poll() is None, self.said.read_text()[-4000:]
            assert time.monotonic() < deadline, self.said.read_text()[-4000:]
            time.sleep(0.5)

    def summaries(self) -> dict[str, int]:
        found = Bench(self.root).store.tables.read("ledger_summaries").to_pylist()
        return {row["ledger"]: row["rows"] for row in found}

    def measured(self) -> int:
        return sum(Bench(self.root).store.tables.read("evaluation_rankings")["measured"].to_pylist())

    def rests(self, instance: dg.DagsterInstance) -> bool:
        """Whether nothing is behind and no run goes on."""
        late = [table for table in DERIVED if behind(Bench(self.root), table)]
        return not late and all(run.is_finished for run in instance.get_runs())


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A project with verdicts and what follows them, made without Dagster; the ledgers are for the daemon."""
    root = small_project(tmp_path / "project")
    bench = Bench(root)
    parts = rectangle(TIERS, [1])
    write_cells(bench, parts)
    write_verdicts(bench, RunOptions(), partitions=parts, run_id="by-hand", log=lambda _: None)
    write_results(bench, parts)
    write_scores(bench, [1])
    write_rankings(bench)
    write_comparisons(bench)
    found = Daemon(root)
    # The databases are made here: two processes that make them at once fail.
    with instance_in(found.home):
        pass
    found.start()
    try:
        yield found
    finally:
        found.end()


def test_a_daemon_that_is_killed_loses_nothing_and_runs_nothing_twice(daemon: Daemon) -> None:
    with dg.DagsterInstance.from_config(str(daemon.home)) as instance:
        daemon.drop("north.jsonl", 1)
        daemon.wait_until(lambda: daemon.summaries() == {"north": 1} and daemon.rests(instance))
        assert daemon.measured() == 4
        daemon.kill()

        daemon.drop("south.jsonl", 1)
        daemon.drop("north.jsonl", 2)
        tables = Bench(daemon.root).store.tables
        for partition in tables.partitions("verdicts"):
            tables.write("verdicts", tables.read("verdicts", **partition).slice(1), **partition)
        daemon.start()
        daemon.wait_until(lambda: daemon.summaries() == {"north": 2, "south": 1} and daemon.rests(instance))
        assert daemon.measured() == 2
        runs = instance.get_runs()
        assert {run.status for run in runs} == {dg.DagsterRunStatus.SUCCESS}, daemon.said.read_text()[-4000:]
        assert max(Counter(run.tags[RUN_KEY] for run in runs).values()) == 1
        assert made_of(instance, "ledger_rows") == {"north": 2, "south": 1}
        assert made_of(instance, "evaluation_rankings") == {None: 1}
        assert made_of(instance, "verdicts") == {}


def made_of(instance: dg.DagsterInstance, asset: str) -> dict[str | None, int]:
    """How often each partition of an asset was made."""
    records = instance.fetch_materializations(dg.AssetKey(asset), limit=99).records
    return dict(Counter(record.partition_key for record in records))
