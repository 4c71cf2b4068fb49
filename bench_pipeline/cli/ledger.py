"""``bench ledger``: sums up results that others measured."""

from functools import partial
from pathlib import Path

import click

from bench_pipeline.cli.output import (
    emit_json,
    emit_rows,
    format_options,
    notice,
    project_option,
    project_root,
    wants_plain,
)


class _SummarizeByDefault(click.Group):
    """A group whose aliases are called with a file alone: what is no command of it is an argument of ``summarize``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the command's name where it is left out."""
        if args and args[0] not in {*self.commands, "-h", "--help"}:
            args = ["summarize", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_SummarizeByDefault)
def ledger() -> None:
    """Sum up ledgers: JSON Lines of trials that others measured."""


@ledger.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--allow-unparsable", is_flag=True, help="Exit 0 also when lines are no JSON objects.")
@project_option
@format_options
def summarize(
    file: Path, *, allow_unparsable: bool, project_dir: str | None, as_json: bool, plain: bool
) -> int:
    """Sum up a ledger per route; route kinds are never averaged, summed or ranked together.

    \b
    bench ledger summarize results.jsonl
    bench ledger summarize results.jsonl.zst --json

    FILE may be compressed (gzip, zstd) and of any size; memory stays bounded. An invalid row is counted under its
    route. A line that is no JSON object is counted as unparsable, and the exit status is 1 unless
    --allow-unparsable. A last line that is cut off belongs to a ledger that is still being written: no error.
    The kinds of routes are those of this program, and of a project that is named with --project.
    """
    from bench_pipeline.pipeline.ledger_reading import summarize_file
    from bench_pipeline.reports.ledgers import (
        COUNTS,
        ROUTE_COLUMNS,
        plain_lines,
        route_display,
        unparsable_text,
    )

    compiling = partial(notice, "compiling what reads large ledgers, once")
    document = summarize_file(file, project_root(project_dir), compiling)
    if as_json:
        emit_json(document)
    elif wants_plain(plain):
        for line in plain_lines(document):
            click.echo(line)
    else:
        rows = [route_display(row) for row in document["routes"]]
        emit_rows(rows, ROUTE_COLUMNS, plain=False, title="Per route; kinds are never added up")
        click.echo(" ".join(f"{name}={document[key]}" for name, key in COUNTS))
    if document["incomplete_tail"]:
        notice(f"{file}: the last line is cut off; the ledger is still being written")
    if not document["unparsable_lines"]:
        return 0
    notice(f"{file}: {unparsable_text(document)}")
    return 0 if allow_unparsable else 1
