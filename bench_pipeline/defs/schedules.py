"""The nightly schedule: the whole graph, one run for each partition shape, as `bench run` without a name does it.

What belongs here: when a night begins, and what it asks for after its first run. What does not: what follows changes
by day (``sensors``).

A schedule starts one job, so what a night needs after its first run is asked for by a sensor. All runs of a night carry
the tag ``bench/night``: the time that it began, on the clock of the schedule. Ledgers are no part of a night:
``ledger_sensor`` reads them as they come.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import dagster as dg
from dagster._utils.schedules import get_smallest_cron_interval

from bench_pipeline.defs.jobs import EVALUATE, REPORT, SCORE
from bench_pipeline.defs.partitions import range_tags, whole_axis, whole_rectangle
from bench_pipeline.defs.runs import UNFINISHED, run_of
from bench_pipeline.pipeline.asking import MOST_TRIES, Run, newest_try
from bench_pipeline.pipeline.bench import Bench

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

NIGHTLY, NIGHT = "nightly", "bench/night"
# Marks all runs of nights, whichever night it is.
_OF_A_NIGHT = {"bench/asked_by": NIGHTLY}
# The first run takes minutes to hours; what comes after it can wait this long.
_SECONDS = 30
_STEPS = (EVALUATE, SCORE, REPORT)
# The newest runs of nights: a week of them when all goes wrong.
_LOOKED_AT = 7 * len(_STEPS) * MOST_TRIES


def nightly_schedule(bench: Bench) -> dg.ScheduleDefinition:
    """The schedule at the time of the project's config, stopped unless that says that it is enabled."""
    settings = bench.config_or_default().schedules.nightly
    max_attempts = bench.max_attempts()

    @dg.schedule(
        name=NIGHTLY,
        job_name=EVALUATE,
        cron_schedule=settings.cron,
        execution_timezone=settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING
        if settings.enabled
        else dg.DefaultScheduleStatus.STOPPED,
        description=(
            "Runs everything in the project, every tier and attempt, within the caps of `spending`; what has a verdict "
            "is reused. Time, time zone and whether it is enabled are `schedules.nightly` in config.yaml."
        ),
    )
    def nightly(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        running = context.instance.get_runs(dg.RunsFilter(tags=_OF_A_NIGHT, statuses=UNFINISHED), limit=1)
        if running:
            return dg.SkipReason(f"the night that began at {running[0].tags[NIGHT]} has not ended")
        # Only the clock of the schedule: where clocks are set back, an hour that comes twice is one night.
        night = f"{context.scheduled_execution_time:%Y-%m-%d %H:%M}"
        if run_of(context.instance, _key(night, EVALUATE, 1)) != "absent":
            return dg.SkipReason(f"the night that began at {night} has its run")
        return _request(night, EVALUATE, 1, max_attempts)

    return nightly


def nightly_freshness(bench: Bench) -> dg.FreshnessPolicy | None:
    """For an asset that every night makes: it is stale when a night begins and the last one has not made it.

    None where nights are not enabled: nothing promises such an asset then.
    """
    settings = bench.config_or_default().schedules.nightly
    if not settings.enabled:
        return None
    return dg.FreshnessPolicy.cron(
        deadline_cron=settings.cron,
        lower_bound_delta=get_smallest_cron_interval(settings.cron, settings.timezone),
        timezone=settings.timezone,
    )


def night_sensor(jobs: Sequence["UnresolvedAssetJobDefinition"], max_attempts: int) -> dg.SensorDefinition:
    """The sensor that carries a night on: what failed for a passing reason again, then the next run."""

    @dg.sensor(
        name="night_sensor",
        jobs=[job for job in jobs if job.name in _STEPS],
        minimum_interval_seconds=_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            "Once the first run of a night has ended well, asks for the second, which scores, compares and judges, and "
            "then for the report, however those ended. A run that failed for a reason that passes is asked for twice "
            "more."
        ),
    )
    def carry_on(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        newest = context.instance.get_runs(dg.RunsFilter(tags=_OF_A_NIGHT), limit=1)
        if not newest:
            return dg.SkipReason("there was no night yet")
        night = newest[0].tags[NIGHT]
        standing = _standing(context.instance, night)
        if standing is None:
            return dg.SkipReason(f"the night that began at {night} is done")
        job, tries, run = standing
        if run == "going":
            return dg.SkipReason(f"the run of {job} in the night that began at {night} is going on")
        return _request(night, job, tries, max_attempts)

    return carry_on


def _standing(instance: dg.DagsterInstance, night: str) -> tuple[str, int, Run] | None:
    """The job whose run goes on or is to be asked for, which try that is, and which of both; None once all is done."""
    run: Run = "done"
    for job in _STEPS:
        if job == SCORE and run == "given_up":
            # There is nothing to score; the morning's report says so.
            continue
        _, tries, run = newest_try(partial(_key, night, job), partial(run_of, instance), again={"failed"})
        if run in {"absent", "going"}:
            return job, tries, run
    return None


def ended_nights(instance: dg.DagsterInstance, after: str | None) -> list[tuple[str, list[dg.DagsterRun]]]:
    """The nights that ended after the one of a name, oldest first, each with the newest run of each job.

    A night ends when nothing more is asked for, or when the next begins. One that began long ago is not looked for.
    """
    nights: dict[str, dict[str, dg.DagsterRun]] = {}
    for run in instance.get_runs(dg.RunsFilter(tags=_OF_A_NIGHT), limit=_LOOKED_AT):
        if after is None or run.tags[NIGHT] > after:
            nights.setdefault(run.tags[NIGHT], {}).setdefault(run.job_name, run)
    names = sorted(nights)
    if names and _standing(instance, names[-1]) is not None:
        names.pop()
    return [(name, list(nights[name].values())) for name in names]


def _request(night: str, job: str, tries: int, max_attempts: int) -> dg.RunRequest:
    ends = {EVALUATE: whole_rectangle, SCORE: whole_axis}
    partitions = range_tags(*ends[job](max_attempts)) if job in ends else {}
    return dg.RunRequest(
        run_key=_key(night, job, tries), job_name=job, tags={**_OF_A_NIGHT, NIGHT: night, **partitions}
    )


def _key(night: str, job: str, tries: int) -> str:
    return f"{night} {job} {tries}"
