"""A report over 100,000 verdicts against the DuckDB queries behind it.

Both sides start at the same files. Ours is what the asset `bench_report` does in a night: it reads the tables, checks
that they are what was written, keeps the state for the next report, compares it with the one before, and renders both
pages. The peer is one DuckDB connection that reads the files by itself and runs the same queries, those that compare
the states included, each fetched as an Arrow table; it keeps and renders nothing.
"""

import tempfile
from pathlib import Path
from random import Random

import duckdb

from bench_pipeline.pipeline import report_changes, report_gaps, report_state, reporting
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.reporting import make_report, write_report
from bench_pipeline.tables import table_schema
from bench_pipeline_tests.benchmarks import Row, best_of
from bench_pipeline_tests.outcomes import Results
from bench_pipeline_tests.reports.documents import FIRST, SECOND, empty_project, write_outcomes

SETUPS, TASKS, ATTEMPTS = 20, 1000, 5
# Of a hundred verdicts, how many are others than in the report before.
_CHANGED = 1
_TABLES = (
    *("evaluation_cells", "verdicts", *reporting._SHOWN, *reporting._COUNTED),
    *("report_cells", "report_measures"),
)
_STATES = {
    "now": "select * from cells",
    "before": "select * from report_cells where report = '{before}'",
    "measures_now": "select * from measures",
    "measures_before": "select * from report_measures where report = '{before}'",
}
_QUERIES = (
    *(reporting._OUTCOMES, reporting._FAILURES, reporting._SCENARIOS),
    *(report_gaps._COVERAGE, report_gaps._UNSCORED, report_gaps._UNJUDGED),
    *(report_gaps._POLICIES, report_gaps._JUDGES, report_gaps._LEDGERS),
    *(report_changes._COUNTS, report_changes._FLIPS, report_changes._RATES, report_changes._MEASURES),
)


def measure() -> list[Row]:
    """One evaluation of 20 setups on 1,000 tasks, 5 attempts each; one verdict in a hundred has changed."""
    with tempfile.TemporaryDirectory(prefix="bench-reporting-") as folder:
        bench = empty_project(Path(folder))
        random = Random(8785)
        results = _results(random)
        write_outcomes(bench, results)
        before = make_report(bench, now=FIRST)["report"]
        write_outcomes(bench, _changed(results, random))

        def ours() -> None:
            again = Bench(bench.project.root)
            document = make_report(again, now=SECOND)
            assert document["changes"]["flips_total"]
            write_report(again, document)
            for name in ("report_cells", "report_measures"):
                # So that the next call keeps its state too.
                again.store.tables.delete(name, report=document["report"])

        # By turns, since a machine's load comes and goes.
        turns = [(best_of(1, ours), best_of(1, lambda: _query(bench, before))) for _ in range(5)]
        return [
            Row(
                "reports: 100,000 verdicts, kept, compared, rendered / their queries",
                *map(min, zip(*turns, strict=True)),
                3.0,
            )
        ]


def _results(random: Random) -> Results:
    return {
        f"setup-{setup}": {
            f"task-{task}": [random.random() < 0.5 for _ in range(ATTEMPTS)] for task in range(TASKS)
        }
        for setup in range(SETUPS)
    }


def _changed(results: Results, random: Random) -> Results:
    return {
        setup: {
            task: [bool(passed) != (random.randrange(100) < _CHANGED) for passed in attempts]
            for task, attempts in by_task.items()
        }
        for setup, by_task in results.items()
    }


def _query(bench: Bench, before: str) -> None:
    """The queries of a report over the files of its tables."""
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        for name in _TABLES:
            files = bench.store.tables.paths(name)
            if files:
                connection.execute(f"create view {name} as from read_parquet({files})")
            else:
                connection.register(name, table_schema(name).empty())
        for name, query in {"cells": report_state._CELLS_NOW, "measures": report_state._MEASURES_NOW}.items():
            connection.register(name, connection.sql(query).to_arrow_table())
        for name, query in _STATES.items():
            connection.execute(f"create view {name} as {query.format(before=before)}")
        for query in _QUERIES:
            connection.sql(query).to_arrow_table()
