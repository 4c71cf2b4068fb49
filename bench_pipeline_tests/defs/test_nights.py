"""The nightly schedule: when it strikes, what it asks for, and that it is one run a night for each partition shape."""

from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

import dagster as dg
import pytest
from dagster import DagsterInstance, DagsterRunStatus
from dagster._core.definitions.freshness import CronFreshnessPolicy

from bench_pipeline.definitions import build_defs
from bench_pipeline.defs.runs import FAILURE, PERMANENT, RUN_KEY
from bench_pipeline.defs.schedules import NIGHT, nightly_freshness
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline_tests.defs.conftest import small_project
from bench_pipeline_tests.defs.ticking import Daemon

SPRING, AUTUMN = "2026-03-28", "2026-10-24"


def project(root: Path, nightly: str) -> Path:
    small_project(root)
    config = root / "config.yaml"
    config.write_text(f"{config.read_text()}schedules: {{nightly: {nightly}}}\n")
    return root


def nights(tmp_path: Path, instance: DagsterInstance, nightly: str, since: str) -> list[str]:
    """The nights that the ticks of four days ask for, each finished before the next."""
    daemon = Daemon(project(tmp_path / "project", nightly), instance)
    asked = []
    for at in islice(daemon.times("nightly", since), 4):
        for request in daemon.strike("nightly", at):
            asked.append(request.tags[NIGHT])
            instance.add_run(_ended(request))
        assert not daemon.strike("nightly", at), "a tick that is made again asks for nothing"
    return asked


def _ended(request: dg.RunRequest, status: DagsterRunStatus = DagsterRunStatus.SUCCESS) -> dg.DagsterRun:
    """A run that was asked for, without what it does."""
    tags = {**request.tags, RUN_KEY: str(request.run_key)}
    return dg.DagsterRun(str(request.job_name), tags=tags, status=status)


@pytest.mark.parametrize(
    ("zone", "cron", "since", "expected"),
    [
        ("Asia/Kolkata", "30 2 * * *", SPRING, ["03-29 02:30", "03-30 02:30", "03-31 02:30", "04-01 02:30"]),
        ("Europe/Berlin", "30 2 * * *", SPRING, ["03-28 02:30", "03-29 03:00", "03-30 02:30", "03-31 02:30"]),
        ("Europe/Berlin", "0 3 * * *", SPRING, ["03-28 03:00", "03-29 03:00", "03-30 03:00", "03-31 03:00"]),
        ("Europe/Berlin", "30 2 * * *", AUTUMN, ["10-24 02:30", "10-25 02:30", "10-26 02:30", "10-27 02:30"]),
        ("Europe/Berlin", "0 3 * * *", AUTUMN, ["10-24 03:00", "10-25 03:00", "10-26 03:00", "10-27 03:00"]),
    ],
)
def test_there_is_one_run_a_night_also_where_the_clocks_change(
    tmp_path: Path, instance: DagsterInstance, zone: str, cron: str, since: str, expected: list[str]
) -> None:
    nightly = f'{{cron: "{cron}", timezone: {zone}}}'
    assert nights(tmp_path, instance, nightly, since) == [f"2026-{night}" for night in expected]


def test_a_night_on_an_hour_that_comes_twice_is_one_night_whatever_ticks_there_are(
    project: Path, instance: DagsterInstance
) -> None:
    daemon = Daemon(project, instance)
    first = daemon.strike("nightly", datetime.fromisoformat("2026-10-25T02:30:00+02:00"))
    instance.add_run(_ended(first[0]))
    assert not daemon.strike("nightly", datetime.fromisoformat("2026-10-25T02:30:00+01:00"))


@pytest.mark.parametrize(("enabled", "status"), [("true", "RUNNING"), ("false", "STOPPED")])
def test_it_is_stopped_unless_the_config_enables_it(
    tmp_path: Path, instance: DagsterInstance, enabled: str, status: str
) -> None:
    root = project(tmp_path / "project", f"{{enabled: {enabled}}}")
    schedule = Daemon(root, instance).repository.get_schedule_def("nightly")
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("17 2 * * *", "UTC")
    assert schedule.default_status.value == status


