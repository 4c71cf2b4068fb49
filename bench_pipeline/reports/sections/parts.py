"""What the sections share: tables that are cut where nobody reads on, and a few forms of numbers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench_pipeline.reports.blocks import Column, Table
from bench_pipeline.reports.text import UNKNOWN, percent

Row = Mapping[str, Any]
# A page is for reading: what is beyond is counted, and the table's name says where it is.
ROWS = 40


def table(
    caption: str,
    columns: Sequence[Column | str],
    rows: Iterable[Sequence[str]],
    *,
    total: int | None = None,
    more: str,
) -> Table:
    """A table of at most ``ROWS`` rows; of ``total`` when ``rows`` are only the first, ``more`` shows all of them."""
    shown = list(rows)
    beyond = (len(shown) if total is None else total) - min(len(shown), ROWS)
    named = [column if isinstance(column, Column) else Column(column) for column in columns]
    return Table(caption, named, shown[:ROWS], beyond, more)


def number(name: str) -> Column:
    """A column of numbers."""
    return Column(name, "number")


def by(rows: Iterable[Row], column: str) -> dict[Any, list[Row]]:
    """Rows by the value of a column, in order."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(row[column], []).append(row)
    return found


def share(count: int, total: int) -> str:
    """``3 of 12 (25.0%)``."""
    return f"{count} of {total} ({percent(count / total if total else None)})"


def points(value: float | None, low: float | None, high: float | None) -> str:
    """A difference of rates with its interval: ``+8.3 points (-1.0 to +17.5)``."""
    if value is None:
        return UNKNOWN
    span = "no interval" if low is None or high is None else f"{100 * low:+.1f} to {100 * high:+.1f}"
    return f"{100 * value:+.1f} points ({span})"


def fixed(value: float | None) -> str:
    """A number from 0 to 1 with four digits."""
    return UNKNOWN if value is None else f"{value:.4f}"
