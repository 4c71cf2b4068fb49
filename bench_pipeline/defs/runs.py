"""What became of runs that were asked for.

What belongs here: reading Dagster's record of runs. What does not: deciding what has to run (``pipeline``) and asking
for it (``sensors``, ``schedules``).
"""

from collections.abc import Iterable, Mapping

import dagster as dg
from dagster import DagsterRunStatus
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

from bench_pipeline.pipeline.asking import Run
from bench_pipeline.pipeline.checking import checks_of

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
        return "given_up"
    return "failed" if runs[0].is_finished else "going"


def tables_in_flight(instance: dg.DagsterInstance, job_of: Mapping[str, str]) -> set[str]:
    """The tables that unfinished runs are making, or are about to; ``job_of`` says what a whole job makes."""
    found: set[str] = set()
    for run in instance.get_runs(dg.RunsFilter(statuses=UNFINISHED)):
        if run.asset_selection is not None:
            found |= {key.to_user_string() for key in run.asset_selection}
        else:
            found |= {table for table, job in job_of.items() if job == run.job_name}
    return found


def refused_tables(instance: dg.DagsterInstance, tables: Iterable[str]) -> set[str]:
    """The tables of which a blocking check failed when it was last made."""
    keys = [dg.AssetCheckKey(dg.AssetKey(table), name) for table in tables for name in checks_of(table)]
    records = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    return {
        key.asset_key.to_user_string()
        for key, record in records.items()
        if record.status is AssetCheckExecutionRecordStatus.FAILED
    }