@pytest.mark.parametrize(
    ("cron", "hours"), [("30 2 * * *", 23), ("0 3 * * 1", 7 * 24 - 1), ("0 1,13 * * *", 11)]
)
def test_what_nights_make_is_stale_once_a_whole_night_has_not_made_it(
    tmp_path: Path, cron: str, hours: int
) -> None:
    root = project(tmp_path / "project", f'{{cron: "{cron}", timezone: Europe/Berlin, enabled: true}}')
    policy = nightly_freshness(Bench(root))
    assert isinstance(policy, CronFreshnessPolicy)
    assert (policy.deadline_cron, policy.timezone) == (cron, "Europe/Berlin")
    assert timedelta(hours=hours) <= policy.lower_bound_delta <= timedelta(hours=hours + 1)


def test_where_there_are_no_nights_nothing_is_stale(bench: Bench) -> None:
    assert nightly_freshness(bench) is None


def test_a_night_runs_everything_with_one_run_for_each_partition_shape_and_then_asks_for_nothing(
    project: Path, instance: DagsterInstance
) -> None:
    daemon = Daemon(project, instance)
    assert not daemon.look("night_sensor"), "nothing is measured yet"
    assert len(daemon.run(daemon.strike("nightly", next(daemon.times("nightly", "2026-05-01"))))) == 1
    assert len(daemon.run(daemon.look("night_sensor"))) == 1
    assert len(daemon.run(daemon.look("night_sensor"))) == 1
    assert not daemon.look("night_sensor")
    assert instance.get_latest_materialization_event(dg.AssetKey("bench_report")) is not None
    assert {
        name: instance.get_materialized_partitions(dg.AssetKey(name))
        for name in ("verdicts", "composite_scores")
    } == {
        "verdicts": {
            f"{attempt}|{tier}"
            for attempt in "12"
            for tier in ("smoke", "standard", "stretch", "adversarial")
        },
        "composite_scores": {"1", "2"},
    }
    assert daemon.bench.store.tables.read("evaluation_rankings").num_rows == 2


def test_a_night_that_has_not_ended_holds_the_next_one_back(project: Path, instance: DagsterInstance) -> None:
    daemon = Daemon(project, instance)
    at, later = islice(daemon.times("nightly", "2026-05-01"), 2)
    (request,) = daemon.strike("nightly", at)
    instance.add_run(dg.DagsterRun("evaluate", tags=dict(request.tags), status=DagsterRunStatus.STARTED))
    assert not daemon.strike("nightly", later)


def test_a_run_of_a_night_that_failed_is_asked_for_twice_more_where_its_reason_passes(
    project: Path, instance: DagsterInstance
) -> None:
    daemon = Daemon(project, instance)
    requests = daemon.strike("nightly", next(daemon.times("nightly", "2026-05-01")))
    asked = []
    while requests:
        (request,) = requests
        asked.append((request.job_name, request.run_key))
        instance.add_run(_ended(request, DagsterRunStatus.FAILURE))
        requests = daemon.look("night_sensor")
    assert asked == [
        *(("evaluate", f"2026-05-01 02:17 evaluate {tries}") for tries in (1, 2, 3)),
        *(("report", f"2026-05-01 02:17 report {tries}") for tries in (1, 2, 3)),
    ]


def test_a_night_that_would_fail_again_has_its_report_and_nothing_else(
    project: Path, instance: DagsterInstance
) -> None:
    daemon = Daemon(project, instance)
    (request,) = daemon.strike("nightly", next(daemon.times("nightly", "2026-05-01")))
    run = _ended(request, DagsterRunStatus.FAILURE)
    instance.add_run(run)
    instance.add_run_tags(run.run_id, {FAILURE: PERMANENT})
    (request,) = daemon.look("night_sensor")
    assert request.job_name == "report"
    instance.add_run(_ended(request))
    assert not daemon.look("night_sensor")


def test_the_report_is_stale_once_a_whole_night_has_not_made_it(tmp_path: Path, bench: Bench) -> None:
    root = project(tmp_path / "enabled", "{enabled: true}")
    policies = [
        build_defs({"bench": each}).resolve_asset_graph().get(dg.AssetKey("bench_report")).freshness_policy
        for each in (Bench(root), bench)
    ]
    assert policies == [nightly_freshness(Bench(root)), None]
