"""Laying rows out for people: a table where it fits the terminal, else fewer columns, else one block per row.

What belongs here: widths, and what gives way when they do not suffice. What does not: how a value is written
(``output``). No word is ever broken; cells wrap between words only.
"""

import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

# A value of several words may be wrapped to half its length, within these bounds: beyond them it is not read.
_LEAST, _MOST = 12, 30
# A line before each cell and a space on either side of it; one more line ends the table.
_FRAME = 3

Row = Mapping[str, str]


def print_rows(
    rows: Sequence[Row], columns: Sequence[str], *, title: str = "", optional: Collection[str] = ()
) -> None:
    """Print rows of text by column; ``optional`` columns give way first, the first named before the others.

    What gives way is named below the table.
    """
    console = Console()
    least = {name: _narrowest(rows, name) for name in columns}
    shown, gone = list(columns), []
    for name in (name for name in optional if name in least):
        if _width(least, shown) <= console.width:
            break
        shown.remove(name)
        gone.append(name)
    if _width(least, shown) > console.width:
        _print_blocks(rows, columns, title, console.width)
        return
    console.print(_table(rows, {name: least[name] for name in shown}, title, console.width))
    if gone:
        left_out = ", ".join(name for name in columns if name in gone)
        click.echo(
            _wrapped(
                f"no room for: {left_out} (a wider terminal, --plain and --json have all)", console.width
            )
        )


def _width(widths: Mapping[str, int], columns: Sequence[str]) -> int:
    """The width of a table with these columns and its frame."""
    return sum(widths[name] for name in columns) + _FRAME * len(columns) + 1


def _narrowest(rows: Sequence[Row], name: str) -> int:
    """The least width of a column: no word is broken, and what has several words keeps some room."""
    longest_word = max(cell_len(word) for text in _texts(rows, name) for word in text.split() or [""])
    longest_value = max((cell_len(row[name]) for row in rows), default=0)
    return max(longest_word, min(longest_value, max(_LEAST, min(_MOST, longest_value // 2))))


def _texts(rows: Sequence[Row], name: str) -> Iterable[str]:
    return [name, *(row[name] for row in rows)]


def _table(rows: Sequence[Row], least: Mapping[str, int], title: str, width: int) -> Table:
    """A table whose columns are as wide as their values while there is room, and never below ``least``."""
    columns = list(least)
    widths = {name: min(width, max(cell_len(text) for text in _texts(rows, name))) for name in columns}
    while _width(widths, columns) > width:
        widest = max((name for name in columns if widths[name] > least[name]), key=widths.__getitem__)
        widths[widest] -= 1
    table = Table(title=Text(title) if title else None)
    for name in columns:
        table.add_column(Text(name), width=widths[name])
    for row in rows:
        table.add_row(*(Text(row[name]) for name in columns))
    return table


def _print_blocks(rows: Sequence[Row], columns: Sequence[str], title: str, width: int) -> None:
    if title:
        click.echo(title)
    for number, row in enumerate(rows, 1):
        if len(rows) > 1:
            click.echo(f"row {number}")
        for name in columns:
            click.echo(_wrapped(f"{name}: {row[name]}", width, indent="  "))


def _wrapped(text: str, width: int, indent: str = "") -> str:
    """Text in lines of at most ``width`` columns, unless a word alone is longer."""
    return textwrap.fill(
        text,
        max(width, _MOST),
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
