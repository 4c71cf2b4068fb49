"""The report of a project: what changed since the last one, every result with its denominator, and what is missing.

What belongs here: reading the tables into one document, and keeping its pages. What does not: what changed
(``report_changes``), what is missing (``report_gaps``), words and pictures (``reports``). Only the store is read, and
the project's tasks for which of them share a repository.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bench_pipeline.errors import NothingToEvaluateError
from bench_pipeline.identity import digest
from bench_pipeline.pipeline.ledger_records import read_records
from bench_pipeline.pipeline.querying import json_rows, run_queries
from bench_pipeline.pipeline.reading import repositories
from bench_pipeline.pipeline.report_changes import changes_between
from bench_pipeline.pipeline.report_gaps import gaps
from bench_pipeline.pipeline.report_state import (
    State,
    current_state,
    earlier_state,
    keep_state,
    read_state,
)
from bench_pipeline.statistics.pareto import pareto_front

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.store import Store

# Small tables that are shown as they are, and what is counted of larger ones.
_SHOWN = (
    "evaluation_rankings",
    "paired_comparisons",
    "composite_scores",
    "policy_leaderboard",
    "judge_reports",
    "ledger_summaries",
)
_COUNTED = {
    "task_results": (
        *("setup", "task_id", "tier", "known_task", "attempted", "telemetry_valid", "passed"),
        *("failure_category", "failure_severity"),
    ),
    "policy_receipts": ("comparison", "harness", "attempt", "state", "attempted", "total", "call_budget"),
    "scenario_results": ("comparison", "cell", "passed"),
}
_OUTCOMES = """
with counted as (
    select evaluation, outcome, outcome_class, count(*) as cells from cells
    group by evaluation, outcome, outcome_class
)
select *, (sum(cells) over (partition by evaluation))::bigint as of_cells
from counted order by evaluation, cells desc, outcome
"""
_FAILURES = """
with counted as (
    select failure_category as category, failure_severity as severity, count(*) as results,
        count(distinct setup) as setups
    from task_results where known_task and failure_category is not null
    group by failure_category, failure_severity
), whole as (select count(*) as of_results from task_results where known_task)
select counted.*, (sum(results) over ())::bigint as of_failed, of_results
from counted, whole order by results desc, category
"""
_SCENARIOS = """
select comparison, cell, count(*) filter (passed) as passed, count(*) as runs from scenario_results
group by all order by comparison, cell
"""
_FOLDER = "reports"
# Of a document: what the lanes have measured or been told.
_LANES = ("coverage", "rankings", "scores", "leaderboard", "scenarios", "judges", "ledgers")


@dataclass(frozen=True)
class Pages:
    """A report as it was kept: the paths of its pages, its numbers as Markdown and for charts, and its digest."""

    html: str
    markdown: str
    preview: str
    counts: Mapping[str, int]
    digest: str


def make_report(bench: "Bench", since: str | None = None, *, now: datetime | None = None) -> dict[str, Any]:
    """The report as a JSON-able document; what it knew is kept, for the next one to compare with.

    ``since`` is an earlier report or a run; without it, what is compared with is the newest kept state that differs
    from the present one.

    Raises:
        NotFoundError: there is no such earlier report or run.
    """
    store = bench.store
    with store.lock("report"):
        state = current_state(store, now or datetime.now(UTC))
        earlier = earlier_state(store, state.name, since)
        before = None if earlier is None else read_state(store, earlier)
        if state.cells.num_rows or state.measures.num_rows:
            keep_state(store, state)
    changes = None if before is None else changes_between(before, state, repositories(bench))
    return {
        "project": bench.project.root.name,
        "report": state.name,
        "made_at": state.moment.isoformat(),
        "since": None if before is None else {"report": before.name, "made_at": before.moment.isoformat()},
        "changes": changes,
        **_contents(store, state),
    }


def refuse_empty(document: Mapping[str, object]) -> None:
    """Raise NothingToEvaluateError when no lane has anything to report."""
    if not any(document[name] for name in _LANES):
        raise NothingToEvaluateError("making a report", "no table of the store has a row", "bench run")


def write_report(bench: "Bench", document: Mapping[str, Any] | None = None) -> Pages:
    """Keep the pages of a report, or of one that is made now, in the store, under names that stay."""
    from bench_pipeline.reports.page import html_page, markdown_page, preview

    document = document or make_report(bench)
    html, markdown = html_page(document), markdown_page(document)
    files = bench.store.files
    paths = {f"{_FOLDER}/report.html": html, f"{_FOLDER}/report.md": markdown}
    for path, text in paths.items():
        files.write(path, text.encode())
    urls = [files.url(path) for path in paths]
    said = digest({"html": html, "markdown": markdown})
    return Pages(urls[0], urls[1], preview(document), counts(document), said)


def counts(document: Mapping[str, Any]) -> dict[str, int]:
    """The numbers of a report that are followed from one to the next; what is not known is not there."""
    found = {name: sum(row[name] for row in document["coverage"]) for name in ("cells", "measured")}
    if document["changes"] is not None:
        evaluations = document["changes"]["evaluations"]
        found["new_verdicts"] = sum(row["new_verdicts"] for row in evaluations)
        found["flips"] = document["changes"]["flips_total"]
        found["flips_to_failed"] = document["changes"]["flips_to_failed"]
    return {**found, "gaps": len(document["gaps"])}


def _contents(store: "Store", state: State) -> dict[str, object]:
    """Everything but what changed, by the name of its section."""
    tables: dict[str, pa.Table] = {name: store.tables.read(name) for name in _SHOWN}
    tables |= {name: store.tables.read(name, columns) for name, columns in _COUNTED.items()}
    tables["cells"] = state.cells
    counted = run_queries(tables, {"outcomes": _OUTCOMES, "failures": _FAILURES, "scenarios": _SCENARIOS})
    shown = {name: list(json_rows(tables[name])) for name in _SHOWN}
    return {
        "rankings": _with_front(shown["evaluation_rankings"]),
        "pairs": shown["paired_comparisons"],
        "scores": shown["composite_scores"],
        "leaderboard": shown["policy_leaderboard"],
        "judges": shown["judge_reports"],
        "ledgers": shown["ledger_summaries"],
        **{name: list(json_rows(table)) for name, table in counted.items()},
        **gaps(tables, {record.ledger: record.name for record in read_records(store)}),
    }


def _with_front(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rankings with the cost of one attempted cell, and whether no setup beats a ranked one in cost and pass rate.

    Both are unknown where the cost of a cell is.
    """
    priced: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        row |= {"cost_per_cell": None, "on_front": None}
        if row["ranked"] and row["cost_known"] and not row["cost_unknown"]:
            row["cost_per_cell"] = row["cost_usd"] / row["cost_known"]
            priced.setdefault(row["evaluation"], []).append(row)
    for own in priced.values():
        places = [(row["cost_per_cell"], row["pass_rate"]) for row in own]
        for row, on_front in zip(own, pareto_front(places), strict=True):
            row["on_front"] = on_front
    return rows
