"""``bench cell``: what is known of one cell, and what its identity is made of."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from bench_pipeline.cli.output import (
    LARGEST,
    emit_json,
    emit_rows,
    format_options,
    project_option,
    project_root,
    wants_plain,
)
from bench_pipeline.reports.escaping import one_line, plain_text

if TYPE_CHECKING:
    from bench_pipeline.pipeline.evidence import Evidence


@click.group()
def cell() -> None:
    """Show a cell, or explain its identity.

    A cell is named by its identity, or by the first six or more digits of it.
    """


@cell.command()
@click.argument("identity")
@click.option("--evidence", "name", metavar="NAME", help="Print this piece of evidence and nothing else.")
@click.option(
    "--try",
    "number",
    type=click.IntRange(1, LARGEST),
    metavar="N",
    help="Only this try; the oldest is 1 (default with --evidence: the newest that has the piece).",
)
@project_option
@format_options
def show(
    identity: str,
    *,
    name: str | None,
    number: int | None,
    project_dir: str | None,
    as_json: bool,
    plain: bool,
) -> None:
    """Show where a cell is planned and every try of it, with cost and evidence.

    \b
    bench cell show 3f9ac2                                   every try and the names of its evidence
    bench cell show 3f9ac2 --evidence patch                  what the tool changed, in its newest try
    bench cell show 3f9ac2 --evidence tool.stdout --try 1    what it printed in its first
    bench cell show 3f9ac2 --evidence patch > its.patch      byte for byte

    On a terminal a piece is shown as text in which nothing acts on the terminal; piped it is as it was kept.
    """
    from bench_pipeline.pipeline import explaining
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.evidence import piece

    bench = Bench(project_root(project_dir))
    found = explaining.find_identity(bench, identity)
    if name is not None:
        _show_piece(piece(bench.store, found, name, number), as_json=as_json, plain=plain)
        return
    document = explaining.show(bench, found, number)
    if as_json:
        emit_json(document)
        return
    columns = ["evaluation", "setup", "task_id", "attempt", "tier", "tool_version", "model_id", "reusable"]
    emit_rows(document["planned"], columns, plain=plain, title=f"cell {document['identity'][:12]}")
    for row in document["tries"]:
        _show_try(row, plain=plain)
    if document["tries"] and not wants_plain(plain):
        click.echo(f"\nprint a piece: bench cell show {found[:12]} --evidence NAME [--try N]")


def _show_piece(found: "Evidence", *, as_json: bool, plain: bool) -> None:
    if as_json:
        emit_json(found.document())
    elif wants_plain(plain):
        click.echo(found.data, nl=False)
    else:
        text = plain_text(found.data.decode("utf-8", "backslashreplace").replace("\t", "    "))
        click.echo(text, nl=not text.endswith("\n"))


def _show_try(row: Mapping[str, Any], *, plain: bool) -> None:
    """One try and, below it, what it left behind."""
    columns = [
        "measured_at",
        "outcome",
        "reason",
        "duration_s",
        "verify_s",
        "cost_usd",
        "tests_passed",
        "tests_run",
    ]
    if wants_plain(plain):
        emit_rows([row], ["try", *columns], plain=True)
        pieces = [{"try": row["try"], "evidence": piece["name"], **piece} for piece in row["evidence"]]
        emit_rows(pieces, ["try", "evidence", "bytes", "digest"], plain=True)
        return
    from bench_pipeline.reports.text import size_text

    click.echo(f"\ntry {row['try']}")
    emit_rows([row], columns, plain=False)
    width = max((len(one_line(piece["name"])) for piece in row["evidence"]), default=0)
    for piece in row["evidence"]:
        click.echo(f"  {one_line(piece['name']).ljust(width)}  {size_text(piece['bytes'])}")


@cell.command()
@click.argument("identity")
@click.argument("other", required=False)
@project_option
@format_options
def explain(identity: str, other: str | None, *, project_dir: str | None, as_json: bool, plain: bool) -> None:
    """Name the components of an identity, or what differs between two.

    \b
    bench cell explain 3f9ac2            every component
    bench cell explain 3f9ac2 b71e04     only what differs (all of it with --json)
    """
    from bench_pipeline.pipeline import explaining
    from bench_pipeline.pipeline.bench import Bench

    bench = Bench(project_root(project_dir))
    first = explaining.find_identity(bench, identity)
    second = explaining.find_identity(bench, other) if other else None
    document: dict[str, Any] = explaining.explain(bench, first, second)
    if as_json:
        emit_json(document)
        return
    if second is None:
        emit_rows(document["components"], ["stage", "name", "a"], plain=plain)
        return
    differing = [component for component in document["components"] if not component["equal"]]
    emit_rows(differing, ["stage", "name", "a", "b"], plain=plain)
    if not differing:
        click.echo("the two cells are the same")
