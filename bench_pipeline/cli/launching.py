"""Starting Dagster from the command line: the project's instance, and one ranged run on it per partition shape.

With ``sweeping`` the only part of the command line that knows Dagster; imported by ``bench run`` and ``bench ui``
when they run.
"""

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dagster import (
    AssetSelection,
    DagsterError,
    DagsterEventType,
    DagsterExecutionInterruptedError,
    DagsterInstance,
    Definitions,
    JobDefinition,
)
from dagster._core.instance.ref import InstanceRef
from filelock import FileLock

from bench_pipeline.cli.sweeping import alive, sweep
from bench_pipeline.definitions import LOCATION, build_defs
from bench_pipeline.defs.inventory import in_words, left_failed
from bench_pipeline.defs.jobs import EVALUATE, LEDGERS, REPORT, SCORE
from bench_pipeline.defs.partitions import LEDGER_AXIS, key_of, range_tags
from bench_pipeline.defs.runs import RUN_KEY, run_of
from bench_pipeline.defs.sensors import known_ledgers
from bench_pipeline.errors import BenchError
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.initialising import write_instance_config
from bench_pipeline.pipeline.ledger_watch import look
from bench_pipeline.pipeline.selection import Partition, RunOptions

# The event log belongs in the instance, where the UI shows it, and not on the terminal.
_CONSOLE = {"console": {"config": {"log_level": "CRITICAL"}}}


def dagster_home(bench: Bench) -> Path:
    """DAGSTER_HOME when it is set, else the project's own instance folder, made when absent.

    Raises:
        BenchError: DAGSTER_HOME is not an absolute path of a folder.
    """
    chosen = os.environ.get("DAGSTER_HOME")
    if not chosen:
        return write_instance_config(bench.project)
    tried, wrong = "opening the Dagster instance", f"DAGSTER_HOME is {chosen!r}"
    if not Path(chosen).is_absolute():
        raise BenchError(
            tried, wrong, "make it an absolute path, or unset it to use the project's own instance"
        )
    if not Path(chosen).is_dir():
        raise BenchError(
            tried, f"{wrong}, which is no folder", "make it, or unset it to use the project's own instance"
        )
    return Path(chosen)


# Capturing a step's output would redirect our own: progress and what Ctrl-C does would not be seen.
_OVERRIDES: Any = {
    "compute_logs": {
        "module": "dagster._core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
        "config": {},
    }
}


# Held while an instance is opened; it stays, so it is there once one was.
_OPENING = "opening.lock"


@contextmanager
def instance_in(home: Path) -> Iterator[DagsterInstance]:
    """The Dagster instance of a folder, with the runs of killed commands marked as failed.

    Raises:
        BenchError: it cannot be opened; says why in one line.
    """
    try:
        # Two that make the same databases at once fail.
        with FileLock(home / _OPENING):
            reference = InstanceRef.from_dir(str(home), overrides=_OVERRIDES)
            opened = DagsterInstance.from_ref(reference)
    except Exception as error:
        words = str(error).strip().splitlines() or [type(error).__name__]
        remedy = (
            f"mend {home / 'dagster.yaml'}, or dagster.storage_url in config.yaml, which it is written from"
        )
        raise BenchError(f"opening the Dagster instance in {home}", words[0], remedy) from error
    with opened as instance:
        sweep(instance, home)
        yield instance


def failed_partitions(bench: Bench) -> list[str] | None:
    """What the newest runs on the project's instance left failed, a line for each table; None before the first run."""
    home = Path(os.environ.get("DAGSTER_HOME") or bench.project.local_dir / "dagster")
    if not (home / _OPENING).is_file():
        return None
    nodes = build_defs({"bench": bench}).resolve_asset_graph().asset_nodes
    with instance_in(home) as instance:
        return in_words(left_failed(instance, {node.key: node.partitions_def for node in nodes}))


def run_everything(bench: Bench, partitions: Sequence[Partition], options: RunOptions) -> str:
    """Materialise the graph over a rectangle of partitions: one run over tiers and attempts, one over attempts.

    With evaluations selected, the second holds only what depends on their verdicts, and is left out by a replay, which
    changes none; without, the ledgers are read, and a report is made last, also when a run before it failed. Returns
    the id of the first run.
    An error of a step is raised as it is; a failed check is raised as BenchError, and an interrupt as
    KeyboardInterrupt. The run is marked as failed in each of these cases.
    """
    definitions = build_defs({"bench": bench})
    home = dagster_home(bench)
    with instance_in(home) as instance, _reported(definitions, options, instance, home):
        measured = _run(
            definitions.resolve_job_def(EVALUATE),
            instance,
            home,
            (key_of(partitions[0]), key_of(partitions[-1])),
            ops={"verdicts": {"config": _config(options)}},
        )
        if options.replay:
            return measured
        attempts = (str(partitions[0].attempt), str(partitions[-1].attempt))
        _run(_scoring(definitions, options), instance, home, attempts)
        if not options.selection.evaluations:
            _read_ledgers(bench, definitions.resolve_job_def(LEDGERS), instance, home)
    return measured


