"""``bench cell``: what is known of one cell, and what its identity is made of."""

from typing import Any

import click

from bench_pipeline.cli.output import emit_json, emit_rows, format_options, project_option, project_root
from bench_pipeline.reports.escaping import one_line


@click.group()
def cell() -> None:
    """Show a cell, or explain its identity.

    A cell is named by its identity, or by the first six or more digits of it.
    """


@cell.command()
@click.argument("identity")
@project_option
@format_options
def show(identity: str, *, project_dir: str | None, as_json: bool, plain: bool) -> None:
    """Show where a cell is planned and every try of it, with cost and evidence.

    \b
    bench cell show 3f9ac2
    """
    from bench_pipeline.pipeline import explaining
    from bench_pipeline.pipeline.bench import Bench

    bench = Bench(project_root(project_dir))
    document = explaining.show(bench, explaining.find_identity(bench, identity))
    if as_json:
        emit_json(document)
        return
    columns = ["evaluation", "setup", "task_id", "attempt", "tier", "tool_version", "model_id", "reusable"]
    emit_rows(document["planned"], columns, plain=plain, title=f"cell {document['identity'][:12]}")
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
    emit_rows(document["tries"], columns, plain=plain, title="tries")
    for row in document["tries"]:
        _show_evidence(row)


def _show_evidence(row: dict[str, Any]) -> None:
    for name, digest in sorted(row["artifacts"].items()):
        click.echo(f"artifact {one_line(name)} {digest}")


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
