"""Reading cells and verdicts, at today's prices, and writing the tables that are read off them.

What belongs here: what ``bench rank``, ``compare`` and ``gate`` read, what is said when it is older than the
project, and writing evaluation_rankings and paired_comparisons. What does not: the computing (``ranking``,
``comparing``).
"""

import difflib
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.errors import NotFoundError
from bench_pipeline.pipeline.collecting import repriced
from bench_pipeline.pipeline.comparing import compare_all, task_repositories
from bench_pipeline.pipeline.provenance import made
from bench_pipeline.pipeline.ranking import rank_evaluation
from bench_pipeline.pipeline.staleness import stale_note
from bench_pipeline.pipeline.tables import Written, write_table

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench


def write_rankings(bench: "Bench") -> Written:
    """Rank every evaluation of the project from its stored cells and verdicts, and write the table."""
    coverage = bench.project.config.ranking.min_coverage
    with made(bench, "evaluation_rankings"):
        table = rank_evaluation(*stored_outcomes(bench), min_coverage=coverage)
        return write_table(bench.store, "evaluation_rankings", table)


def write_comparisons(bench: "Bench") -> Written:
    """Compare every pair of setups of every evaluation, and write the table."""
    with made(bench, "paired_comparisons"):
        table = compare_all(*stored_outcomes(bench), clusters=repositories(bench))
        return write_table(bench.store, "paired_comparisons", table)


def stored_outcomes(bench: "Bench") -> tuple[pa.Table, pa.Table]:
    """The project's evaluation_cells and verdicts of the store, at today's prices; empty before the first run."""
    cells, verdicts = (bench.store.tables.read(name) for name in ("evaluation_cells", "verdicts"))
    return cells, repriced(bench.store, bench.prices, verdicts)


def evaluation_outcomes(bench: "Bench", name: str | None) -> tuple[pa.Table, pa.Table]:
    """The cells and verdicts of one evaluation, or of all that the project has; empty before they are planned.

    What is older about them than the project is said by ``bench.on_notice``.

    Raises:
        NotFoundError: the evaluation is not, or no longer, in the project; names the nearest.
    """
    from bench_pipeline.evaluations import list_evaluations

    cells, verdicts = (bench.store.tables.read(table) for table in ("evaluation_cells", "verdicts"))
    stored, names = set(pc.unique(cells["evaluation"]).to_pylist()), list_evaluations(bench.project)
    if name is not None:
        _check_evaluation(bench, name, names, stored)
    chosen = names if name is None else [name]
    for gone in sorted(stored - set(names)) if name is None else ():
        bench.on_notice(f"{gone} is left out: {_gone(bench, gone)}; `bench run` takes its rows away")
    cells, verdicts = (
        table.filter(pc.is_in(table["evaluation"], value_set=pa.array(chosen, pa.string())))
        for table in (cells, verdicts)
    )
    for each in chosen:
        note = stale_note(bench, each, cells.filter(pc.equal(cells["evaluation"], each)))
        if note is not None:
            bench.on_notice(note)
    return cells, repriced(bench.store, bench.prices, verdicts)


def repositories(bench: "Bench") -> Mapping[str, str]:
    """The repository of each task that comes from one, by task id."""
    return task_repositories(bench.tasks.tasks, bench.project.config.source.remote)


def _check_evaluation(bench: "Bench", name: str, names: Sequence[str], stored: Collection[str]) -> None:
    if name in names:
        return
    tried = f"finding evaluation {name!r}"
    if name in stored:
        remedy = "put the file back, or let `bench run` take its rows away; the store keeps the verdicts"
        raise NotFoundError(tried, _gone(bench, name), remedy)
    near = difflib.get_close_matches(name, names, n=3) or names[:5]
    remedy = f"nearest: {', '.join(near)}" if near else f"make it with: bench evaluation create {name}"
    raise NotFoundError(tried, "the project has none of this name", remedy)


def _gone(bench: "Bench", name: str) -> str:
    file = (bench.project.evaluations_dir / f"{name}.yaml").relative_to(bench.project.root)
    return f"{file} is not in the project any more"
