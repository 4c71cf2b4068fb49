"""Ledgers of others, kind by kind and route by route; nothing here is summed, averaged or ranked over kinds."""

from collections.abc import Sequence

from bench_pipeline.reports.blocks import Paragraph, Section, Table
from bench_pipeline.reports.sections.parts import Row, by, number, table
from bench_pipeline.reports.text import UNKNOWN

_KINDS = ("FairLocalNpcAgent", "RouterOnly", "Baseline", "Other")


def ledger_section(document: Row) -> Section | None:
    """The kinds of routes beside each other, each with its own table."""
    rows = [row for row in document["ledgers"] if row["rows"]]
    if not rows:
        return None
    kinds = by(rows, "kind")
    inside = [
        Section(kind, f"ledgers-{place}", [_table(kind, kinds[kind])])
        for place, kind in enumerate(_KINDS, 1)
        if kind in kinds
    ]
    text = "Measured by others. Kinds of routes answer different questions, so there is no number over several of them."
    return Section("Ledgers", "ledgers", [Paragraph(text)], inside, abreast=True)


def _table(kind: str, rows: Sequence[Row]) -> Table:
    columns = (
        "route",
        "ledger",
        number("valid rows"),
        number("passed"),
        number("mean partial"),
        number("mean f2p"),
    )
    shown = [
        (
            UNKNOWN if row["route"] is None else row["route"],
            row["ledger"],
            f"{row['valid']} of {row['rows']}",
            f"{row['passes']} of {row['valid']}",
            _mean(row["avg_partial"], row["partial_n"]),
            _mean(row["avg_f2p"], row["f2p_n"]),
        )
        for row in rows
    ]
    return table(f"Routes of kind {kind}", columns, shown, more="bench table ledger_summaries")


def _mean(value: float | None, over: int) -> str:
    return UNKNOWN if value is None else f"{value:.4f} over {over}"
