"""A report's document over tables that a test writes, without running anything."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.ranking import rank_evaluation
from bench_pipeline.pipeline.reporting import make_report
from bench_pipeline.tables import table_schema
from bench_pipeline_tests.outcomes import Results, tables

FIRST, SECOND, THIRD = (datetime(2026, 3, day, 2, 17, tzinfo=UTC) for day in (1, 2, 3))
Rows = Sequence[Mapping[str, Any]]


def empty_project(folder: Path) -> Bench:
    """A project without any table."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text("apiVersion: bench.ber.run/v1alpha1\nkind: Project\n")
    return Bench(folder)


def write_outcomes(bench: Bench, results: Results, **facts: Any) -> None:
    """Cells, verdicts and the ranking of one evaluation."""
    cells, verdicts = tables(results, **facts)
    for name, table in (("evaluation_cells", cells), ("verdicts", verdicts)):
        for attempt in table["attempt"].unique().to_pylist():
            rows = table.filter(pc.equal(table["attempt"], attempt))
            bench.store.tables.write(name, rows, tier="standard", attempt=attempt)
    bench.store.tables.write("evaluation_rankings", rank_evaluation(cells, verdicts))


def write_rows(bench: Bench, name: str, rows: Rows, **partition: Any) -> None:
    """Rows of any table."""
    bench.store.tables.write(name, table_schema(name).from_rows(rows), **partition)


def report_at(bench: Bench, moment: datetime, since: str | None = None) -> dict[str, Any]:
    """The report as it is made at a moment."""
    return make_report(bench, since, now=moment)


def score(setup: str, attempt: int, value: float, **facts: Any) -> dict[str, Any]:
    """A row of composite_scores over three tasks."""
    return {
        "setup": setup,
        "setup_digest": setup,
        "attempt": attempt,
        "scope": "smoke,standard",
        "suite_digest": "s",
        "score": value,
        "safety": 0.0 if value == 0 else 1.0,
        "complete": True,
        "tasks": 3,
        "passed": 2,
        "judged": 3,
        "crashes": 0,
        "orphans": 0,
        "cost_unknown": 0,
        "reasons": [],
        "regressions": 0,
        "without_telemetry": 0,
        "judge_failed": 0,
        **facts,
    }


def ledger_route(kind: str, route: str | None, position: int, **facts: Any) -> dict[str, Any]:
    """A row of ledger_summaries: 4 valid rows of 5, 3 of them passed."""
    return {
        "ledger": "north-lab",
        "digest": "d",
        "route": route,
        "kind": kind,
        "rows": 5,
        "valid": 4,
        "passes": 3,
        "avg_partial": 0.8125,
        "partial_n": 4,
        "f2p_n": 0,
        "unparsable_lines": 0,
        "incomplete_tail": False,
        "position": position,
        **facts,
    }
