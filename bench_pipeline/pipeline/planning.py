"""From documents to cells: which there are, what keys they have, and what a run has to do with each.

Setups and tasks are described and digested once each; the cells themselves are columns of those digests.
Nothing is executed here but probes of the environment and, once per input, setup commands whose effect is part
of a key.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.errors import BenchError, DocumentError, Problem, SandboxError
from bench_pipeline.identity import cell_keys, digest
from bench_pipeline.pipeline.material import prediction_digest
from bench_pipeline.pipeline.selection import Selection
from bench_pipeline.tables import table_schema

if TYPE_CHECKING:
    from bench_pipeline.evaluations import Setup
    from bench_pipeline.execution.signals import Looked
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.tasks import Task


@dataclass(frozen=True)
class PlannedTask:
    """A task that cells may run on, with its base tree and the digests of its parts of the keys.

    ``start`` is what the signals of a golden task say of the base.
    """

    task: "Task"
    base_tree: Path
    base_digest: str
    run_digest: str
    verify_digest: str
    environment_digest: str
    documents: Mapping[str, Mapping[str, object]]
    start: "Looked | None" = None


@dataclass(frozen=True)
class PlannedSetup:
    """A setup of one evaluation, resolved on this machine."""

    evaluation: str
    attempts: int
    setup: "Setup"
    digest: str
    versions: Mapping[str, str | None]
    document: Mapping[str, object]
    tool_files: Mapping[str, Path] = field(default_factory=dict)
    predictions: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """Every cell of the selection, as an evaluation_cells table, and what its rows stand for.

    ``problems`` are documents that do not parse or resolve (their cells are not in the plan); ``left_out`` are
    tasks that no cell is made of, with the reason.
    """

    cells: pa.Table
    setups: Mapping[tuple[str, str], PlannedSetup]
    tasks: Mapping[str, PlannedTask]
    problems: tuple[Problem, ...]
    left_out: Mapping[str, str]

    @cached_property
    def _row_of(self) -> dict[tuple[str, str], int]:
        keys = zip(self.cells["evaluation"].to_pylist(), self.cells["identity"].to_pylist(), strict=True)
        return {key: number for number, key in enumerate(keys)}

    def has(self, evaluation: str, identity: str) -> bool:
        """Whether there is such a cell."""
        return (evaluation, identity) in self._row_of

    def row(self, evaluation: str, identity: str) -> dict[str, Any]:
        """One cell as a mapping of the table's columns."""
        row: dict[str, Any] = self.cells.slice(self._row_of[evaluation, identity], 1).to_pylist()[0]
        return row


def select(cells: pa.Table, selection: Selection) -> pa.Table:
    """The cells of a selection; an empty axis selects all of it."""
    for column, wanted in (
        ("evaluation", selection.evaluations),
        ("task_id", selection.tasks),
        ("tier", selection.tiers),
        ("attempt", selection.attempts),
    ):
        if wanted:
            values = pa.array(list(wanted), cells.schema.field(column).type)
            cells = cells.filter(pc.is_in(cells[column], value_set=values))
    return cells


def plan_cells(bench: "Bench", evaluations: Sequence[str] = ()) -> Plan:
    """Plan the named evaluations (none: all of the project) over every task that is ready.

    Documents that are wrong are reported in the plan, not raised: one broken file must not hide the others.
    """
    setups, problems = _planned_setups(bench, evaluations)
    tasks, left_out, task_problems = _planned_tasks(bench)
    cells = _cells_table(bench, setups, list(tasks.values()))
    return Plan(
        cells=cells,
        setups={(item.evaluation, item.digest): item for item in setups},
        tasks=tasks,
        problems=tuple(sorted({*problems, *bench.tasks.problems, *task_problems})),
        left_out=left_out,
    )


def _planned_setups(bench: "Bench", names: Sequence[str]) -> tuple[list[PlannedSetup], list[Problem]]:
    from bench_pipeline.evaluations import list_evaluations, load_evaluation, resolve

    planned: list[PlannedSetup] = []
    problems: list[Problem] = []
    for name in names or list_evaluations(bench.project):
        try:
            document = load_evaluation(bench.project, name)
            resolution = resolve(bench.project, bench.registry, document)
            planned += [
                _planned_setup(bench, name, resolution.attempts, setup) for setup in resolution.setups
            ]
        except DocumentError as error:
            problems += error.problems
        except BenchError as error:
            file = str((bench.project.evaluations_dir / f"{name}.yaml").relative_to(bench.project.root))
            problems.append(Problem(file, None, "", str(error)))
    problems += [*_ambiguous_labels(planned), *_twins(planned)]
    return planned, problems


