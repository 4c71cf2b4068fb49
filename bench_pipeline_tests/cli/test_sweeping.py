"""Runs of killed commands, live commands and the UI, told apart on a real instance."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster import DagsterInstance, DagsterRunStatus

from bench_pipeline.cli.sweeping import alive, sweep

HOLD = """
import sys, time
from pathlib import Path
from dagster import DagsterInstance
from bench_pipeline.cli.sweeping import alive
home = Path(sys.argv[1])
with DagsterInstance.from_config(str(home)) as instance, alive(instance, home, sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[DagsterInstance]:
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    with DagsterInstance.from_config(str(tmp_path)) as opened:
        yield opened


def started(instance: DagsterInstance, run_id: str) -> None:
    @dg.job
    def evaluate() -> None: ...

    instance.create_run_for_job(evaluate, run_id=run_id, status=DagsterRunStatus.STARTED)


def status(instance: DagsterInstance, run_id: str) -> DagsterRunStatus:
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return run.status


def test_only_the_run_of_a_command_that_is_gone_is_marked_as_failed(
    instance: DagsterInstance, tmp_path: Path
) -> None:
    command, of_the_ui = str(uuid.uuid4()), str(uuid.uuid4())
    started(instance, command)
    started(instance, of_the_ui)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path), command], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert sweep(instance, tmp_path) == 0
        assert status(instance, command) is DagsterRunStatus.STARTED
        os.kill(holder.pid, signal.SIGKILL)
    assert sweep(instance, tmp_path) == 1
    assert status(instance, command) is DagsterRunStatus.FAILURE
    assert status(instance, of_the_ui) is DagsterRunStatus.STARTED
    assert sweep(instance, tmp_path) == 0
    assert not list((tmp_path / "commands").iterdir())


def test_a_block_that_raises_leaves_no_unfinished_run(instance: DagsterInstance, tmp_path: Path) -> None:
    run_id = str(uuid.uuid4())
    started(instance, run_id)
    with pytest.raises(KeyboardInterrupt), alive(instance, tmp_path, run_id):
        raise KeyboardInterrupt
    assert status(instance, run_id) is DagsterRunStatus.FAILURE
    assert not list((tmp_path / "commands").iterdir())


def test_what_was_left_for_a_run_that_is_unknown_or_over_is_removed(
    instance: DagsterInstance, tmp_path: Path
) -> None:
    (tmp_path / "commands").mkdir()
    (tmp_path / "commands" / str(uuid.uuid4())).touch()
    assert sweep(instance, tmp_path) == 0
    assert not list((tmp_path / "commands").iterdir())
