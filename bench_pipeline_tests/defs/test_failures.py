"""Runs that fail: those that would fail again are told from those that may pass, which are asked for again."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner
from dagster import DagsterInstance, DagsterRunStatus

from bench_pipeline.cli.launching import dagster_home, failed_partitions, instance_in, run_everything
from bench_pipeline.cli.main import bench
from bench_pipeline.defs.runs import FAILURE, PERMANENT, RUN_KEY, TRANSIENT, run_of
from bench_pipeline.errors import (
    BenchError,
    CorruptPartError,
    DocumentError,
    NewerSchemaError,
    Problem,
    RefusedError,
    StoreError,
)
from bench_pipeline.pipeline.asking import would_fail_again
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.checking import CheckOutcome, checks_of
from bench_pipeline.pipeline.selection import Partition, RunOptions
from bench_pipeline_tests.defs.conftest import small_project
from bench_pipeline_tests.defs.ticking import Daemon

PARTS = (Partition("smoke", 1),)
CELLS = dg.AssetKey("evaluation_cells")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, empty_home: Path) -> Iterator[Daemon]:
    folder = tmp_path_factory.mktemp("failures")
    with DagsterInstance.from_config(str(shutil.copytree(empty_home, folder / "dagster"))) as instance:
        found = Daemon(small_project(folder / "project"), instance)
        found.look("failure_hook")
        yield found


def plan(daemon: Daemon, key: str) -> dg.DagsterRun:
    """Run the planning of one partition."""
    tags = {"dagster/asset_partition_range_start": "1|smoke", "dagster/asset_partition_range_end": "1|smoke"}
    request = dg.RunRequest(run_key=key, job_name="evaluate", asset_selection=[CELLS], tags=tags)
    (run_id,) = daemon.run([request], may_fail=True)
    run = daemon.instance.get_run_by_id(run_id)
    assert run is not None
    return run


def raising(error: BaseException) -> Callable[..., object]:
    def broken(*_: object) -> object:
        raise error

    return broken


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (StoreError("writing a table", "the object store answered 503"), TRANSIENT),
        (OSError("the network is down"), TRANSIENT),
        (NewerSchemaError("reading a table", "it is of a newer version"), PERMANENT),
        (RefusedError("keeping the cap", "no cost is known"), PERMANENT),
        (DocumentError([Problem("x.yaml", 1, "", "no")]), PERMANENT),
        (TypeError("a fault of ours"), PERMANENT),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value,
)
def test_a_run_that_failed_is_marked_and_given_up_where_it_would_fail_again(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch, error: Exception, kind: str
) -> None:
    key = f"{type(error).__name__} {kind}"
    monkeypatch.setattr("bench_pipeline.defs.assets.evaluations.write_cells", raising(error))
    run = plan(daemon, key)
    expected = "given_up" if kind == PERMANENT else "failed"
    assert run_of(daemon.instance, key) == expected, "also before the hook has seen it"
    daemon.look("failure_hook")
    stamped = daemon.instance.get_run_by_id(run.run_id)
    assert stamped is not None
    assert stamped.tags[FAILURE] == kind
    assert run_of(daemon.instance, key) == expected


def test_a_check_that_stopped_a_run_would_stop_it_again(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(_: object, table: str, __: object) -> list[CheckOutcome]:
        return [CheckOutcome(name, name != "unique_keys", "two rows", 2, 2) for name in checks_of(table)]

    monkeypatch.setattr("bench_pipeline.defs.checks.check_table", check)
    plan(daemon, "a check")
    assert run_of(daemon.instance, "a check") == "given_up"


def test_a_run_that_was_killed_may_pass_and_one_that_a_person_ended_is_given_up(daemon: Daemon) -> None:
    for status, expected in (
        (DagsterRunStatus.FAILURE, "failed"),
        (DagsterRunStatus.CANCELED, "given_up"),
        (DagsterRunStatus.CANCELING, "given_up"),
        (DagsterRunStatus.STARTED, "going"),
        (DagsterRunStatus.SUCCESS, "done"),
    ):
        daemon.instance.add_run(dg.DagsterRun("evaluate", tags={RUN_KEY: status.value}, status=status))
        assert run_of(daemon.instance, status.value) == expected
    assert run_of(daemon.instance, "never asked for") == "absent"


def test_partitions_that_are_left_failed_are_listed_by_a_check_of_later_runs_and_by_doctor(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    assert failed_partitions(Bench(project)) is None, "before the first run"
    with monkeypatch.context() as patched:
        patched.setattr(
            "bench_pipeline.defs.assets.evaluations.write_cells", raising(StoreError("writing", "no disk"))
        )
        with pytest.raises(StoreError):
            run_everything(Bench(project), PARTS, RunOptions())
    tables = ("evaluation_cells", "verdicts", "task_results")
    assert sorted(failed_partitions(Bench(project)) or []) == sorted(f"{table}: 1|smoke" for table in tables)
    ended = CliRunner().invoke(bench, ["--project", str(project), "doctor", "--plain"])
    assert "left failed: verdicts: 1|smoke" in ended.output

    run_everything(Bench(project), (Partition("standard", 1),), RunOptions())
    with instance_in(dagster_home(Bench(project))) as instance:
        key = dg.AssetCheckKey(CELLS, "left_failed")
        record = instance.event_log_storage.get_latest_asset_check_execution_by_key([key])[key]
    assert record.event is not None
    check = record.event.get_dagster_event().asset_check_evaluation_data
    assert (check.passed, check.blocking) == (False, False)
    assert "verdicts: 1|smoke" in (check.description or "").splitlines()


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (BenchError, True),
        (StoreError, False),
        (CorruptPartError, False),
        (NewerSchemaError, True),
        (ValueError, True),
        (KeyError, True),
        (TimeoutError, False),
        (ConnectionResetError, False),
    ],
)
def test_errors_say_whether_they_pass(error: type[Exception], again: bool) -> None:
    assert would_fail_again(error.__name__) is again


@pytest.mark.parametrize("name", ["ReadTimeout", "ClientError", "", "print", "KeyboardInterrupt"])
def test_what_nobody_here_knows_is_tried_again(name: str) -> None:
    assert not would_fail_again(name)
