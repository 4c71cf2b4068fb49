"""The nightly schedule: the whole graph, one run for each partition shape, as `bench run` without a name does it.

What belongs here: when a night begins, and what it asks for after its first run. What does not: what follows changes
by day (``sensors``).

A schedule starts one job, so the night's second run is asked for by a sensor, once the first has ended well. Both
carry the tag ``bench/night``: the time that the night began, on the clock of the schedule. Ledgers are no part of a
night: ``ledger_sensor`` reads them as they come.
"""

import dagster as dg

from bench_pipeline.defs.jobs import EVALUATE, SCORE
from bench_pipeline.defs.partitions import range_tags, whole_axis, whole_rectangle
from bench_pipeline.defs.runs import UNFINISHED, run_of
from bench_pipeline.pipeline.bench import Bench

NIGHTLY, NIGHT = "nightly", "bench/night"
# Marks all runs of nights, whichever night it is.
_OF_A_NIGHT = {"bench/asked_by": NIGHTLY}
# The first run takes minutes to hours; what comes after it can wait this long.
_SECONDS = 30


def nightly_schedule(bench: Bench) -> dg.ScheduleDefinition:
    """The schedule at the time of the project's config, stopped unless that says that it is enabled."""
    settings = bench.config_or_default().schedules.nightly
    first, last = whole_rectangle(bench.max_attempts())

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
        if run_of(context.instance, night) != "absent":
            return dg.SkipReason(f"the night that began at {night} has its run")
        return dg.RunRequest(run_key=night, tags={**_OF_A_NIGHT, NIGHT: night, **range_tags(first, last)})

    return nightly


def nightly_scores(bench: Bench) -> dg.SensorDefinition:
    """The sensor that asks for a night's second run."""
    first, last = whole_axis(bench.max_attempts())

    @dg.sensor(
        name="nightly_scores",
        job_name=SCORE,
        minimum_interval_seconds=_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Scores, compares and judges once the first run of a night has ended well.",
    )
    def scores(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        measured = context.instance.get_runs(
            dg.RunsFilter(job_name=EVALUATE, tags=_OF_A_NIGHT, statuses=[dg.DagsterRunStatus.SUCCESS]),
            limit=1,
        )
        if not measured:
            return dg.SkipReason("no night has been measured")
        night = measured[0].tags[NIGHT]
        run_key = f"{night} {SCORE}"
        if run_of(context.instance, run_key) != "absent":
            return dg.SkipReason(f"the night that began at {night} has its second run")
        return dg.RunRequest(run_key=run_key, tags={**_OF_A_NIGHT, NIGHT: night, **range_tags(first, last)})

    return scores
