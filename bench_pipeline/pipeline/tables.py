"""Writing a use case's table and describing what was written, for whoever reports it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from bench_pipeline.store import Store

# Columns that say least to a person come last in a preview, and digests are cut.
_PREVIEW_WIDTH = 40
_PREVIEW_COLUMNS = 9
_DIGESTS = ("identity", "run_key", "verify_key", "setup_digest")


@dataclass(frozen=True)
class Written:
    """One file of a table as it is in the store now: its path, rows and content digest."""

    path: str
    rows: int
    digest: str
    table: pa.Table


def write_table(store: "Store", name: str, table: pa.Table, **partition: str | int) -> Written:
    """Write one partition (or the whole of an unpartitioned table) and say what is there now."""
    receipt = store.tables.write(name, table, **partition)
    return Written(str(receipt.path), receipt.rows, receipt.digest, table)


def preview(written: Sequence[Written], rows: int) -> str:
    """The first rows as a Markdown table, every cell escaped and cut; a sentence when there are none."""
    table = next((item.table for item in written if item.table.num_rows), None)
    if table is None:
        return "No rows."
    names = [name for name in table.column_names if name not in _DIGESTS][:_PREVIEW_COLUMNS]
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    shown = table.select(names).slice(0, rows).to_pylist()
    body = ["| " + " | ".join(_cell(row[name]) for name in names) + " |" for row in shown]
    return "\n".join([*lines, *body])


def _cell(value: object) -> str:
    """A value inside a Markdown table: nothing in it can end the cell, start HTML or a link."""
    if value is None:
        return "-"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    text = "".join(char if char.isprintable() else " " for char in text)
    if len(text) > _PREVIEW_WIDTH:
        text = text[: _PREVIEW_WIDTH - 1] + "…"
    return "".join(f"&#{ord(char)};" if char in "|<>&*_`[]()\\~#!" else char for char in text)
