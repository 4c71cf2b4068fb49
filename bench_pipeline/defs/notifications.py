"""The sensor that tells people what happened by itself: a thin shell over ``pipeline.notifying``.

What belongs here: what Dagster knows of nights. What does not: gates, targets and what was told before.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import dagster as dg
from dagster import DagsterRunStatus

from bench_pipeline.defs.inventory import in_words, left_failed
from bench_pipeline.defs.runs import kind_of_failure, words_of_failure
from bench_pipeline.defs.schedules import ended_nights
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.notifying import notify
from bench_pipeline.reports.messages import FailedRun, Night

# What is told can wait this long, and a tick that has nothing to tell reads a few footers.
_SECONDS = 30


def notify_sensor(assets: Sequence[dg.AssetsDefinition]) -> dg.SensorDefinition:
    """The sensor; ``assets`` are those whose partitions a night may leave failed."""

    @dg.sensor(
        name="notify_sensor",
        minimum_interval_seconds=_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            "Tells the targets under `notifications` in config.yaml of gates that flipped and nights that failed, each "
            "once. A target that is down is tried again for 17 hours."
        ),
    )
    def tell(context: dg.SensorEvaluationContext, bench: dg.ResourceParam[Bench]) -> dg.SkipReason:
        return dg.SkipReason(notify(bench.again(), partial(_nights, context.instance, assets), time.time()))

    return tell


def _nights(
    instance: dg.DagsterInstance, assets: Sequence[dg.AssetsDefinition], after: str | None
) -> list[Night]:
    """The nights that ended since; what was left failed is said of the newest, whose it may still be."""
    nights = [Night(name, _failed(instance, runs)) for name, runs in ended_nights(instance, after)]
    if nights and nights[-1].failed:
        left = left_failed(instance, {asset.key: asset.partitions_def for asset in assets})
        nights[-1] = replace(nights[-1], left_failed=tuple(in_words(left)))
    return nights


def _failed(instance: dg.DagsterInstance, runs: Sequence[dg.DagsterRun]) -> tuple[FailedRun, ...]:
    return tuple(
        FailedRun(run.job_name, kind_of_failure(instance, run), run.run_id, words_of_failure(instance, run))
        for run in runs
        if run.status is DagsterRunStatus.FAILURE
    )
