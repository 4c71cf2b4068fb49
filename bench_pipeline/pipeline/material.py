"""From a planned cell to a job: the files, patches, limits and records that running it needs."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from bench_pipeline.documents import Name, StrictModel, Text, read_jsonl
from bench_pipeline.errors import DocumentError, NotFoundError, Problem, RefusedError
from bench_pipeline.identity import IDENTITY_RECIPE, RUN_RECIPE, VERIFY_RECIPE, canonical_json, digest_bytes
from bench_pipeline.pipeline.programs import program_problem
from bench_pipeline.pipeline.upstreams import door_problem, upstream_problem
from bench_pipeline.tasks import copy_tree, tree_digest
from bench_pipeline.tasks.paths import in_cache

if TYPE_CHECKING:
    from bench_pipeline.evaluations import Setup, StepSetup
    from bench_pipeline.execution.job import CellJob, Kit
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.planning import Plan, PlannedSetup, PlannedTask
    from bench_pipeline.project import Project
    from bench_pipeline.registry import ToolDefinition


class PlannedCell(Protocol):
    """What of a planned cell its job is made from."""

    @property
    def identity(self) -> str: ...  # noqa: D102
    @property
    def evaluation(self) -> str: ...  # noqa: D102
    @property
    def setup_digest(self) -> str: ...  # noqa: D102
    @property
    def task_id(self) -> str: ...  # noqa: D102
    @property
    def attempt(self) -> int: ...  # noqa: D102


class PredictionRow(StrictModel):
    """One row of a predictions file, in the shape that SWE-bench uses."""

    instance_id: Name
    model_name_or_path: Text
    model_patch: Text | None


Predictions = Mapping[str, bytes]


def read_predictions(project: "Project", setup: "Setup") -> dict[str, Predictions]:
    """The patches that the setup's replaying tools deliver, by step name and task id.

    Raises DocumentError for a row that is wrong and for a task that has two.
    """
    return {
        leaf.name: _predictions_of(project, leaf)
        for leaf in setup.leaves()
        if leaf.definition.invoke.replay is not None
    }


def _predictions_of(project: "Project", leaf: "StepSetup") -> Predictions:
    assert leaf.definition.invoke.replay is not None
    path = project.root / leaf.definition.invoke.replay.replace("{model}", leaf.model or "")
    rows = read_jsonl(path, PredictionRow)
    first: dict[str, int] = {}
    problems = []
    for row, line in zip(rows.rows, rows.lines, strict=True):
        if row.instance_id in first:
            problems.append(
                Problem(
                    str(path.relative_to(project.root)),
                    line,
                    "instance_id",
                    f"{row.instance_id} has a row already, on line {first[row.instance_id]}; keep one of them",
                )
            )
        first.setdefault(row.instance_id, line)
    if problems:
        raise DocumentError(problems)
    return {row.instance_id: (row.model_patch or "").encode() for row in rows.rows}


def prediction_digest(predictions: Mapping[str, Predictions], task_id: str) -> str | None:
    """One digest over what the replaying steps of a setup deliver for a task; None when nothing is replayed."""
    delivered = {step: digest_bytes(rows[task_id]) for step, rows in predictions.items() if task_id in rows}
    return digest_bytes(canonical_json(delivered)) if delivered else None


def project_files(bench: "Bench", definition: "ToolDefinition") -> tuple[Path, str]:
    """A copy of the project files that a tool names, and its tree digest.

    The copy is immutable and shared, so that editing a file while cells run changes nothing for them.
    """
    root = bench.project.root
    tried = f"reading the files of the tool {definition.name}"
    missing = [name for name in definition.files if not (root / name).exists()]
    if missing:
        remedy = "add them, or take them from the tool's files"
        raise NotFoundError(tried, f"not in the project: {', '.join(missing)}", remedy)
    caches = [
        name for name in definition.files if in_cache(f"{name}/any" if (root / name).is_dir() else name)
    ]
    if caches:
        wrong = f"caches of interpreters are no part of a tool: {', '.join(caches)}"
        raise RefusedError(tried, wrong, "name the sources")
    scratch = bench.project.local_dir / "toolfiles" / f"{definition.name}.{os.getpid()}"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        for name in definition.files:
            _copy(root / name, scratch / name)
        digest = tree_digest(scratch)
        return bench.base_trees.get(f"toolfiles-{digest}", lambda into: _copy(scratch, into)), digest
    finally:
        shutil.rmtree(scratch)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
        copy_tree(source, target)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target, follow_symlinks=False)


def job_of(bench: "Bench", plan: "Plan", cell: PlannedCell) -> "CellJob":
    """The job of a planned cell."""
    from bench_pipeline.execution.job import CellJob

    setup, task = _parts(plan, cell)
    row = plan.row(cell.evaluation, cell.identity)
    return CellJob(
        identity=cell.identity,
        run_key=row["run_key"],
        verify_key=row["verify_key"],
        reusable=row["reusable"],
        task=task.task,
        setup=setup.setup,
        attempt=cell.attempt,
        base_tree=task.base_tree,
        limits=bench.limits(task.task),
        verify_limits=bench.limits(task.task, wall_s=task.task.verify.timeout_s),
        predictions={step: rows.get(task.task.id) for step, rows in setup.predictions.items()},
        tool_files=setup.tool_files,
        before=task.start,
    )


def refusal(bench: "Bench", job: "CellJob", kit: "Kit", *, replay: bool) -> str | None:
    """Why a cell cannot be run on this machine at all, or None; asked before anything is spent.

    A ``replay`` asks no model API.
    """
    from bench_pipeline.execution.invocation import network_refusal

    if job.task.verify.network and kit.sandbox.isolates:
        return "verify.network needs a network, and an isolated sandbox has none"
    for leaf in job.setup.leaves():
        why = network_refusal(leaf.definition, kit.sandbox, leaf.effects().values())
        why = why or program_problem(bench, leaf, job.tool_files)
        why = why or (door_problem if replay else upstream_problem)(bench, leaf)
        if why is not None:
            return why
    return None


def keep_records(bench: "Bench", plan: "Plan", cell: PlannedCell) -> dict[str, str]:
    """Store the documents that the cell's keys are made of, as artifacts under their own digests.

    Each digest is the SHA-256 of its document's canonical JSON, so the key itself finds the record. Returns
    name -> digest.
    """
    setup, task = _parts(plan, cell)
    row = plan.row(cell.evaluation, cell.identity)
    run = {
        "recipe": RUN_RECIPE,
        "task": row["task_digest"],
        "setup": row["setup_digest"],
        "environment": row["environment_digest"],
        "effect": row["pre_digest"],
        "prediction": row["prediction_digest"],
        "attempt": cell.attempt,
    }
    verify = {
        "recipe": VERIFY_RECIPE,
        "verify": row["verify_digest"],
        "environment": row["environment_digest"],
    }
    identity = {"recipe": IDENTITY_RECIPE, "run_key": row["run_key"], "verify_key": row["verify_key"]}
    documents = {
        "record_setup": setup.document,
        **{f"record_{name}": document for name, document in task.documents.items()},
        "record_run": run,
        "record_verify_key": verify,
        "record_identity": identity,
    }
    put = bench.store.artifacts.put
    return {name: put(canonical_json(document), "application/json") for name, document in documents.items()}


def _parts(plan: "Plan", cell: PlannedCell) -> tuple["PlannedSetup", "PlannedTask"]:
    return plan.setups[cell.evaluation, cell.setup_digest], plan.tasks[cell.task_id]
