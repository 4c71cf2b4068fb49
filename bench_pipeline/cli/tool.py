"""``bench tool``: list tools and workflows, show what one of them is after every layer had its say, and try one."""

import json
from typing import Any

import click

from bench_pipeline.cli.output import (
    emit_json,
    emit_rows,
    format_options,
    project_option,
    project_root,
    sandbox_option,
    show,
    wants_plain,
)
from bench_pipeline.reports.escaping import plain_text


@click.group()
def tool() -> None:
    """List, show and try tools."""


@tool.command(name="list", epilog="\b\nbench tool list\nbench tool list --json")
@project_option
@format_options
def list_(project_dir: str | None, as_json: bool, plain: bool) -> None:
    """List every tool and workflow that evaluations may name."""
    from bench_pipeline.pipeline.authoring import list_tool_rows
    from bench_pipeline.pipeline.bench import Bench

    rows = list_tool_rows(Bench(project_root(project_dir)))
    if as_json:
        emit_json(rows)
        return
    emit_rows(rows, ["tool", "kind", "models", "options", "steps", "origins"], plain=plain, title="Tools")


@tool.command(name="show", epilog="\b\nbench tool show claude-code\nbench tool show claude-code --json")
@click.argument("name")
@project_option
@format_options
def show_(name: str, project_dir: str | None, as_json: bool, plain: bool) -> None:
    """Show the effective definition of the tool NAME: its origins, models, efforts and options."""
    from bench_pipeline.pipeline.authoring import tool_document
    from bench_pipeline.pipeline.bench import Bench

    document = tool_document(Bench(project_root(project_dir)), name)
    if as_json:
        emit_json(document)
        return
    for field, value in _flat(document).items():
        text = value if isinstance(value, str) else _compact(value)
        if wants_plain(plain):
            emit_rows([{field: text}], [field], plain=True)
        else:
            click.echo(f"{plain_text(field)}: {plain_text(text)}")


@tool.command(
    epilog="\b\nbench tool check claude-code\nbench tool check codex --model gpt-5.5 --sandbox bubblewrap"
)
@click.argument("name")
@click.option("--model", metavar="MODEL", help="One of its models; without it the first.")
@click.option("--effort", metavar="EFFORT", help="One of the model's efforts; without it the first.")
@sandbox_option
@project_option
@format_options
def check(
    name: str,
    *,
    model: str | None,
    effort: str | None,
    sandbox: Any,
    project_dir: str | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Try the tool NAME once, in the sandbox, against a scripted model: no network, no key, no cost.

    Exit status 4 when something does not work.
    """
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.tool_check import check_tool

    found = check_tool(Bench(project_root(project_dir), backend=sandbox), name, model, effort)
    rows = [{"check": each.check, "ok": each.ok, "found": each.found} for each in found]
    if as_json:
        emit_json(rows)
    else:
        emit_rows(rows, ["check", "ok", "found"], plain=plain, title=f"Trying {name}")
    return 4 if any(each.ok is False for each in found) else 0


def _flat(document: dict[str, object]) -> dict[str, object]:
    """Models, options and steps on lines of their own."""
    flat: dict[str, object] = {}
    for name, value in document.items():
        if name in {"models", "options"} and isinstance(value, dict) and value:
            flat |= {f"{name}.{key}": item for key, item in value.items()}
        elif name == "steps" and isinstance(value, list):
            flat |= {f"steps.{item['name']}": item for item in value}
        else:
            flat[name] = value
    return flat


def _compact(value: object) -> str:
    if value is None or value in ([], {}):
        return show(None)
    return json.dumps(value, ensure_ascii=False)
