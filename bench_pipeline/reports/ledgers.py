"""A ledger's summary as lines and as the rows of a table for people: per route, never summed across kinds.

What belongs here: wording. What does not: the numbers (``ledgers``).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from bench_pipeline.reports.escaping import one_line
from bench_pipeline.reports.text import UNKNOWN

COUNTS = (
    ("rows", "total_rows"),
    ("valid_rows", "valid_rows"),
    ("invalid_rows", "invalid_rows"),
    ("fair_agent_rows", "fair_agent_rows"),
    ("valid_fair_agent_rows", "valid_fair_agent_rows"),
    ("router_only_rows", "router_only_rows"),
    ("unparsable_lines", "unparsable_lines"),
)
ROUTE_COLUMNS = (
    "route",
    "kind",
    "rows",
    "valid",
    "passes",
    "avg_partial",
    "avg_f2p",
    "input_tokens",
    "output_tokens",
    "steps",
    "peak_context",
)


def plain_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """The plain form: a line for each count, then one for each route."""
    for name, key in COUNTS:
        yield f"{name}={document[key]}"
    if document["incomplete_tail"]:
        yield "incomplete_tail=yes"
    for row in document["routes"]:
        yield " ".join(f"{name}={_plain(text)}" for name, text in route_display(row).items())


def route_display(row: Mapping[str, Any]) -> dict[str, str]:
    """A route's numbers as text; unknown ones and a missing route as ``-``."""
    return {name: _text(row[name]) for name in ROUTE_COLUMNS}


def unparsable_text(document: Mapping[str, Any]) -> str:
    """How many lines are no JSON objects, and which are the first."""
    count, shown = document["unparsable_lines"], document["unparsable_line_numbers"]
    listed = ", ".join(map(str, shown)) + (", ..." if count > len(shown) else "")
    return f"{count} line{'' if count == 1 else 's'} that {'is' if count == 1 else 'are'} no JSON object: {listed}"


def _text(value: object) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:.4f}" if isinstance(value, float) else one_line(str(value))


def _plain(text: str) -> str:
    """A value in which nothing can look like the next field; quoted where it has a space, a quote or nothing."""
    import json

    return json.dumps(text) if not text or any(mark in text for mark in ' "') else text
