"""What every command shares: finding the project, and printing as a table, as key=value lines or as JSON.

Text that comes from documents, agents or stores is escaped here before it reaches a terminal; JSON is one
document without NaN.
"""

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click

from bench_pipeline.reports.escaping import one_line, plain_text

F = TypeVar("F", bound=Callable[..., Any])


# More than any count that is meant; what is larger does not fit the columns that it is compared with.
LARGEST = 2**31 - 1
TIERS = click.Choice(["smoke", "standard", "stretch", "adversarial"])


class Amount(click.FloatRange):
    """A number from 0 up that can be reckoned with: neither infinite nor not a number."""

    name = "amount"

    def __init__(self) -> None:
        super().__init__(min=0)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The value as a float; fails for what is not finite."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is no amount.", param, ctx)
        return number


def format_options(command: F) -> F:
    """Add --json and --plain to a command; it receives ``as_json`` and ``plain``."""
    command = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)
    return click.option("--plain", is_flag=True, help="Print key=value lines, as when piped.")(command)


def project_option(command: F) -> F:
    """Add --project to a command too, so that it may stand before or after the command's name."""
    return click.option(
        "--project",
        "project_dir",
        metavar="DIR",
        help="The project's folder (default: the nearest one above).",
    )(command)


def sandbox_option(command: F) -> F:
    """Add --sandbox to a command; it receives ``sandbox``, None for the project's own choice."""
    return click.option(
        "--sandbox", type=click.Choice(["auto", "bubblewrap", "docker", "process"]), help="Use this sandbox."
    )(command)


def project_root(project_dir: str | None) -> Path | None:
    """The folder that was asked for on the command line or in BENCH_PROJECT, or None."""
    context = click.get_current_context()
    chosen = project_dir or (context.find_root().obj or {}).get("project")
    return Path(chosen) if chosen else None


def emit_json(document: object) -> None:
    """Print one JSON document; a NaN or an infinity is a defect and raises ValueError."""
    click.echo(json.dumps(document, ensure_ascii=True, allow_nan=False, default=_json_value, indent=2))


def _json_value(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def notice(text: str) -> None:
    """Say something beside the data: on stderr, so that output stays data."""
    click.echo(f"bench: {plain_text(text)}", err=True)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a standard stream is a terminal; one that was closed before the start is None."""
    return stream is not None and stream.isatty()


def wants_plain(plain: bool) -> bool:
    """Whether to print key=value lines: asked for, or standard output is not a terminal."""
    return plain or not is_terminal(sys.stdout)


def show(value: object) -> str:
    """A value for people: ``-`` for unknown, four significant digits for fractions."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ",".join(f"{one_line(str(key))}={show(item)}" for key, item in value.items()) or "-"
    if isinstance(value, (list, tuple)):
        return ",".join(show(item) for item in value) or "-"
    return one_line(str(value))


def emit_rows(
    rows: Sequence[Mapping[str, object]],
    columns: Iterable[str],
    *,
    plain: bool,
    title: str = "",
    optional: Sequence[str] = (),
) -> None:
    """Print rows as a table on a terminal, as key=value lines when piped or asked to.

    Where a terminal is too narrow, ``optional`` columns give way first, the first named before the others.
    """
    names = list(columns)
    if wants_plain(plain):
        for row in rows:
            click.echo(" ".join(f"{name}={_plain_value(row.get(name))}" for name in names))
        return
    from bench_pipeline.cli.layout import print_rows

    shown = [{name: show(row.get(name)) for name in names} for row in rows]
    print_rows(shown, names, title=title, optional=optional)


def _plain_value(value: object) -> str:
    text = show(value).replace("\n", "\\n")
    return json.dumps(text) if " " in text or text == "" or '"' in text else text
