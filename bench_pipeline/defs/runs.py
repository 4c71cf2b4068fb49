"""What became of runs that were asked for.

What belongs here: reading Dagster's record of runs. What does not: deciding what has to run (``pipeline``) and asking
for it (``sensors``, ``schedules``).
"""

from collections.abc import Iterable, Mapping

import dagster as dg
from dagster import DagsterRunStatus
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus
from dagster_shared.error import SerializableErrorInfo

from bench_pipeline.pipeline.asking import Run, would_fail_again
from bench_pipeline.pipeline.checking import checks_of

RUN_KEY = "dagster/run_key"
# The tag with which the hook marks runs that failed.
FAILURE, PERMANENT, TRANSIENT = "bench/failure", "permanent", "transient"
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
    run = runs[0]
    if run.status in {DagsterRunStatus.CANCELED, DagsterRunStatus.CANCELING}:
        return "given_up"
    if run.status is DagsterRunStatus.SUCCESS:
        return "done"
    if run.is_finished:
        return "given_up" if kind_of_failure(instance, run) == PERMANENT else "failed"
    return "going"


def kind_of_failure(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    """Whether a failed run would fail again: as the hook stamped it, or as its steps say.

    A run that ended without a step that failed was killed, or never started: that passes.
    """
    if FAILURE in run.tags:
        return run.tags[FAILURE]
    causes = _causes(instance, run)
    return PERMANENT if any(would_fail_again(_class_of(error)) for error in causes) else TRANSIENT


def words_of_failure(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    """What the first step that failed says of it."""
    words = [error.message.partition(": ")[2] or error.message for error in _causes(instance, run)]
    return words[0] if words else "it was killed, or never started"


def _causes(instance: dg.DagsterInstance, run: dg.DagsterRun) -> list[SerializableErrorInfo]:
    """The errors of a run's steps, below those with which Dagster wraps them; a check that failed has Dagster's."""
    causes = []
    for event in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE):
        error = event.get_dagster_event().step_failure_data.error
        while error is not None and error.cause is not None and (error.cls_name or "").startswith("Dagster"):
            error = error.cause
        causes += [error] if error is not None else []
    return causes


def _class_of(error: SerializableErrorInfo) -> str:
    return "AssertionError" if error.cls_name == "DagsterAssetCheckFailedError" else error.cls_name or ""


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
