"""Printing an Arrow table: JSON written row by row, key=value lines, or a table for people."""

import json
import shutil
from typing import TYPE_CHECKING

import click

from bench_pipeline.cli.output import emit_rows, show, wants_plain
from bench_pipeline.reports.escaping import plain_text

if TYPE_CHECKING:
    import pyarrow as pa

# A terminal shows the start of a digest; the whole of it is in --plain and --json.
_DIGEST = 64
_SHOWN = 12
# Narrower columns break every word.
_COLUMN_WIDTH = 13
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
    """For people: a table while its columns fit the terminal, else one block of lines per row."""
    from bench_pipeline.pipeline.querying import json_rows

    filled = [name for name in table.column_names if table[name].null_count < max(1, table.num_rows)]
    rows = [{name: _short(value) for name, value in row.items()} for row in json_rows(table.select(filled))]
    if shutil.get_terminal_size().columns < _COLUMN_WIDTH * len(filled):
        for number, row in enumerate(rows, 1):
            click.echo(f"row {number}")
            for name, value in row.items():
                click.echo(f"  {name}: {show(value)}".replace("\n", "\\n"))
    else:
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
