"""``bench cell``: what is known of one cell, what its tool asked its model, and what its identity is made of."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

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
from bench_pipeline.errors import UsageError
from bench_pipeline.reports.escaping import one_line, plain_text

if TYPE_CHECKING:
    from bench_pipeline.pipeline.evidence import Evidence


@click.group()
def cell() -> None:
    """Show a cell or what its tool asked its model, or explain its identity.

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
@click.option(
    "--replay",
    "replay",
    type=click.IntRange(1, LARGEST),
    metavar="N",
    help="With --evidence: of this replay; the oldest is 1.",
)
@project_option
@format_options
def show(
    identity: str,
    *,
    name: str | None,
    number: int | None,
    replay: int | None,
    project_dir: str | None,
    as_json: bool,
    plain: bool,
) -> None:
    """Show where a cell is planned and every try and replay of it, with cost and evidence.

    \b
    bench cell show 3f9ac2                                   every try and the names of its evidence
    bench cell show 3f9ac2 --evidence patch                  what the tool changed, in its newest try
    bench cell show 3f9ac2 --evidence tool.stdout --try 1    what it printed in its first
    bench cell show 3f9ac2 --evidence patch --replay 1       what it changed when it was first replayed
    bench cell show 3f9ac2 --evidence patch > its.patch      byte for byte

    On a terminal a piece is shown as text in which nothing acts on the terminal; piped it is as it was kept.
    """
    from bench_pipeline.pipeline import explaining
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.evidence import piece

    if replay is not None and (name is None or number is not None):
        raise UsageError(
            "showing a cell",
            "--replay N chooses the replay that a piece is of",
            "give --evidence, and no --try",
        )
    bench = Bench(project_root(project_dir))
    found = explaining.find_identity(bench, identity)
    if name is not None:
        shown = (
            piece(bench.store, found, name, number)
            if replay is None
            else piece(bench.store, found, name, replay, kind="replay")
        )
        _show_piece(shown, as_json=as_json, plain=plain)
        return
    document = explaining.show(bench, found, number)
    if as_json:
        emit_json(document)
        return
    columns = ["evaluation", "setup", "task_id", "attempt", "tier", "tool_version", "model_id", "reusable"]
    emit_rows(document["planned"], columns, plain=plain, title=f"cell {document['identity'][:12]}")
    for kind, many in (("try", "tries"), ("replay", "replays")):
        for row in document[many]:
            _show_try(row, kind, plain=plain)
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


def _show_try(row: Mapping[str, Any], kind: str, *, plain: bool) -> None:
    """One try, or replay, and, below it, what it left behind."""
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
        emit_rows([row], [kind, *columns], plain=True)
        pieces = [{kind: row[kind], "evidence": piece["name"], **piece} for piece in row["evidence"]]
        emit_rows(pieces, [kind, "evidence", "bytes", "digest"], plain=True)
        return
    from bench_pipeline.reports.text import size_text

    click.echo(f"\n{kind} {row[kind]}")
    emit_rows([row], columns, plain=False)
    width = max((len(one_line(piece["name"])) for piece in row["evidence"]), default=0)
    for piece in row["evidence"]:
        click.echo(f"  {one_line(piece['name']).ljust(width)}  {size_text(piece['bytes'])}")


@cell.command()
@click.argument("identity")
@click.option("--step", default="tool", metavar="NAME", help="Of this step of a workflow.")
@click.option(
    "--try",
    "number",
    type=click.IntRange(1, LARGEST),
    metavar="N",
    help="Of this try; the oldest is 1 (default: the newest that was recorded).",
)
@click.option("--request", type=click.IntRange(1, LARGEST), metavar="N", help="Print this request's body.")
@click.option("--answer", type=click.IntRange(1, LARGEST), metavar="N", help="Print the answer to it.")
@project_option
@format_options
def recording(
    identity: str,
    *,
    step: str,
    number: int | None,
    request: int | None,
    answer: int | None,
    project_dir: str | None,
    as_json: bool,
    plain: bool,
) -> None:
    """List what a cell's tool asked its model and was answered, or print one body.

    \b
    bench cell recording 3f9ac2                  every request, with the digest of both bodies
    bench cell recording 3f9ac2 --request 2      what the tool sent the second time
    bench cell recording 3f9ac2 --answer 2       what it was answered, byte for byte when piped
    """
    from bench_pipeline.pipeline import explaining
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.evidence import body, recording_of

    if request is not None and answer is not None:
        raise UsageError("printing a body", "--request and --answer are two bodies", "give one of them")
    bench = Bench(project_root(project_dir))
    found = recording_of(bench.store, explaining.find_identity(bench, identity), step, number)
    if request is not None or answer is not None:
        which: Literal["request", "answer"] = "request" if request is not None else "answer"
        _show_piece(body(found, which, request or answer or 0), as_json=as_json, plain=plain)
        return
    rows = [each.summary() for each in found.exchanges]
    if as_json:
        emit_json(rows)
        return
    columns = ["number", "path", "model", "status", "failure", "seconds", "request_bytes", "answer_bytes"]
    digests = ["request_sha256", "answer_sha256"]
    title = f"recording of {found.identity[:12]}, try {found.number}"
    emit_rows(rows, [*columns, *digests] if wants_plain(plain) else columns, plain=plain, title=title)


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
