"""Writing the tables that are read off verdicts: evaluation_rankings and paired_comparisons.

What belongs here: reading the store's cells and verdicts and writing what is computed from them. What does
not: the computing (``ranking``, ``comparing``).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

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


def repositories(bench: "Bench") -> Mapping[str, str]:
    """The repository of each task that comes from one, by task id."""
    return task_repositories(bench.tasks.tasks, bench.project.config.source.remote)
