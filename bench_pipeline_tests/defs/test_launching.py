"""``bench run`` through Dagster: which instance, which errors, and what an interrupt leaves."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from dagster import DagsterInstance, DagsterRunStatus, RunsFilter

from bench_pipeline.cli.launching import dagster_home, instance_in, run_everything
from bench_pipeline.errors import BenchError, RefusedError, StoreError
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.selection import Partition, RunOptions
from bench_pipeline_tests.ledgers.writing import line, write_ledger

PART = (Partition("smoke", 1),)


@pytest.fixture(autouse=True)
def no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)


def only_run(bench: Bench) -> tuple[str, DagsterRunStatus]:
    with instance_in(dagster_home(bench)) as instance:
        (run,) = instance.get_runs(RunsFilter(job_name="evaluate"))
        return run.run_id, run.status


def raising(error: BaseException) -> Callable[..., object]:
    def broken(*_: object, **__: object) -> object:
        raise error

    return broken


@pytest.mark.parametrize(
    "error",
    [
        StoreError("writing the store", "the disk is full", "make room"),
        RefusedError("running the plan", "it is another one now", "look at it again"),
        ValueError("a fault of ours"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_a_step_is_raised_as_it_is_and_the_run_is_marked_as_failed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr("bench_pipeline.defs.assets.evaluations.write_cells", raising(error))
    with pytest.raises(type(error)) as caught:
        run_everything(bench, PART, RunOptions())
    assert caught.value is error
    assert only_run(bench)[1] is DagsterRunStatus.FAILURE


def test_a_failed_check_says_which_table_and_what_is_wrong(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = bench.store.tables.read

    def twice(*args: object, **partition: object) -> object:
        table = read(*args, **partition)  # type: ignore[arg-type]
        return type(table).from_batches([*table.to_batches(), *table.to_batches()], table.schema)

    monkeypatch.setattr(bench.store.tables, "read", twice)
    with pytest.raises(BenchError, match="evaluation_cells: unique_keys: 2 rows that repeat a key"):
        run_everything(bench, PART, RunOptions())
    assert only_run(bench)[1] is DagsterRunStatus.FAILURE


def test_a_signal_outside_the_measuring_is_an_interrupt_and_the_run_is_marked_as_failed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("bench_pipeline.defs.assets.evaluations.write_cells", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_everything(bench, PART, RunOptions())
    signal.signal(signal.SIGTERM, before)
    assert only_run(bench)[1] is DagsterRunStatus.FAILURE


def test_a_relative_or_absent_dagster_home_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "somewhere")
    with pytest.raises(BenchError, match="absolute path"):
        dagster_home(bench)
    monkeypatch.setenv("DAGSTER_HOME", "/nowhere/at/all")
    with pytest.raises(BenchError, match="no folder"):
        dagster_home(bench)


def test_dagster_home_is_used_when_it_is_set_and_the_project_has_its_own_otherwise(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dagster_home(bench) == bench.project.root / ".bench" / "dagster"
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    assert dagster_home(bench) == tmp_path


def test_an_instance_that_cannot_be_opened_says_what_to_mend(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").write_text("nonsense: {a: 1}\n")
    with pytest.raises(BenchError, match=r"dagster\.yaml"), instance_in(tmp_path):
        pass


def test_a_run_of_a_command_is_listed_under_its_job_and_never_retried(bench: Bench) -> None:
    run_id = run_everything(bench, PART, RunOptions())
    with instance_in(dagster_home(bench)) as instance:
        run = instance.get_run_by_id(run_id)
        assert run is not None
        assert run.status is DagsterRunStatus.SUCCESS
        assert run.tags[".dagster/repository"] == "__repository__@bench_pipeline"
        assert run.tags["dagster/max_retries"] == "0"
        assert isinstance(instance, DagsterInstance)


def test_a_run_of_everything_reads_ledgers_as_they_are_and_the_next_one_reads_nothing(bench: Bench) -> None:
    write_ledger(bench.project.root / "ledgers" / "north.jsonl", line(), line(route="baseline"))
    for _ in range(2):
        run_everything(bench, PART, RunOptions())
        assert bench.store.tables.read("ledger_summaries")["rows"].to_pylist() == [1, 1]
        with instance_in(dagster_home(bench)) as instance:
            runs = instance.get_runs(RunsFilter(job_name="read_ledgers"))
            assert [run.status for run in runs] == [DagsterRunStatus.SUCCESS]
