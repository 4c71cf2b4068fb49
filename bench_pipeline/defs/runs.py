"""What became of runs that were asked for.

What belongs here: reading Dagster's record of runs. What does not: deciding what has to run (``pipeline``) and asking
for it (``sensors``, ``schedules``).
"""

import dagster as dg
from dagster import DagsterRunStatus

from bench_pipeline.pipeline.ledger_watch import Run

RUN_KEY = "dagster/run_key"
UNFINISHED = [
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.MANAGED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]


def run_of(instance: dg.DagsterInstance, run_key: str) -> Run:
    """What became of the newest run that was asked for with a key."""
    runs = instance.get_runs(dg.RunsFilter(tags={RUN_KEY: run_key}), limit=1)
    if not runs:
        return "absent"
    status = runs[0].status
    if status in {DagsterRunStatus.CANCELED, DagsterRunStatus.CANCELING}:
        return "cancelled"
    return "failed" if runs[0].is_finished else "going"
