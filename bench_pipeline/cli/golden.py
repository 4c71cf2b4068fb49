"""``bench golden``: check golden tasks, score what was measured, show runs and failures."""

from typing import Any

import click

from bench_pipeline.cli.output import (
    emit_json,
    emit_rows,
    format_options,
    project_option,
    project_root,
    wants_plain,
)
from bench_pipeline.reports.escaping import plain_text

TIERS = click.Choice(["smoke", "standard", "stretch", "adversarial"])


@click.group()
def golden() -> None:
    """Check golden tasks, score what was measured, show runs and failures."""


@golden.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--tier", "tiers", multiple=True, type=TIERS, help="Only this tier (repeatable).")
@click.option(
    "--sandbox", type=click.Choice(["auto", "bubblewrap", "docker", "process"]), help="Use this sandbox."
)
@project_option
@format_options
def validate(
    *,
    ids: tuple[str, ...],
    tiers: tuple[str, ...],
    sandbox: Any,
    project_dir: str | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Check that golden tasks parse, and that their signals start as they declare.

    \b
    bench golden validate                    every golden task, the packaged ones too
    bench golden validate --tier smoke
    bench golden validate page-numbers --json

    Signals that only a judge can settle are listed. Exit status 1 when a task cannot be read or measured; 5 when
    there are none.
    """
    from bench_pipeline.errors import NothingToEvaluateError
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.golden_tasks import validate_golden

    bench = Bench(project_root(project_dir), backend=sandbox)
    problems = () if ids else bench.golden.problems
    rows = validate_golden(bench, ids, tiers)
    for problem in problems:
        click.echo(f"bench: {plain_text(str(problem))}", err=True)
    if not rows and not problems:
        raise NothingToEvaluateError("validating golden tasks", "there are none", "add golden/<tier>/<id>.md")
    if as_json:
        emit_json(rows)
    elif wants_plain(plain):
        emit_rows(rows, ["task_id", "tier", "source", "runs", "signals", "valid", "problems"], plain=True)
    else:
        _show(rows)
    return 1 if problems or not all(row["valid"] for row in rows) else 0


def _show(rows: list[dict[str, Any]]) -> None:
    emit_rows(rows, ["task_id", "tier", "source", "signals", "valid"], plain=False, title="Golden tasks")
    for row in rows:
        lines = [*row["problems"], *(f"only a judge can settle: {text}" for text in row["for_a_judge"])]
        if not row["runs"]:
            lines.append("it has no workspace: it is scored from telemetry only")
        for line in lines:
            click.echo(f"{plain_text(row['task_id'])}: {plain_text(line)}")
    click.echo(f"{sum(bool(row['valid']) for row in rows)} of {len(rows)} golden tasks are valid.")
