"""A table at a glance, for a person who looks at its asset in the morning: a sentence, a preview, some numbers.

What belongs here: choosing and wording. What does not: the numbers of a run (``measuring``), and how Dagster is told
(``defs``). Everything that comes from documents or tools is escaped for Markdown.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.reports.text import UNKNOWN, plural, ranking_display, rate_text, told_apart

# Enough rows to recognise what is in a table; more makes the event log heavy.
ROWS = 8
# A cell of a preview that is longer than this hides its neighbours.
_WIDTH = 48
# Every number is a chart, and more evaluations than this are read in a table.
_CHARTED = 12
_MARKDOWN = {ord(char): f"&#{ord(char)};" for char in "|<>&*_`[]()\\~#!"}

Row = Mapping[str, Any]
Number = int | float


@dataclass(frozen=True)
class Glance:
    """``summary`` and ``preview`` are Markdown; ``numbers`` are for charts and hold no unknown ones."""

    summary: str
    preview: str
    numbers: Mapping[str, Number] = field(default_factory=dict)


def glance(name: str, table: pa.Table) -> Glance:
    """The table ``name``, or one partition of it, at a glance."""
    return _GLANCES[name](table)


def _cells(table: pa.Table) -> Glance:
    counts = {name: _distinct(table, column) for name, column in _PLANNED.items()}
    left_out = table.num_rows - int(pc.sum(table["reusable"]).as_py() or 0)
    text = (
        f"{plural(table.num_rows, 'cell')}: {plural(counts['setups'], 'setup')} of "
        f"{plural(counts['evaluations'], 'evaluation')} on {plural(counts['tasks'], 'task')}"
    )
    if left_out:
        text += f"; {left_out} not reusable, so measured anew by every run"
    columns = (
        "evaluation",
        "task_id",
        "setup",
        "tool_version",
        "model_id",
        "reusable",
        "not_reusable_reason",
    )
    numbers = {"cells": table.num_rows, **counts, "not_reusable": left_out}
    return Glance(text, _preview(_rows(table, columns)), numbers)


def _verdicts(table: pa.Table) -> Glance:
    outcomes = {item["values"]: item["counts"] for item in pc.value_counts(table["outcome"]).to_pylist()}
    listed = ", ".join(f"{count} {_plain(name)}" for name, count in sorted(outcomes.items()))
    text = f"{plural(table.num_rows, 'cell')}: {listed}" if outcomes else "no cell is planned here"
    columns = ("evaluation", "task_id", "setup", "outcome", "reason", "duration_s", "cost_usd", "measured_at")
    # What went wrong is what a person looks for first.
    worst = table.take(pc.sort_indices(table, [("outcome_class", "ascending"), ("outcome", "ascending")]))
    return Glance(text, _preview(_rows(worst, columns)), {"not_attempted": outcomes.get("not_attempted", 0)})


def _rankings(table: pa.Table) -> Glance:
    rows = table.to_pylist()
    numbers: dict[str, Number] = {
        "evaluations": _distinct(table, "evaluation"),
        "setups_ranked": sum(row["ranked"] for row in rows),
        "setups_not_ranked": sum(not row["ranked"] for row in rows),
    }
    lines = []
    for evaluation, own in _by_evaluation(rows).items():
        ranked = [row for row in own if row["ranked"]]
        if evaluation in _charted(rows):
            numbers |= _ranking_numbers(evaluation, own, ranked)
        lines.append(f"- {_plain(evaluation)}: {_ranking_sentence(own, ranked)}")
    shown = [{"evaluation": row["evaluation"], **ranking_display(row)} for row in rows[:ROWS]]
    return Glance("\n".join(lines) or "nothing is planned yet", _preview(shown), numbers)


def _ranking_numbers(evaluation: str, own: Sequence[Row], ranked: Sequence[Row]) -> dict[str, Number]:
    total = sum(row["total"] for row in own)
    numbers: dict[str, Number] = {f"coverage: {evaluation}": sum(row["measured"] for row in own) / total}
    if ranked:
        numbers[f"tasks_shared: {evaluation}"] = ranked[0]["shared_tasks"]
        numbers[f"top_pass_rate: {evaluation}"] = ranked[0]["pass_rate"]
    return numbers


def _ranking_sentence(own: Sequence[Row], ranked: Sequence[Row]) -> str:
    if not ranked:
        return f"none of {plural(len(own), 'setup')} can be ranked, too few cells are measured"
    first = ranked[0]
    tied = sum(row["rank"] == first["rank"] for row in ranked)
    leader = (
        _plain(first["setup"])
        if tied == 1
        else f"{tied} setups share rank 1, among them {_plain(first['setup'])}"
    )
    rate = rate_text(first["pass_rate"], first["rate_low"], first["rate_high"])
    tasks = plural(first["shared_tasks"], "shared task")
    rest = len(own) - len(ranked)
    missing = f"; {rest} not ranked" if rest else ""
    return f"{leader}, {rate}; {plural(len(ranked), 'setup')} ranked over {tasks}{missing}"


def _comparisons(table: pa.Table) -> Glance:
    rows = table.to_pylist()
    apart = [row for row in rows if told_apart(row)]
    numbers: dict[str, Number] = {"pairs": len(rows), "pairs_told_apart": len(apart)}
    lines = []
    for evaluation, own in _by_evaluation(rows).items():
        fewest = min(row["shared_tasks"] for row in own)
        separate = [row for row in own if told_apart(row)]
        if evaluation in _charted(rows):
            numbers[f"tasks_shared: {evaluation}"] = fewest
            numbers[f"pairs_told_apart: {evaluation}"] = len(separate)
        lines.append(
            f"- {_plain(evaluation)}: {len(separate)} of {plural(len(own), 'pair')} told apart, "
            f"over {plural(fewest, 'shared task')} or more"
        )
    columns = (
        "evaluation",
        "setup_a",
        "setup_b",
        "shared_tasks",
        "difference",
        "diff_low",
        "diff_high",
        "p_holm",
    )
    # The pairs that differ most surely first; without a p value last.
    surest = sorted(rows, key=lambda row: (row["p_holm"] is None, row["p_holm"] or 0.0))
    shown = [{name: row[name] for name in columns} for row in surest[:ROWS]]
    return Glance("\n".join(lines) or "there is no pair to compare", _preview(shown), numbers)


def _receipts(table: pa.Table) -> Glance:
    rows = table.to_pylist()
    lines = []
    for comparison, own in _by(rows, "comparison").items():
        best = max(own, key=lambda row: row["correct"])
        calls = sum(row["calls"] for row in own)
        score = f"{best['correct']}/{best['total']} correct"
        lines.append(
            f"- {_plain(comparison)}: {_plain(best['harness'])} leads with {score}; {plural(calls, 'call')}"
        )
    numbers: dict[str, Number] = {
        "comparisons": _distinct(table, "comparison"),
        "calls": sum(row["calls"] for row in rows),
        "errors": sum(row["errors"] for row in rows),
        "cancelled": sum(row["state"] == "cancelled" for row in rows),
    }
    columns = (
        "comparison",
        "harness",
        "correct",
        "attempted",
        "errors",
        "total",
        "calls",
        "call_budget",
        "state",
    )
    return Glance(
        "\n".join(lines) or "no comparison has this attempt", _preview(_rows(table, columns)), numbers
    )


def _leaderboard(table: pa.Table) -> Glance:
    rows = table.to_pylist()
    lines = []
    for comparison, own in _by(rows, "comparison").items():
        last = [row for row in own if row["attempt"] is None] or own[-1:]
        board = [row for row in own if row["attempt"] == last[0]["attempt"]]
        first = [row["harness"] for row in board if row["rank"] == 1]
        rate = rate_text(board[0]["rate"], board[0]["rate_low"], board[0]["rate_high"])
        over = "all attempts pooled" if last[0]["attempt"] is None else f"attempt {last[0]['attempt']}"
        lines.append(
            f"- {_plain(comparison)}: {_plain(' and '.join(first))}, {rate} of attempted cases; {over}"
        )
    columns = (
        "comparison",
        "attempt",
        "rank",
        "harness",
        "correct",
        "total",
        "attempted",
        "errors",
        "rate",
        "state",
    )
    numbers: dict[str, Number] = {"comparisons": _distinct(table, "comparison")}
    return Glance("\n".join(lines) or "nothing is compared yet", _preview(_rows(table, columns)), numbers)


def _rows(table: pa.Table, columns: Sequence[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.select(list(columns)).slice(0, ROWS).to_pylist()
    return rows


def _preview(rows: Sequence[Row]) -> str:
    """Rows as a Markdown table without the columns that are empty in all of them."""
    names = [
        name for name in (rows[0] if rows else ()) if any(row[name] not in (None, UNKNOWN) for row in rows)
    ]
    if not names:
        return "No rows."
    lines = [names, ["---"] * len(names), *([_cell(row[name]) for name in names] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: object) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return _plain(text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…")


def _plain(text: str) -> str:
    """Text of which nothing can end a cell or a line, start HTML or a link, or hide what stands beside it."""
    return "".join(char if char.isprintable() else " " for char in text).translate(_MARKDOWN)


def _by_evaluation(rows: Iterable[Row]) -> dict[str, list[Row]]:
    return _by(rows, "evaluation")


def _by(rows: Iterable[Row], column: str) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[column], []).append(row)
    return found


def _charted(rows: Iterable[Row]) -> frozenset[str]:
    """The evaluations that have numbers of their own."""
    return frozenset(sorted({row["evaluation"] for row in rows})[:_CHARTED])


def _distinct(table: pa.Table, column: str) -> int:
    return int(pc.count_distinct(table[column]).as_py())


def _task_results(table: pa.Table) -> Glance:
    known = table.filter(table["known_task"])
    valid = int(pc.sum(known["telemetry_valid"]).as_py() or 0)
    passed = int(pc.sum(pc.fill_null(known["passed"], False)).as_py() or 0)
    setups = _distinct(known, "setup")
    text = f"{passed} of {known.num_rows} task results passed, {plural(setups, 'setup')}"
    if valid < known.num_rows:
        text += f"; {known.num_rows - valid} without valid telemetry"
    columns = (
        *("setup", "task_id", "failure_category", "failure_severity", "failure_details", "judge_score"),
        *("duration_s", "cost_usd"),
    )
    failed = table.filter(pc.is_valid(table["failure_category"]))
    # The gravest first: "critical", "high", "medium" are in order.
    worst = failed.take(pc.sort_indices(failed, [("failure_severity", "ascending"), ("setup", "ascending")]))
    numbers = {
        "tasks_passed": passed,
        "tasks_failed": failed.num_rows,
        "without_telemetry": known.num_rows - valid,
    }
    return Glance(text, _preview(_rows(worst, columns)), numbers)


def _scores(table: pa.Table) -> Glance:
    rows = table.to_pylist()
    lines = [
        f"- {_plain(row['setup'])} over {_plain(row['scope'])}: {row['score']:.4f}"
        + (f"; {_plain('; '.join(row['reasons']))}" if row["reasons"] else "")
        for row in rows
    ]
    numbers: dict[str, Number] = {"scores": len(rows)}
    for row in rows[:_CHARTED]:
        label = f"{row['setup']} ({row['scope']})"
        numbers |= {f"{name}: {label}": row[name] for name in _SCORED if row[name] is not None}
    columns = ("setup", "scope", *_SCORED, "tasks", "passed", "judged", "cost_usd", "complete")
    return Glance("\n".join(lines) or "there is nothing to score", _preview(_rows(table, columns)), numbers)


def _scenario_results(table: pa.Table) -> Glance:
    passed = int(pc.sum(table["passed"]).as_py() or 0)
    cells = _distinct(table, "cell")
    text = f"{passed} of {plural(table.num_rows, 'scenario run')} passed, {plural(cells, 'cell')}"
    columns = (
        "comparison",
        "scenario",
        "cell",
        "passed",
        "steps",
        "seconds",
        "missing_evidence",
        "total_tokens",
    )
    return Glance(
        text, _preview(_rows(table, columns)), {"passed": passed, "failed": table.num_rows - passed}
    )


def _judge_reports(table: pa.Table) -> Glance:
    lines = []
    numbers: dict[str, Number] = {"reports": table.num_rows}
    for row in table.to_pylist():
        label = f"{row['left']} against {row['right']} ({row['judge']})"
        rate = "no vote" if row["left_winrate"] is None else f"{row['left_winrate']:.1%}"
        lines.append(f"- {_plain(label)}: {rate} of {plural(row['pairs'], 'pair')}")
        if row["left_winrate"] is not None and len(numbers) <= _CHARTED:
            numbers[f"left win rate: {label}"] = row["left_winrate"]
    columns = (
        *("comparison", "left", "right", "judge", "pairs", "left_wins", "right_wins", "ties", "no_votes"),
        *("inconsistent", "left_winrate", "winrate_low", "winrate_high"),
    )
    return Glance("\n".join(lines) or "there is nothing to judge", _preview(_rows(table, columns)), numbers)


def _ledger_rows(table: pa.Table) -> Glance:
    columns = ("line", "route", "kind", "valid", "invalid_reason", "task_id", "passed", "partial", "f2p")
    return Glance("The first rows that were read; counts are beside this.", _preview(_rows(table, columns)))


def _ledger_summaries(table: pa.Table) -> Glance:
    """Ledgers route by route; nothing is summed or averaged over them."""
    unparsable = table.filter(pc.equal(table["position"], 1))["unparsable_lines"]
    numbers = {
        "ledgers": _distinct(table, "ledger"),
        "unparsable_lines": int(pc.sum(unparsable).as_py() or 0),
    }
    text = f"{plural(numbers['ledgers'], 'ledger')}; kinds of routes are never compared or added up"
    if numbers["unparsable_lines"]:
        text += f"; {plural(numbers['unparsable_lines'], 'line')} could not be read"
    columns = (
        "ledger",
        "kind",
        "route",
        "rows",
        "valid",
        "passes",
        "avg_partial",
        "partial_n",
        "avg_f2p",
        "f2p_n",
    )
    return Glance(text, _preview(_rows(table, columns)), numbers)


_SCORED = ("score", "task_success", "code_quality", "efficiency", "reliability", "safety")
_PLANNED = {"evaluations": "evaluation", "setups": "setup_digest", "tasks": "task_id"}
_GLANCES: Mapping[str, Callable[[pa.Table], Glance]] = {
    "evaluation_cells": _cells,
    "verdicts": _verdicts,
    "evaluation_rankings": _rankings,
    "paired_comparisons": _comparisons,
    "task_results": _task_results,
    "composite_scores": _scores,
    "policy_receipts": _receipts,
    "policy_leaderboard": _leaderboard,
    "scenario_results": _scenario_results,
    "judge_reports": _judge_reports,
    "ledger_rows": _ledger_rows,
    "ledger_summaries": _ledger_summaries,
}