def _planned_setup(bench: "Bench", evaluation: str, attempts: int, setup: "Setup") -> PlannedSetup:
    from bench_pipeline.evaluations import setup_digest, setup_document
    from bench_pipeline.pipeline.material import project_files, read_predictions

    versions: dict[str, str | None] = {}
    files: dict[str, Path] = {}
    file_digests: dict[str, str] = {}
    for definition, wanted in setup.tools():
        version = bench.environment.tool_version(definition, wanted)
        commands = [*definition.invoke.command, *setup.pre]
        named = bench.environment.interpreter_versions(commands)
        versions[definition.name] = version
        versions.update({f"{definition.name}:{name}": value for name, value in named.items()})
        if definition.files:
            files[definition.name], file_digests[definition.name] = project_files(bench, definition)
    predictions = read_predictions(bench.project, setup)
    return PlannedSetup(
        evaluation=evaluation,
        attempts=attempts,
        setup=setup,
        digest=setup_digest(setup, versions, file_digests),
        versions=versions,
        document=setup_document(setup, versions, file_digests),
        tool_files=files,
        predictions=predictions,
    )


def _ambiguous_labels(setups: Iterable[PlannedSetup]) -> list[Problem]:
    """Labels that stand for two setups: people could not tell their rows apart."""
    by_label: dict[str, dict[str, str]] = {}
    for item in setups:
        by_label.setdefault(item.setup.label, {}).setdefault(item.digest, item.evaluation)
    return [
        Problem(
            f"evaluations/{evaluation}.yaml",
            None,
            "",
            f"the label {label} stands for {len(digests)} different setups (evaluations "
            f"{', '.join(sorted(set(digests.values())))}); make them differ in model, version or options",
        )
        for label, digests in by_label.items()
        if len(digests) > 1
        for evaluation in sorted(set(digests.values()))
    ]


def _twins(setups: Iterable[PlannedSetup]) -> list[Problem]:
    """Setups of one evaluation that are the same on this machine: each cell would be counted twice."""
    labels: dict[tuple[str, str], list[str]] = {}
    for item in setups:
        labels.setdefault((item.evaluation, item.digest), []).append(item.setup.label)
    return [
        Problem(
            f"evaluations/{evaluation}.yaml",
            None,
            "",
            f"{' and '.join(same)} resolve to one and the same setup here; keep one of them",
        )
        for (evaluation, _), same in labels.items()
        if len(same) > 1
    ]


def _planned_tasks(bench: "Bench") -> tuple[dict[str, PlannedTask], dict[str, str], list[Problem]]:
    from bench_pipeline.tasks import stale

    planned: dict[str, PlannedTask] = {}
    left_out: dict[str, str] = {}
    problems: list[Problem] = []
    for task in bench.tasks.tasks:
        why = stale(task)
        if why is not None:
            left_out[task.id] = why
            continue
        try:
            planned[task.id] = _planned_task(bench, task)
        except SandboxError:
            raise  # The same for every task: said once.
        except BenchError as error:
            problems.append(Problem(f"tasks/{task.id}/task.yaml", None, "source", str(error)))
    golden, golden_left_out, golden_problems = _planned_golden(bench)
    problems += golden_problems
    problems += _same_tasks(bench.project.root, (*planned.values(), *golden.values()))
    problems += [
        Problem(
            str(golden[name].task.file), None, "id", f"{planned[name].task.file} has the same id; rename one"
        )
        for name in golden
        if name in planned
    ]
    return {**golden, **planned}, {**golden_left_out, **left_out}, problems


def _planned_golden(bench: "Bench") -> tuple[dict[str, PlannedTask], dict[str, str], list[Problem]]:
    """The golden tasks that can run and start as they declare."""
    from bench_pipeline.pipeline.starts import start_of, start_problem

    planned: dict[str, PlannedTask] = {}
    left_out: dict[str, str] = {}
    problems = list(bench.golden.problems)
    for golden in bench.golden.runnable:
        try:
            item = _planned_task(bench, golden.as_task())
            start = start_of(bench, item.task, item.base_tree, item.base_digest, item.environment_digest)
        except SandboxError:
            raise
        except BenchError as error:
            problems.append(Problem(str(golden.file), None, "workspace", str(error)))
            continue
        why = start_problem(golden, start)
        if why is None:
            planned[golden.id] = replace(item, start=start)
        else:
            left_out[golden.id] = why
    return planned, left_out, problems