@contextmanager
def _reported(
    definitions: Definitions, options: RunOptions, instance: DagsterInstance, home: Path
) -> Iterator[None]:
    """Make the report after the block, unless evaluations are selected; when it fails, of what was measured until then.

    Not when a person ends the command.
    """
    job = None if options.selection.evaluations else definitions.resolve_job_def(REPORT)
    try:
        yield
    except Exception:
        if job is not None:
            # What failed is what has to be said, whatever comes of the report.
            with suppress(Exception):
                _run(job, instance, home)
        raise
    if job is not None:
        _run(job, instance, home)


def _read_ledgers(bench: Bench, job: JobDefinition, instance: DagsterInstance, home: Path) -> None:
    """Read the ledgers that are new or have changed, as they are now."""
    found = look(bench, known_ledgers(instance), lambda key: run_of(instance, key), settle=False)
    instance.add_dynamic_partitions(LEDGER_AXIS, found.new_keys)
    for request in found.requests:
        _run(job, instance, home, (request.first, request.last), tags={RUN_KEY: request.key})


def _scoring(definitions: Definitions, options: RunOptions) -> JobDefinition:
    """The second job, or the part of it that depends on verdicts."""
    job = definitions.resolve_job_def(SCORE)
    if not options.selection.evaluations:
        return job
    below = AssetSelection.assets("verdicts").downstream(include_self=False)
    wanted = below.resolve(definitions.resolve_asset_graph()) & set(job.asset_layer.executable_asset_keys)
    return job.get_subset(asset_selection=wanted)


def _run(
    job: JobDefinition,
    instance: DagsterInstance,
    home: Path,
    ends: tuple[str, str] | None = None,
    ops: dict[str, object] | None = None,
    tags: Mapping[str, str] | None = None,
) -> str:
    """Execute a job over the range of partitions between ``ends``, or one without partitions; the run's id."""
    run_id = str(uuid.uuid4())
    with alive(instance, home, run_id):
        try:
            job.execute_in_process(
                instance=instance,
                run_id=run_id,
                run_config={"ops": ops or {}, "loggers": _CONSOLE},
                tags={
                    **(tags or {}),
                    **(range_tags(*ends) if ends else {}),
                    ".dagster/repository": f"__repository__@{LOCATION}",
                    "dagster/max_retries": "0",
                },
                raise_on_error=True,
            )
        except DagsterExecutionInterruptedError as interrupt:
            raise KeyboardInterrupt from interrupt
        except DagsterError as error:
            raise _failure(instance, run_id, error) from error
    return run_id


def _config(options: RunOptions) -> dict[str, object]:
    """The options as the run config of the verdicts asset."""
    return {
        "evaluations": list(options.selection.evaluations),
        "tasks": list(options.selection.tasks),
        "tiers": list(options.selection.tiers),
        "attempts": list(options.selection.attempts),
        "fresh": options.fresh,
        "retry": options.retry,
        "max_cost_usd": options.max_cost_usd,
        "max_cells": options.max_cells,
        "concurrency": options.concurrency,
        "record": options.record,
        "replay": options.replay,
        "plan": options.plan,
    }


def _failure(instance: DagsterInstance, run_id: str, error: DagsterError) -> BenchError:
    """What the failed checks of a run say; Dagster's own words when none failed."""
    events = instance.all_logs(run_id, of_type=DagsterEventType.ASSET_CHECK_EVALUATION)
    checks = [event.get_dagster_event().asset_check_evaluation_data for event in events]
    words = [
        f"{check.asset_key.to_user_string()}: {check.check_name}: {check.description}"
        for check in checks
        if check.blocking and not check.passed
    ]
    return BenchError(
        f"run {run_id}",
        "; ".join(words) or str(error).strip().splitlines()[0],
        "what was measured is kept; `bench store verify` looks at the files, `bench ui` shows the run",
    )
