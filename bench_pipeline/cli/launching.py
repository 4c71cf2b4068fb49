"""Starting Dagster from the command line: the project's instance, one ranged run, the sweep of killed runs.

The one module of the command line that knows Dagster; imported by ``bench run`` and ``bench ui`` when they run.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import psutil
from dagster import DagsterInstance, DagsterRunStatus, RunsFilter

from bench_pipeline.definitions import LOCATION, build_defs
from bench_pipeline.defs.jobs import EVALUATE
from bench_pipeline.defs.partitions import key_of
from bench_pipeline.errors import BenchError
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.initialising import write_instance_config
from bench_pipeline.pipeline.selection import Partition, RunOptions

# Written on every run that a command starts, so that the next command can tell a killed one from a live one.
_PROCESS_TAG = "bench/process"
# The event log belongs in the instance, where the UI shows it, and not on the terminal.
_CONSOLE = {"console": {"config": {"log_level": "CRITICAL"}}}


def dagster_home(bench: Bench) -> Path:
    """DAGSTER_HOME when it is set, else the project's own instance folder, made when absent."""
    chosen = os.environ.get("DAGSTER_HOME")
    if chosen:
        if not Path(chosen).is_absolute():
            raise BenchError(
                "opening the Dagster instance", f"DAGSTER_HOME is {chosen!r}", "set it to an absolute path"
            )
        return Path(chosen)
    return write_instance_config(bench.project)


@contextmanager
def instance_of(bench: Bench) -> Iterator[DagsterInstance]:
    """The project's Dagster instance, with the runs of killed commands marked as failed."""
    home = dagster_home(bench)
    os.environ["DAGSTER_HOME"] = str(home)
    with DagsterInstance.from_config(str(home)) as instance:
        sweep(instance)
        yield instance


def sweep(instance: DagsterInstance) -> int:
    """Mark runs whose command is gone as failed; returns how many there were."""
    running = instance.get_runs(
        RunsFilter(
            statuses=[DagsterRunStatus.STARTED, DagsterRunStatus.STARTING, DagsterRunStatus.NOT_STARTED]
        )
    )
    dead = [run for run in running if _PROCESS_TAG in run.tags and not _alive(run.tags[_PROCESS_TAG])]
    for run in dead:
        instance.report_run_failed(run, "The command that started this run is gone; run it again to go on.")
    return len(dead)


def _process_mark() -> str:
    """This process, told apart from a later one with the same number."""
    return f"{os.getpid()}@{psutil.Process().create_time():.2f}@{os.uname().nodename}"


def _alive(mark: str) -> bool:
    number, started, node = mark.split("@", 2)
    if node != os.uname().nodename:
        return True
    try:
        return f"{psutil.Process(int(number)).create_time():.2f}" == started
    except psutil.NoSuchProcess:
        return False


def run_evaluations(bench: Bench, partitions: Sequence[Partition], options: RunOptions) -> str:
    """Materialise cells, verdicts, rankings and comparisons over a rectangle of partitions as one run.

    Returns the run's id. Raises BenchError when the run failed for a reason of ours, with that reason.
    """
    job = build_defs({"bench": bench}).resolve_job_def(EVALUATE)
    first, last = partitions[0], partitions[-1]
    config = {
        "evaluations": list(options.selection.evaluations),
        "tasks": list(options.selection.tasks),
        "tiers": list(options.selection.tiers),
        "attempts": list(options.selection.attempts),
        "fresh": options.fresh,
        "retry": options.retry,
        "max_cost_usd": options.max_cost_usd,
        "max_cells": options.max_cells,
        "concurrency": options.concurrency,
        "plan": options.plan,
    }
    with instance_of(bench) as instance:
        result = job.execute_in_process(
            instance=instance,
            run_config={"ops": {"verdicts": {"config": config}}, "loggers": _CONSOLE},
            tags={
                "dagster/asset_partition_range_start": key_of(first),
                "dagster/asset_partition_range_end": key_of(last),
                ".dagster/repository": f"__repository__@{LOCATION}",
                "dagster/max_retries": "0",
                _PROCESS_TAG: _process_mark(),
            },
            raise_on_error=False,
        )
    if not result.success:
        raise _failure(result)
    return result.run_id


def _failure(result: dg.ExecuteInProcessResult) -> BenchError:
    """Why a run failed: our own error when there is one, else the failed checks, else Dagster's words."""
    checks = [
        f"{check.asset_key.to_user_string()}: {check.check_name}: {check.description}"
        for check in result.get_asset_check_evaluations()
        if not check.passed
    ]
    causes = [event.step_failure_data.error for event in result.get_step_failure_events()]
    words = [cause.cause.message if cause.cause else cause.message for cause in causes if cause]
    return BenchError(
        f"run {result.run_id[:8]}",
        "\n".join([*checks, *words]).strip() or "the run failed",
        "the run's page in `bench ui` shows every step",
    )