def _same_tasks(root: Path, tasks: Iterable[PlannedTask]) -> list[Problem]:
    """Tasks that are equal in all that decides a verdict: their cells would be one cell counted twice."""
    first: dict[tuple[str, str, str], Path] = {}
    problems = []
    for item in tasks:
        key = (item.run_digest, item.verify_digest, item.environment_digest)
        file = Path(os.path.relpath(item.task.file, root))
        other = first.setdefault(key, file)
        if other != file:
            wrong = f"it is the same task as {other}, in another file; keep one of them"
            problems.append(Problem(str(file), None, "", wrong))
    return problems


def _planned_task(bench: "Bench", task: "Task") -> PlannedTask:
    from bench_pipeline.tasks import task_components, verify_components

    base_tree, base_digest = bench.base_tree(task)
    documents = {
        "task": task_components(task, base_digest),
        "verify": verify_components(task),
        "environment": bench.environment.document(task, bench.limits_document(task)),
    }
    digests = {name: digest(document) for name, document in documents.items()}
    return PlannedTask(
        task=task,
        base_tree=base_tree,
        base_digest=base_digest,
        run_digest=digests["task"],
        verify_digest=digests["verify"],
        environment_digest=digests["environment"],
        documents=documents,
    )


def _cells_table(bench: "Bench", setups: Sequence[PlannedSetup], tasks: Sequence[PlannedTask]) -> pa.Table:
    """Setups x tasks x attempts, attempts innermost, as columns."""
    schema = table_schema("evaluation_cells").schema
    if not setups or not tasks:
        return schema.empty_table()
    pairs = [_pair(bench, setup, task) for setup in setups for task in tasks]
    attempts = np.repeat([setup.attempts for setup in setups], len(tasks))
    at = np.repeat(np.arange(len(pairs)), attempts)
    attempt = np.concatenate([np.arange(1, count + 1) for count in attempts])
    given = pa.schema([schema.field(name) for name in pairs[0]])
    rows = pa.Table.from_pylist(pairs, schema=given).take(pa.array(at))
    keys = cell_keys(
        task=rows["task_digest"].to_pylist(),
        setup=rows["setup_digest"].to_pylist(),
        environment=rows["environment_digest"].to_pylist(),
        effect=rows["pre_digest"].to_pylist(),
        prediction=rows["prediction_digest"].to_pylist(),
        attempt=attempt.tolist(),
        verify=rows["verify_digest"].to_pylist(),
    )
    columns = {name: rows[name] for name in rows.column_names}
    columns |= {
        "identity": pa.array([key.hex() for key in keys.identity]),
        "run_key": pa.array([key.hex() for key in keys.run_key]),
        "verify_key": pa.array([key.hex() for key in keys.verify_key]),
        "attempt": pa.array(attempt),
    }
    return pa.table([columns[f.name].cast(f.type) for f in schema], schema=schema)


def _pair(bench: "Bench", planned: PlannedSetup, task: PlannedTask) -> dict[str, object]:
    """What the cells of one setup on one task have in common, as a row."""
    setup = planned.setup
    effect = bench.environment.effect(
        task.task, task.base_tree, task.base_digest, task.environment_digest, setup.all_pre()
    )
    return {
        "evaluation": planned.evaluation,
        "tier": task.task.tier,
        "task_id": task.task.id,
        "setup": setup.label,
        "setup_digest": planned.digest,
        "tool": setup.tool,
        "tool_version": planned.versions.get(setup.tool),
        "model": setup.model,
        "model_id": setup.model_id,
        "effort": setup.effort,
        "options": list(setup.options.items()),
        "steps": list(setup.step_values.items()),
        "task_digest": task.run_digest,
        "environment_digest": task.environment_digest,
        "pre_digest": effect.digest,
        "prediction_digest": prediction_digest(planned.predictions, task.task.id),
        "verify_digest": task.verify_digest,
        "reusable": effect.unknown is None,
        "not_reusable_reason": effect.unknown,
    }
