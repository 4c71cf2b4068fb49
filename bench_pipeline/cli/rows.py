"""Printing an Arrow table: JSON written row by row, key=value lines, or a table for people."""

import json
from typing import TYPE_CHECKING

import click

from bench_pipeline.cli.output import emit_rows, wants_plain
from bench_pipeline.reports.escaping import plain_text

if TYPE_CHECKING:
    import pyarrow as pa

# A terminal shows the start of a digest; the whole of it is in --plain and --json.
_DIGEST = 64
_SHOWN = 12
_HEX = frozenset("0123456789abcdef")


def emit_table(table: "pa.Table", *, as_json: bool, plain: bool, title: str = "") -> None:
    """Print every row; on a terminal, columns in which every value is unknown are left out and named."""
    from bench_pipeline.pipeline.querying import json_rows

    if as_json:
        _emit_json_rows(table)
        return
    # A query may call its columns anything.
    names = [plain_text(name).replace("\n", "\\n") for name in table.column_names]
    table = table.rename_columns(names)
    if wants_plain(plain):
        for row in json_rows(table):
            emit_rows([row], names, plain=True)
    else:
        _show(table, title)


def _show(table: "pa.Table", title: str) -> None:
    """For people: without the columns that hold nothing."""
    from bench_pipeline.pipeline.querying import json_rows

    filled = [name for name in table.column_names if table[name].null_count < max(1, table.num_rows)]
    rows = [{name: _short(value) for name, value in row.items()} for row in json_rows(table.select(filled))]
    emit_rows(rows, filled, plain=False, title=title)
    click.echo(f"{table.num_rows} row{'' if table.num_rows == 1 else 's'}")
    unknown = [name for name in table.column_names if name not in filled]
    if unknown and table.num_rows:
        click.echo(f"unknown in every row: {', '.join(unknown)}")


def _emit_json_rows(table: "pa.Table") -> None:
    from bench_pipeline.pipeline.querying import json_rows

    lead = "["
    for row in json_rows(table):
        click.echo(f"{lead}\n  {json.dumps(row, ensure_ascii=True, allow_nan=False)}", nl=False)
        lead = ","
    click.echo("[]" if lead == "[" else "\n]")


def _short(value: object) -> object:
    if isinstance(value, str) and len(value) == _DIGEST and set(value) <= _HEX:
        return value[:_SHOWN]
    return value
