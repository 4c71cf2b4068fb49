"""The use case behind ``bench run``: what was asked for, whether it can be done, and what came of it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.errors import DocumentError, NotFoundError, NothingToEvaluateError, RefusedError
from bench_pipeline.pipeline.displacing import displaced
from bench_pipeline.pipeline.forecast import forecast, plan_digest
from bench_pipeline.pipeline.planning import Plan, select
from bench_pipeline.pipeline.policy_receipts import calls_to_make
from bench_pipeline.pipeline.pricing import total
from bench_pipeline.pipeline.programs import refuse_missing_programs
from bench_pipeline.pipeline.replaying import REPLAY, decide, dry_run
from bench_pipeline.pipeline.selection import TIERS, Partition, RunOptions, Selection, rectangle
from bench_pipeline.pipeline.spending import budget_of
from bench_pipeline.pipeline.unpriced import unknown_costs
from bench_pipeline.pipeline.upstreams import refuse_unreachable_models
from bench_pipeline.policies.comparison import list_comparisons

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench

# As many digits as people compare at a glance; fewer would promise too little.
_SHORTEST_PLAN = 8


@dataclass(frozen=True)
class RunRequest:
    """A run that can start: its cells with what is to be done with each, and the partitions it rewrites.

    ``live_calls`` is how many calls at most each comparison of policies would make to a live model, ``questions`` how
    many at most each comparison of scenarios has for a model that judges.
    """

    options: RunOptions
    actions: pa.Table
    partitions: tuple[Partition, ...]
    paid: tuple[str, ...]
    left_out: Mapping[str, str]
    displaced: int = 0
    live_calls: Mapping[str, int] = field(default_factory=dict)
    questions: Mapping[str, int] = field(default_factory=dict)

    @property
    def evaluation(self) -> str | None:
        """The evaluation that was named, if one was."""
        return next(iter(self.options.selection.evaluations), None)

    @property
    def to_measure(self) -> int:
        """How many cells would run a tool, be checked again or be replayed."""
        work = pa.array(["run", "reverify", REPLAY])
        return int(pc.sum(pc.is_in(self.actions["action"], value_set=work)).as_py() or 0)


def prepare(bench: "Bench", options: RunOptions) -> RunRequest:
    """Resolve what was asked for and decide what to do with each cell; spends nothing.

    Raises DocumentError when a document that the selection needs is wrong, NotFoundError for an unknown task
    or tier, NothingToEvaluateError for an empty selection and RefusedError for another plan than the one named
    and for a cost cap that could not be kept.
    """
    plan = bench.plan()
    _refuse_problems(bench, plan, options)
    _refuse_unknown(bench, plan, options)
    cells = select(plan.cells, options.selection)
    if cells.num_rows == 0 and not (options.selection == Selection() and list_comparisons(bench.project)):
        raise NothingToEvaluateError("selecting cells", *_why_empty(bench, plan))
    actions = decide(bench, plan, cells, options)
    refuse_other_plan(actions, options.plan)
    refuse_missing_programs(bench, plan, actions)
    refuse_unreachable_models(bench, plan, actions, options)
    budget_of(bench, options).check(labels_to_run(actions))
    return RunRequest(
        options=options,
        actions=actions,
        partitions=_partitions(bench, plan, options),
        paid=_paid(plan, actions),
        left_out=plan.left_out,
        displaced=displaced(bench, plan.cells, options.selection.evaluations),
        live_calls={} if options.selection.evaluations else calls_to_make(bench),
        questions={} if options.selection.evaluations else _questions(bench),
    )


def _questions(bench: "Bench") -> dict[str, int]:
    # Imported here: it brings the statistics of judges along.
    from bench_pipeline.pipeline.judge_reports import questions_to_ask

    return questions_to_ask(bench)


def refuse_other_plan(actions: pa.Table, wanted: str | None) -> None:
    """Raise RefusedError unless ``actions`` are the plan whose digest, or the start of it, was asked for."""
    found = plan_digest(actions)
    if wanted is not None and not (len(wanted) >= _SHORTEST_PLAN and found.startswith(wanted.lower())):
        raise RefusedError(
            "running the plan",
            f"the plan is {found} now, not {wanted}",
            f"look at it again with --dry-run and pass the digest it prints, {_SHORTEST_PLAN} digits of it or more",
        )


def labels_to_run(actions: pa.Table) -> dict[str, str]:
    """Digest -> label of the setups that would run a tool."""
    to_run = actions.filter(pc.equal(actions["action"], "run"))
    return dict(zip(to_run["setup_digest"].to_pylist(), to_run["setup"].to_pylist(), strict=True))


def _refuse_problems(bench: "Bench", plan: Plan, options: RunOptions) -> None:
    """A named evaluation needs its own file and the files that all share; a run of everything needs all."""
    names = options.selection.evaluations
    folder = bench.project.evaluations_dir
    needed = []
    for problem in plan.problems:
        file = bench.project.root / problem.file
        if not names or file.parent != folder or file.stem in names:
            needed.append(problem)
    if needed:
        raise DocumentError(needed)


def _refuse_unknown(bench: "Bench", plan: Plan, options: RunOptions) -> None:
    from bench_pipeline.documents import nearest
    from bench_pipeline.evaluations import list_evaluations

    ids = [*(task.id for task in bench.tasks.tasks), *bench.golden.by_id]
    for what, wanted, known in (
        ("evaluation", options.selection.evaluations, list_evaluations(bench.project)),
        ("task", options.selection.tasks, ids),
        ("tier", options.selection.tiers, list(TIERS)),
    ):
        for name in wanted:
            if name not in known:
                close = nearest(name, known)
                raise NotFoundError(
                    f"selecting {what} {name}",
                    f"there is no such {what}",
                    f"did you mean {close}?" if close else f"known: {', '.join(known) or 'none'}",
                )
    for task_id in options.selection.tasks:
        if task_id in plan.left_out:
            lane = "golden" if task_id in bench.golden.by_id else "task"
            raise NothingToEvaluateError(
                f"selecting task {task_id}", plan.left_out[task_id], f"run `bench {lane} validate {task_id}`"
            )
        if task_id in bench.golden.by_id and task_id not in plan.tasks:
            raise NothingToEvaluateError(f"selecting task {task_id}", *_why_not_planned(bench, task_id))


def _why_not_planned(bench: "Bench", task_id: str) -> tuple[str, str]:
    """Why no cell is made of a golden task that nothing is wrong with."""
    if bench.golden.get(task_id).workspace is None:
        return "it has no workspace", "it is scored from telemetry: bench golden run"
    return "it is a packaged task, and the project has no golden tasks of its own", "copy it into golden/"


def _why_empty(bench: "Bench", plan: Plan) -> tuple[str, str]:
    if not bench.tasks.tasks and not plan.left_out and not plan.tasks:
        return "the project has no tasks", "make one with `bench task create`"
    if not plan.tasks:
        return "no task is validated", "run `bench task validate`"
    if not plan.setups:
        return "the project has no evaluations", "make one with `bench evaluation create NAME`"
    return "no cell matches", "widen --task, --tier or --attempt"


def _partitions(bench: "Bench", plan: Plan, options: RunOptions) -> tuple[Partition, ...]:
    """The rectangle to rewrite: what is planned and, so that old rows leave the tables, what is stored.

    A run of everything covers both axes whole, so that every partition exists.
    """
    if not options.selection.evaluations:
        return rectangle(TIERS, range(1, bench.max_attempts() + 1))
    planned = select(plan.cells, options.selection)
    attempts = set(pc.unique(planned["attempt"]).to_pylist())
    stored = bench.store.tables.read("evaluation_cells", columns=["evaluation", "attempt"])
    mine = pc.is_in(stored["evaluation"], value_set=pa.array(list(options.selection.evaluations)))
    attempts |= set(stored["attempt"].filter(mine).to_pylist())
    return rectangle(TIERS, range(1, min(max(attempts), bench.max_attempts()) + 1))


def _paid(plan: Plan, actions: pa.Table) -> tuple[str, ...]:
    """Labels of setups that would run a tool with credentials or a model API: these may spend money."""
    to_run = actions.filter(pc.equal(actions["action"], "run"))
    pairs = set(zip(to_run["evaluation"].to_pylist(), to_run["setup_digest"].to_pylist(), strict=True))
    return tuple(
        sorted(
            {
                plan.setups[pair].setup.label
                for pair in pairs
                if any(
                    definition.credentials.env or definition.model_apis
                    for definition, _ in plan.setups[pair].setup.tools()
                )
            }
        )
    )


def dry_run_document(bench: "Bench", request: RunRequest) -> dict[str, object]:
    """What the request would do and cost, what difference it could show, and which tasks are left out and why."""
    from bench_pipeline.pipeline.comparing import detectable_by_evaluation

    document = forecast(bench.store, bench.prices, request.evaluation, request.actions)
    document["detectable"] = [
        {"evaluation": name, **asdict(found)}
        for name, found in detectable_by_evaluation(request.actions).items()
    ]
    document["left_out"] = dict(request.left_out)
    return document


def replays_document(request: RunRequest) -> dict[str, object]:
    """What the request, which replays, would do."""
    return dry_run(request.actions, request.evaluation, plan_digest(request.actions))


def summary(bench: "Bench", request: RunRequest, run_id: str) -> dict[str, object]:
    """What came of the request's cells: outcomes of all, and what this run did and spent.

    ``not_measured`` counts the selected cells that have no verdict; ``failures`` are the commonest reasons of
    execution failures as (cells, outcome, reason), most cells first, and ``unknown_costs`` why costs are unknown.
    """
    verdicts = select(bench.store.tables.read("verdicts"), request.options.selection)
    ran = select(
        bench.store.tables.read("run_cells", run_id=run_id), Selection(request.options.selection.evaluations)
    )
    mine = ran.filter(pc.is_in(ran["identity"], value_set=pc.unique(verdicts["identity"])))
    actions = _counts(mine["action"])
    executed = mine.filter(pc.equal(mine["action"], "executed"))
    cost, known, unknown = total(executed["cost_usd"])
    outcomes = _counts(verdicts["outcome"])
    measured = int(pc.sum(pc.equal(verdicts["outcome_class"], "verdict")).as_py() or 0)
    return {
        "evaluation": request.evaluation,
        "cells": verdicts.num_rows,
        "executed": actions.get("executed", 0),
        "reused": actions.get("reused", 0),
        "reverified": actions.get("reverified", 0),
        "not_attempted": outcomes.get("not_attempted", 0),
        "outcomes": outcomes,
        "cost_usd": None if unknown and not known else cost,
        "cost_known": known,
        "cost_unknown": unknown,
        "not_measured": verdicts.num_rows - measured,
        "failures": _failures(verdicts),
        "unknown_costs": unknown_costs(
            bench.store.tables.read("evaluation_cells", columns=["identity", "model_id"]),
            verdicts,
            bench.prices,
        ),
    }


def _failures(verdicts: pa.Table, shown: int = 5) -> list[tuple[int, str, str]]:
    failed = verdicts.filter(pc.equal(verdicts["outcome_class"], "execution_failure"))
    reasons = Counter(zip(failed["outcome"].to_pylist(), failed["reason"].to_pylist(), strict=True))
    return [
        (cells, outcome, reason or "no reason") for (outcome, reason), cells in reasons.most_common(shown)
    ]


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    return {str(item["values"]): int(item["counts"]) for item in pc.value_counts(column).to_pylist()}
