"""``follow_sensor`` on a real instance over a real store: what is behind is asked for, once, and nothing is lost."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster import DagsterInstance, DagsterRunStatus

from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.cells import write_cells
from bench_pipeline.pipeline.measuring import write_verdicts
from bench_pipeline.pipeline.selection import TIERS, RunOptions, rectangle
from bench_pipeline_tests.defs.conftest import small_project
from bench_pipeline_tests.defs.ticking import Daemon

BELOW_VERDICTS = {"evaluation_rankings", "paired_comparisons", "task_results"}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose verdicts are there and nothing that follows them."""
    root = small_project(tmp_path_factory.mktemp("measured") / "project")
    bench = Bench(root)
    parts = rectangle(TIERS, [1])
    write_cells(bench, parts)
    write_verdicts(bench, RunOptions(), partitions=parts, run_id="by-hand", log=lambda _: None)
    return root


@pytest.fixture
def daemon(measured: Path, tmp_path: Path, instance: DagsterInstance) -> Daemon:
    return Daemon(Path(shutil.copytree(measured, tmp_path / "project")), instance)


@pytest.fixture(scope="module")
def at_rest(measured: Path, empty_home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """That project and its instance once everything followed."""
    folder = tmp_path_factory.mktemp("at-rest")
    root, home = (Path(shutil.copytree(src, folder / src.name)) for src in (measured, empty_home))
    with DagsterInstance.from_config(str(home)) as instance:
        assert settle(Daemon(root, instance)) == 2
    return root, home


@pytest.fixture
def settled(at_rest: tuple[Path, Path], tmp_path: Path) -> Iterator[Daemon]:
    root, home = (Path(shutil.copytree(src, tmp_path / src.name)) for src in at_rest)
    with DagsterInstance.from_config(str(home)) as instance:
        yield Daemon(root, instance)


def asked(requests: list[dg.RunRequest]) -> list[tuple[str | None, set[str]]]:
    return [
        (request.job_name, {key.to_user_string() for key in request.asset_selection or []})
        for request in requests
    ]


def settle(daemon: Daemon) -> int:
    """Tick and run until nothing is asked for; how many runs that took."""
    runs = 0
    while done := daemon.run(daemon.look("follow_sensor")):
        runs += len(done)
        assert runs < 10, "it does not come to rest"
    return runs


def change_verdicts(daemon: Daemon, rows: int) -> None:
    """Leave so many rows of a partition of verdicts, as a run that measured something would change them."""
    store = daemon.bench.store
    tier = daemon.bench.tasks.get("delimited-last-field").tier
    store.tables.write(
        "verdicts", store.tables.read("verdicts", tier=tier).slice(0, rows), tier=tier, attempt=1
    )


def test_everything_below_verdicts_follows_in_one_run_for_each_partition_shape(daemon: Daemon) -> None:
    first = daemon.look("follow_sensor")
    assert asked(first) == [("evaluate", BELOW_VERDICTS)], "scores wait for the results that they follow"
    (run,) = daemon.run(first)
    record = daemon.instance.get_run_by_id(run)
    assert record is not None
    assert record.tags["dagster/asset_partition_range_start"] == "1|smoke"
    second = daemon.look("follow_sensor")
    assert asked(second) == [("score", {"composite_scores"})]
    daemon.run(second)
    assert not daemon.look("follow_sensor")
    assert daemon.bench.store.tables.read("evaluation_rankings")["passed"].to_pylist() == [0, 2]
    assert not daemon.instance.get_materialized_partitions(dg.AssetKey("verdicts")), "nothing was measured"


def test_a_change_one_tick_after_a_request_is_asked_for_when_that_has_run(settled: Daemon) -> None:
    change_verdicts(settled, 1)
    requests = settled.look("follow_sensor")
    settled.run(requests)
    running = dg.DagsterRun("evaluate", status=DagsterRunStatus.STARTED)
    settled.instance.add_run(running)
    change_verdicts(settled, 0)
    assert not settled.look("follow_sensor"), "a run may be making it"
    settled.instance.report_run_failed(running)
    assert settle(settled) == 1, "results of golden tasks are as before, so are their scores"
    assert settled.bench.store.tables.read("evaluation_rankings")["measured"].to_pylist() == [1, 1]


def test_what_was_asked_for_and_has_not_run_is_asked_for_under_the_same_key(daemon: Daemon) -> None:
    lost = daemon.look("follow_sensor")
    again = daemon.look("follow_sensor")
    assert [request.run_key for request in again] == [request.run_key for request in lost]


@pytest.mark.parametrize("job", ["evaluate", "__ASSET_JOB"])
def test_what_a_run_is_making_is_not_asked_for_beside_it(daemon: Daemon, job: str) -> None:
    selection = None if job == "evaluate" else frozenset(map(dg.AssetKey, BELOW_VERDICTS))
    run = dg.DagsterRun(job, status=DagsterRunStatus.STARTED, asset_selection=selection)
    daemon.instance.add_run(run)
    assert not daemon.look("follow_sensor")
    daemon.instance.report_run_failed(run)
    assert asked(daemon.look("follow_sensor")) == [("evaluate", BELOW_VERDICTS)]


def test_a_deleted_instance_asks_for_what_is_behind_and_for_nothing_else(
    settled: Daemon, tmp_path: Path, empty_home: Path
) -> None:
    home = shutil.copytree(empty_home, tmp_path / "other")
    with DagsterInstance.from_config(str(home)) as other:
        assert not Daemon(settled.root, other).look("follow_sensor")
        change_verdicts(settled, 0)
        assert asked(Daemon(settled.root, other).look("follow_sensor")) == [("evaluate", BELOW_VERDICTS)]


def test_a_run_that_fails_is_asked_for_a_few_times_and_then_left(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OSError("the disk went away")

    monkeypatch.setattr("bench_pipeline.defs.assets.golden.write_results", broken)
    runs = 0
    for _ in range(8):
        runs += len(daemon.run(daemon.look("follow_sensor"), may_fail=True))
    assert runs == 1 + 3, "rankings and comparisons came with the first"
    monkeypatch.undo()
    change_verdicts(daemon, 0)
    assert asked(daemon.look("follow_sensor")) == [("evaluate", BELOW_VERDICTS)], "a change is another matter"


def test_nothing_follows_a_table_that_failed_its_check(daemon: Daemon) -> None:
    for passed in (False, True):
        daemon.instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(
                asset_key=dg.AssetKey("verdicts"), check_name="unique_keys", passed=passed, metadata={}
            )
        )
        assert bool(daemon.look("follow_sensor")) is passed
