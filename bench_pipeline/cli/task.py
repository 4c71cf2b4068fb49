"""``bench task``: make tasks from commits, validate them, list and show them."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from bench_pipeline.cli.output import (
    LARGEST,
    TIERS,
    emit_json,
    emit_rows,
    format_options,
    project_option,
    project_root,
    sandbox_option,
    wants_plain,
)
from bench_pipeline.reports.escaping import plain_text


@click.group()
def task() -> None:
    """Create, scan, validate, list and show tasks."""


@task.command()
@click.argument("commit")
@click.option("--repo", metavar="PATH_OR_URL", help="The repository (default: the project's source.remote).")
@click.option("--id", "task_id", metavar="ID", help="The task's id (default: repository and commit).")
@click.option("--tier", type=TIERS, default="standard", show_default=True, help="The task's tier.")
@click.option("--verify-command", metavar="CMD", help="What runs the tests (default: guessed from them).")
@click.option("--junit", metavar="PATH", help="The JUnit report that --verify-command leaves in the tree.")
@click.option("--image", metavar="IMAGE", help="The container image, for the docker sandbox.")
@click.option("--setup", multiple=True, metavar="CMD", help="A command before the tool starts (repeatable).")
@click.option(
    "--fingerprint", multiple=True, metavar="CMD", help="A command that names the toolchain (repeatable)."
)
@project_option
@format_options
def create(
    commit: str,
    *,
    repo: str | None,
    task_id: str | None,
    tier: Any,
    verify_command: str | None,
    junit: str | None,
    image: str | None,
    setup: tuple[str, ...],
    fingerprint: tuple[str, ...],
    project_dir: str | None,
    as_json: bool,
    plain: bool,
) -> None:
    """Draft a task from COMMIT: its parent is the base, its tests are hidden, the rest is the reference.

    \b
    bench task create 3f9ac21 --repo ../shop
    bench task create main~2 --repo https://example.org/shop.git --id shop-rounding --tier smoke
    bench task create HEAD --repo . --verify-command 'make test'

    Nothing that exists is replaced. Read the draft through, then validate it.
    """
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.harvesting import Request, create_task

    if junit is not None and verify_command is None:
        raise click.UsageError(
            "--junit needs --verify-command: it names the report which that command leaves"
        )
    request = Request(
        commit=commit,
        repository=repo,
        task_id=task_id,
        tier=tier,
        command=verify_command,
        junit=junit,
        image=image,
        setup=setup,
        fingerprint=fingerprint,
    )
    made = create_task(Bench(project_root(project_dir)), request)
    document = made.document()
    for leak in made.leaks:
        _warn(f"{made.task.prompt_path} {leak}")
    if as_json:
        emit_json(document)
        return
    columns = ["id", "folder", "tier", "remote", "base_commit", "fix_commit", "command"]
    if wants_plain(plain):
        emit_rows([document], [*columns, "tests", "reference", "noise"], plain=True)
        return
    _show_fields(document, [*columns, "tests", "reference", "noise", "removed_from_prompt"])
    if made.command_why:
        click.echo(f"The command is a guess ({plain_text(made.command_why)}).")
    click.echo(f"Next: read {made.task.folder} through, then: bench task validate {made.task.id}")


@task.command()
@click.option("--repo", metavar="PATH_OR_URL", help="The repository (default: the project's source.remote).")
@click.option("--since", metavar="DATE", help="Only commits after this date, as git log reads it.")
@click.option(
    "--max",
    "limit",
    type=click.IntRange(1, LARGEST),
    default=100,
    show_default=True,
    help="How many commits.",
)
@project_option
@format_options
def scan(
    *, repo: str | None, since: str | None, limit: int, project_dir: str | None, as_json: bool, plain: bool
) -> None:
    """Say which commits would make tasks, and why the others would not.

    \b
    bench task scan --repo ../shop
    bench task scan --repo ../shop --since 2025-01-01 --max 500 --json
    """
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.harvesting import scan_commits, scan_row

    rows = [
        scan_row(item)
        for item in scan_commits(Bench(project_root(project_dir)), repo, limit=limit, since=since)
    ]
    if as_json:
        emit_json(rows)
        return
    short = [{**row, "commit": str(row["commit"])[:12]} for row in rows]
    columns = ["commit", "suitable", "tests", "source", "subject", "reason"]
    emit_rows(short, columns, plain=plain, title="Commits", optional=("source", "tests"))
    if not wants_plain(plain):
        click.echo(f"{sum(bool(row['suitable']) for row in rows)} of {len(rows)} commits would make a task.")


@task.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--tier", "tiers", multiple=True, type=TIERS, help="Only this tier (repeatable).")
@click.option("--all", "every", is_flag=True, help="Validate again what is validated already.")
@click.option(
    "--repeat", type=click.IntRange(1, LARGEST), default=1, show_default=True, help="Run each check N times."
)
@click.option("--allow-leaks", is_flag=True, help="Validate although the prompt gives the fix away.")
@sandbox_option
@project_option
@format_options
def validate(
    *,
    ids: tuple[str, ...],
    tiers: tuple[str, ...],
    every: bool,
    repeat: int,
    allow_leaks: bool,
    sandbox: Any,
    project_dir: str | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Check that the base fails the hidden tests and the reference passes them, and record it.

    \b
    bench task validate                      every task that is not validated, or stale
    bench task validate shop-rounding --repeat 5
    bench task validate --all --json

    Exit status 1 when a task is not valid or cannot be read; 5 when there are no tasks.
    """
    from bench_pipeline.cli.stopping import stop_on_interrupt
    from bench_pipeline.errors import NothingToEvaluateError
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.validating import tasks_to_validate, validate_tasks

    bench = Bench(project_root(project_dir), backend=sandbox, interrupts=stop_on_interrupt)
    problems = () if ids else bench.tasks.problems
    if not bench.tasks.tasks and not problems:
        raise NothingToEvaluateError(
            "validating tasks", "the project has none", "bench task create makes one"
        )
    tasks = tasks_to_validate(bench, ids, tiers, every=every)
    if not tasks:
        there = len(bench.tasks.selected(ids, tiers))
        _warn(f"nothing to validate: {_validated(there)}; `bench task validate --all` checks all again")
    found = []
    for item in validate_tasks(bench, tasks, repeat=repeat, allow_leaks=allow_leaks):
        found.append(item)
        if not as_json:
            _show_validated(item.row(), plain=plain)
    rows = sorted((item.row() for item in found), key=lambda row: str(row["task_id"]))
    for problem in problems:
        _warn(str(problem))
    if as_json:
        emit_json(rows)
    elif tasks and not wants_plain(plain):
        click.echo(f"{sum(bool(row['valid']) for row in rows)} of {len(tasks)} tasks are valid.")
    if len(found) < len(tasks):
        return 130
    return 1 if problems or not all(row["valid"] for row in rows) else 0


