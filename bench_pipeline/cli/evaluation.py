"""``bench evaluation``: create, validate and list evaluations. Starts nothing and asks no machine."""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from bench_pipeline.cli.output import (
    emit_json,
    emit_rows,
    format_options,
    is_terminal,
    project_option,
    project_root,
)
from bench_pipeline.reports.escaping import plain_text

if TYPE_CHECKING:
    from bench_pipeline.pipeline.authoring import Arm
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.registry import ToolDefinition


@click.group()
def evaluation() -> None:
    """Create, validate and list evaluations."""


@evaluation.command(epilog="\b\nbench evaluation create models")
@click.argument("name")
@project_option
def create(name: str, project_dir: str | None) -> None:
    """Write evaluations/NAME.yaml: asks on a terminal, else writes a commented template.

    A file that is there is never replaced.
    """
    from bench_pipeline.pipeline.authoring import (
        create_evaluation,
        evaluation_path,
        evaluation_template,
        evaluation_text,
    )
    from bench_pipeline.pipeline.bench import Bench

    bench = Bench(project_root(project_dir))
    evaluation_path(bench, name)
    if is_interactive():
        arms, attempts = _ask(bench)
        text = evaluation_text(arms, attempts)
    else:
        text = evaluation_template(bench)
    path = create_evaluation(bench, name, text)
    click.echo(f"wrote {plain_text(str(path))}; see what it resolves to: bench evaluation validate {name}")


@evaluation.command(epilog="\b\nbench evaluation validate models\nbench eval validate models --json")
@click.argument("name")
@project_option
@format_options
def validate(name: str, project_dir: str | None, as_json: bool, plain: bool) -> int:
    """Resolve the evaluation NAME and print its setups, or everything that is wrong with it.

    Exit status 1 when it is not valid.
    """
    from bench_pipeline.pipeline.authoring import validate_evaluation
    from bench_pipeline.pipeline.bench import Bench

    found = validate_evaluation(Bench(project_root(project_dir)), name)
    document = found.document()
    if as_json:
        emit_json(document)
        return 0 if found.valid else 1
    for problem in found.problems:
        click.echo(f"bench: {plain_text(str(problem))}", err=True)
    if not found.valid:
        count = len(found.problems)
        plural = "" if count == 1 else "s"
        click.echo(f"bench: {plain_text(name)} is not valid: {count} problem{plural}", err=True)
        return 1
    assert found.resolution is not None
    rows = [
        {"setup": setup.label, "attempts": found.resolution.attempts} for setup in found.resolution.setups
    ]
    emit_rows(rows, ["setup", "attempts"], plain=plain, title=f"Setups of {plain_text(name)}")
    counts = " ".join(f"{key}={document[key]}" for key in ("setup_count", "attempts", "cells_per_task"))
    click.echo(f"evaluation={name} valid=yes {counts}")
    click.echo(f"Which cells have a verdict cannot be known here: bench run {name} --dry-run looks them up.")
    return 0


@evaluation.command(name="list", epilog="\b\nbench evaluation list --json")
@project_option
@format_options
def list_(project_dir: str | None, as_json: bool, plain: bool) -> None:
    """List the project's evaluations with what each resolves to."""
    from bench_pipeline.pipeline.authoring import list_evaluation_rows
    from bench_pipeline.pipeline.bench import Bench

    rows = list_evaluation_rows(Bench(project_root(project_dir)))
    if as_json:
        emit_json(rows)
        return
    shown: list[dict[str, Any]] = [{**row, "errors": len(_list(row["errors"]))} for row in rows]
    columns = ["evaluation", "valid", "setup_count", "attempts", "cells_per_task", "errors"]
    emit_rows(shown, columns, plain=plain, title="Evaluations")


def _list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


def is_interactive() -> bool:
    """Whether there is a person to ask."""
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


def _ask(bench: "Bench") -> "tuple[list[Arm], int]":
    """Blocks and attempts, asked for one by one; an answer that is not known is asked for again."""
    from bench_pipeline.pipeline.authoring import Arm
    from bench_pipeline.registry import ToolDefinition

    tools = bench.registry.tools
    chosen = click.prompt(f"Tools ({', '.join(tools)})", value_proc=_several("tools", tools, least=1))
    arms: list[Arm] = []
    for name in chosen:
        tool = tools[name]
        arms += _ask_tool(tool) if isinstance(tool, ToolDefinition) else [Arm(name)]
    limit = bench.project.config.defaults.max_attempts
    attempts = click.prompt(
        "Attempts", default=bench.project.config.defaults.attempts, type=click.IntRange(1, limit)
    )
    return arms, attempts


def _ask_tool(tool: "ToolDefinition") -> "list[Arm]":
    from bench_pipeline.errors import UsageError
    from bench_pipeline.pipeline.authoring import arms_of

    models: Sequence[str] = ()
    if tool.models:
        known = ", ".join(tool.models)
        models = click.prompt(
            f"Models of {tool.name} ({known})", value_proc=_several("models", tool.models, least=1)
        )
    efforts = list(dict.fromkeys(effort for model in models for effort in tool.models[model].effort))
    options = {
        name: click.prompt(f"{name} of {tool.name}", value_proc=_one(option.values, free=option.free))
        for name, option in tool.options.items()
        if option.default is None
    }
    while True:
        chosen: Sequence[str] = ()
        if efforts:
            asked = f"Efforts of {tool.name} ({', '.join(efforts)})"
            chosen = click.prompt(asked, value_proc=_several("efforts", efforts, least=1))
        try:
            return arms_of(tool, models, chosen, options)
        except UsageError as error:
            click.echo(f"{error.wrong}: {error.remedy}", err=True)


def _several(what: str, known: Iterable[str], *, least: int) -> Callable[[str], list[str]]:
    """Reads names separated by commas, each known and named once."""
    names = list(known)

    def read(answer: str) -> list[str]:
        from bench_pipeline.documents import one_of

        chosen = list(dict.fromkeys(part.strip() for part in answer.split(",") if part.strip()))
        for name in chosen:
            if name not in names:
                raise click.BadParameter(f"{name!r} is unknown; {one_of(name, names, what)}")
        if len(chosen) < least:
            raise click.BadParameter(f"name at least {least}, separated by commas")
        return chosen

    return read


def _one(known: Iterable[str], *, free: bool) -> Callable[[str], str]:
    names = list(known)

    def read(answer: str) -> str:
        if not free and answer not in names:
            raise click.BadParameter(f"choose one of: {', '.join(names)}")
        return answer

    return read
