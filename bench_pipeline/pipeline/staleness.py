"""What the project says now that its tables do not know yet, and the command that renews them.

What belongs here: comparing an evaluation's rows with its documents, as far as reading files tells. What does
not: the plan itself (``planning``). Nothing is probed or executed here, so that a ranking starts at once: a
changed toolchain or a new version of a tool shows with the next run.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from bench_pipeline.errors import BenchError, CorruptPartError, NotFoundError
from bench_pipeline.identity import digest

if TYPE_CHECKING:
    from bench_pipeline.evaluations import Setup
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.tasks import Task

# More names than this do not fit a line that is read.
_NAMED = 3


class _UnknownTreeError(Exception):
    """A base that is not on this machine yet; fetching it is the work of a run."""


def stale_note(bench: "Bench", evaluation: str, cells: pa.Table) -> str | None:
    """What is older about the rows ``cells`` of an evaluation than the project is, as one sentence, or None."""
    from bench_pipeline.evaluations import load_evaluation, resolve

    if cells.num_rows == 0:
        return None
    try:
        resolution = resolve(bench.project, bench.registry, load_evaluation(bench.project, evaluation))
        ready = _ready_tasks(bench, _distinct(cells, "task_id"))
    except BenchError as error:
        first = str(error).partition("\n")[0]
        return (
            f"{evaluation}: what is shown is of the last run, for its documents cannot be planned now "
            f"({first}); `bench evaluation validate {evaluation}` says what is wrong"
        )
    setups = {setup.label: setup for setup in resolution.setups}
    found = [
        *_gone_and_new("setups", _distinct(cells, "setup"), set(setups)),
        *_gone_and_new("tasks", _distinct(cells, "task_id"), set(ready)),
        *_listed("setups changed", _changed_setups(bench, cells, setups)),
        *_listed("tasks changed", _changed_tasks(bench, cells, ready)),
    ]
    attempts = max(cells["attempt"].to_pylist())
    if attempts != resolution.attempts:
        found.append(f"attempts: {attempts} in the tables, {resolution.attempts} asked for")
    if not found:
        return None
    older = f"the tables are older than the project ({'; '.join(found)})"
    return f"{evaluation}: {older}; renew them: bench run {evaluation}"


def _ready_tasks(bench: "Bench", shown: set[str]) -> dict[str, "Task"]:
    """The tasks that cells are made of now; whether a new golden task starts as it declares, a run finds out."""
    from bench_pipeline.tasks import stale

    golden = {task.id: task.as_task() for task in bench.golden.runnable if task.id in shown}
    return {**golden, **{task.id: task for task in bench.tasks.tasks if stale(task) is None}}


def _gone_and_new(what: str, shown: set[str], wanted: set[str]) -> list[str]:
    return [*_listed(f"{what} not in them", wanted - shown), *_listed(f"{what} that left", shown - wanted)]


def _listed(what: str, names: Iterable[str]) -> list[str]:
    """``names`` under a heading, the first few by name; nothing when there are none."""
    chosen = sorted(names)
    if not chosen:
        return []
    rest = f" and {len(chosen) - _NAMED} more" if len(chosen) > _NAMED else ""
    return [f"{what}: {', '.join(chosen[:_NAMED])}{rest}"]


def _distinct(cells: pa.Table, column: str) -> set[str]:
    return set(cells[column].unique().to_pylist())


def _changed_tasks(bench: "Bench", cells: pa.Table, ready: Mapping[str, "Task"]) -> set[str]:
    """Tasks of which prompt, base, hidden check or tier is another one than in the rows."""
    rows = cells.group_by(["task_id", "task_digest", "verify_digest", "tier"]).aggregate([]).to_pylist()
    now = {row["task_id"]: _task_now(bench, ready[row["task_id"]]) for row in rows if row["task_id"] in ready}
    return {
        row["task_id"]
        for row in rows
        for name, value in now.get(row["task_id"], {}).items()
        if None not in (value, row[name]) and value != row[name]
    }


def _task_now(bench: "Bench", task: "Task") -> dict[str, str | None]:
    """The columns of a task's cells as its files make them now; None for what is not known here."""
    from bench_pipeline.tasks import task_components, verify_components

    def unknown() -> Path:
        raise _UnknownTreeError

    try:
        work: str | None = digest(task_components(task, bench.bases.digest(task, unknown)))
    except _UnknownTreeError:
        work = None
    return {"task_digest": work, "verify_digest": digest(verify_components(task)), "tier": task.tier}


def _changed_setups(bench: "Bench", cells: pa.Table, setups: Mapping[str, "Setup"]) -> set[str]:
    """Labels under which the rows have another setup, or another replayed patch, than the documents make now."""
    rows = cells.group_by(["setup", "setup_digest"]).aggregate([]).to_pylist()
    changed = {
        row["setup"]
        for row in rows
        if row["setup"] in setups and _differs(bench, row["setup_digest"], setups[row["setup"]])
    }
    return changed | _changed_predictions(bench, cells, setups)


def _differs(bench: "Bench", setup_digest: str, setup: "Setup") -> bool:
    """Whether the setup that the digest stands for was made of other documents or files than this one is.

    Its record tells; without one (nothing was measured yet, or it was forgotten) nothing is known.
    """
    from bench_pipeline.evaluations import setup_document
    from bench_pipeline.pipeline.material import project_files

    try:
        record = json.loads(bench.store.artifacts.get(setup_digest))
    except (NotFoundError, CorruptPartError):
        return False
    try:
        files = {tool.name: project_files(bench, tool)[1] for tool, _ in setup.tools() if tool.files}
        return digest(setup_document(setup, record["versions"], files)) != setup_digest
    except (KeyError, NotFoundError):
        return True  # a tool that the record does not know, or files that are gone


def _changed_predictions(bench: "Bench", cells: pa.Table, setups: Mapping[str, "Setup"]) -> set[str]:
    from bench_pipeline.pipeline.material import prediction_digest, read_predictions

    rows = cells.group_by(["setup", "task_id", "prediction_digest"]).aggregate([]).to_pylist()
    patches = {label: read_predictions(bench.project, setup) for label, setup in setups.items()}
    return {
        row["setup"]
        for row in rows
        if row["setup"] in patches
        and prediction_digest(patches[row["setup"]], row["task_id"]) != row["prediction_digest"]
    }