def _validated(count: int) -> str:
    return {0: "no task has this tier", 1: "the one task is validated already"}.get(
        count, f"all {count} tasks are validated already"
    )


def _show_validated(row: Mapping[str, Any], *, plain: bool) -> None:
    for warning in row["warnings"]:
        _warn(f"{row['task_id']}: {warning}")
    if wants_plain(plain):
        columns = ["task_id", "valid", "reasons", "base_tests_run", "reference_tests_run", "seconds"]
        emit_rows([row], columns, plain=True)
        return
    word = "valid" if row["valid"] else "not valid"
    click.echo(f"{plain_text(row['task_id'])}: {word}")
    for reason in row["reasons"]:
        click.echo(f"  {plain_text(reason)}")
    if row["output"]:
        click.echo("".join(f"    | {line}\n" for line in plain_text(row["output"]).split("\n")), nl=False)


@task.command(name="list")
@click.option("--tier", "tiers", multiple=True, type=TIERS, help="Only this tier (repeatable).")
@project_option
@format_options
def list_(*, tiers: tuple[str, ...], project_dir: str | None, as_json: bool, plain: bool) -> int:
    """List the tasks: tier, whether they may be measured with, and why not.

    \b
    bench task list
    bench task list --tier smoke --json

    Exit status 1 when a task cannot be read; it is named on standard error, the others are listed.
    """
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.harvesting import task_row

    tasks = Bench(project_root(project_dir)).tasks
    rows = [task_row(item) for item in tasks.selected(tiers=tiers)]
    for problem in tasks.problems:
        _warn(str(problem))
    if as_json:
        emit_json(rows)
    else:
        columns = ["task_id", "tier", "state", "tests", "reason"]
        emit_rows(rows, columns, plain=plain, title="Tasks", optional=("tests", "tier"))
    return 1 if tasks.problems else 0


@task.command(name="show")
@click.argument("task_id", metavar="ID")
@project_option
@format_options
def show_(task_id: str, *, project_dir: str | None, as_json: bool, plain: bool) -> None:
    """Show everything about the task ID but its hidden tests and reference.

    \b
    bench task show shop-rounding
    bench task show shop-rounding --json
    """
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.harvesting import task_document

    document = task_document(Bench(project_root(project_dir)).tasks.get(task_id))
    if as_json:
        emit_json(document)
    elif wants_plain(plain):
        emit_rows([document], list(document), plain=True)
    else:
        _show_fields(document, [name for name in document if name != "prompt"])
        click.echo(f"\n{plain_text(str(document['prompt']))}")


def _show_fields(document: Mapping[str, Any], names: Sequence[str]) -> None:
    from bench_pipeline.cli.output import show

    width = max(len(name) for name in names)
    for name in names:
        click.echo(f"{name.ljust(width)}  {show(document[name])}")


def _warn(text: str) -> None:
    click.echo(f"bench: {plain_text(text)}", err=True)
