"""Composite scores and failures put into words: rows for people, and a run as Markdown.

What belongs here: wording. What does not: printing, and escaping for a terminal (``cli`` does both).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bench_pipeline.reports.escaping import one_line
from bench_pipeline.reports.text import UNKNOWN, seconds_text

_PARTS = ("task_success", "code_quality", "efficiency", "reliability", "safety")
_TIERS = ("smoke", "standard", "stretch", "adversarial")
# Scores beside a note before the rest is only counted.
_NAMED = 2
# What Markdown would read as more than text.
_MARKS = {ord(mark): f"\\{mark}" for mark in "\\`*_{}[]()#+-!|<>~&"}

Row = Mapping[str, Any]


def score_display(row: Row) -> dict[str, str]:
    """A row of composite_scores as the columns of a table for people; LEGEND says what the letters are."""
    return {
        "setup": row["setup"],
        "attempt": str(row["attempt"]),
        "score": _number(row["score"]) + ("" if row["complete"] else " incomplete"),
        "T": _short(row["task_success"]),
        "Q": _short(row["code_quality"]),
        "E": _short(row["efficiency"]),
        "R": _short(row["reliability"]),
        "S": _short(row["safety"]),
        "passed": f"{row['passed']} of {row['tasks']}",
        "cost": _cost(row["cost_usd"], row["cost_unknown"]),
    }


LEGEND = "T task success, Q code quality, E efficiency, R reliability, S safety; score = (T/2 + 0.3 Q + E/5) x R x S"


def gathered_notes(notes: Mapping[str, Sequence[str]], named: int = _NAMED) -> list[str]:
    """Notes by the score that they are about, each once, with the first ``named`` scores that share it."""
    about: dict[str, list[str]] = {}
    for name, own in notes.items():
        for note in own:
            about.setdefault(note, []).append(name)
    return [f"{_some(names, named)}: {note}" for note, names in about.items()]


def _some(names: Sequence[str], named: int) -> str:
    shown = "; ".join(names[:named])
    return shown if len(names) <= named else f"{shown} and {len(names) - named} more"


def _short(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2f}"


def score_notes(row: Row) -> list[str]:
    """What has to be said beside a score: closed gates, what is missing, the score without contaminated tasks."""
    notes = list(row["reasons"])
    if row["score_uncontaminated"] is not None:
        notes.append(
            f"beside it: {_number(row['score_uncontaminated'])} over the tasks whose attestation closes no gate"
        )
    return notes


def comparison_notes(document: Row) -> list[str]:
    """A comparison of two runs as sentences."""
    lines = []
    if document["comparable"]:
        lines.append(f"delta {_signed(document['delta'])} against {document['against']}")
        parts = {name: value for name, value in document["parts"].items() if value}
        lines += [f"  {name} {_signed(value)}" for name, value in parts.items()]
    else:
        lines.append(f"no delta against {document['against']}: {document['reason']}")
        here, there = document["passed_here"], document["passed_there"]
        lines.append(f"  of {document['shared_tasks']} shared tasks {here} passed, {there} before")
    lines += [f"  {flip['task']}: {flip['before']} before, {flip['after']} now" for flip in document["flips"]]
    lines += drift_lines(document["drift"])
    return lines


def drift_lines(drift: Mapping[str, int]) -> list[str]:
    """By how much each category of failure grew or shrank."""
    return [f"  {name} {change:+d}" for name, change in drift.items() if change]


def markdown_report(run: Row) -> str:
    """A run as a Markdown document."""
    components, rates = run["components"], run["rates"]
    unfinished = "" if run["complete"] else ", **incomplete**"
    score = f"**{_number(run['score'])}** over {run['tasks']} tasks ({_text(', '.join(run['scope']))})"
    spent = f"Cost: {_cost(run['cost_usd'], run['cost_unknown'])}. Time: {seconds_text(run['duration_s'])}."
    lines = [
        f"# {_text(run['setup'])}, attempt {run['attempt']}",
        "",
        f"{score}, {run['passed']} passed, {run['judged']} judged{unfinished}.",
        "",
        "| part | value |",
        "| --- | --- |",
        *(f"| {_text(name)} | {_number(components.get(name))} |" for name in _PARTS),
        "",
        "| tier | passed |",
        "| --- | --- |",
        *(f"| {tier} | {_number(rates.get(tier))} |" for tier in _TIERS),
        "",
        f"{spent} Crashes: {run['crashes']}. Orphans: {run['orphans']}.",
    ]
    if run["score_uncontaminated"] is not None:
        lines += [
            "",
            f"Over the tasks whose attestation closes no gate: {_number(run['score_uncontaminated'])}.",
        ]
    lines += _section("Reasons", [_text(reason) for reason in run["reasons"]])
    lines += _section(
        "Failures",
        [
            f"{_text(item['task'])}: {_text(item['category'])}: {_text(item['details'])}"
            for item in run["failures"]
        ],
    )
    lines += ["", f"Run `{run['run']}`, suite `{run['suite_digest'][:12]}`, {_text(run['created'])}."]
    return "\n".join(lines)


def _section(heading: str, items: Sequence[str]) -> list[str]:
    return ["", f"## {heading}", "", *(f"- {item}" for item in items)] if items else []


def _text(value: str) -> str:
    """Text of others that nothing in a document takes for more than text."""
    return one_line(value).translate(_MARKS)


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.4f}"


def _signed(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:+.4f}"


def _cost(usd: float | None, unknown: int) -> str:
    known = UNKNOWN if usd is None else f"{usd:.2f} USD"
    return f"{known}, {unknown} unknown" if unknown else known
