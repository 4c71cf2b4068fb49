"""Writing the tables that are read off verdicts: evaluation_rankings and paired_comparisons.

What belongs here: reading the store's cells and verdicts and writing what is computed from them. What does
not: the computing (``ranking``, ``comparing``).
"""

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.errors import NotFoundError
from bench_pipeline.pipeline.comparing import compare_all, task_repositories
from bench_pipeline.pipeline.ranking import rank_evaluation
from bench_pipeline.pipeline.tables import Written, write_table

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench


def write_rankings(bench: "Bench") -> Written:
    """Rank every evaluation of the project from its stored cells and verdicts, and write the table."""
    coverage = bench.project.config.ranking.min_coverage
    table = rank_evaluation(*stored_outcomes(bench), min_coverage=coverage)
    return write_table(bench.store, "evaluation_rankings", table)


def write_comparisons(bench: "Bench") -> Written:
    """Compare every pair of setups of every evaluation, and write the table."""
    table = compare_all(*stored_outcomes(bench), clusters=repositories(bench))
    return write_table(bench.store, "paired_comparisons", table)


def stored_outcomes(bench: "Bench") -> tuple[pa.Table, pa.Table]:
    """The project's evaluation_cells and verdicts as they are in the store; empty before the first run."""
    return bench.store.tables.read("evaluation_cells"), bench.store.tables.read("verdicts")


def evaluation_outcomes(bench: "Bench", name: str | None) -> tuple[pa.Table, pa.Table]:
    """The cells and verdicts of one evaluation, or of all; empty when it has not been planned yet.

    Raises:
        NotFoundError: neither the project nor its tables know the evaluation; names the nearest.
    """
    tables = stored_outcomes(bench)
    if name is None:
        return tables
    _check_evaluation(bench, tables[0], name)
    cells, verdicts = (table.filter(pc.equal(table["evaluation"], name)) for table in tables)
    return cells, verdicts


def repositories(bench: "Bench") -> Mapping[str, str]:
    """The repository of each task that comes from one, by task id."""
    return task_repositories(bench.tasks.tasks, bench.project.config.source.remote)


def _check_evaluation(bench: "Bench", cells: pa.Table, name: str) -> None:
    from bench_pipeline.evaluations import list_evaluations

    names = sorted({*list_evaluations(bench.project), *pc.unique(cells["evaluation"]).to_pylist()})
    if name not in names:
        near = difflib.get_close_matches(name, names, n=3) or names[:5]
        remedy = f"nearest: {', '.join(near)}" if near else f"make it with: bench evaluation create {name}"
        raise NotFoundError(f"finding evaluation {name!r}", "the project has none of this name", remedy)
