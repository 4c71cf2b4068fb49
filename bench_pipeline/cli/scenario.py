"""``bench scenario``: run a scenario with a tool, replay a trace, import a transcript."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_pipeline.cli.output import (
    LARGEST,
    emit_json,
    emit_rows,
    format_options,
    notice,
    project_option,
    project_root,
    sandbox_option,
    wants_plain,
)
from bench_pipeline.reports.escaping import one_line

if TYPE_CHECKING:
    from bench_pipeline.pipeline.scenario_runs import Choice
    from bench_pipeline.scenarios import CellResult

FILE = click.Path(path_type=Path)
COUNT = click.IntRange(0, LARGEST)


@click.group()
def scenario() -> None:
    """Run, replay and import scenarios: a goal, caps, and evidence that has to be there."""


@scenario.command()
@click.argument("file", type=FILE)
@click.option("--tool", metavar="T", help="Run the goal with this tool of the registry.")
@click.option("--model", metavar="M", help="A model of the tool.")
@click.option("--effort", metavar="E", help="An effort that the model takes.")
@click.option(
    "--option", "options", multiple=True, metavar="NAME=VALUE", help="An option of the tool (repeatable)."
)
@click.option(
    "--replay", "run_id", metavar="RUN_ID", help="Score the trace of this run; no model is contacted."
)
@click.option(
    "--traces",
    type=FILE,
    metavar="DIR",
    help="Where traces are (default: traces, here or beside the scenario).",
)
@click.option("--cell", metavar="LABEL", help="What the result is filed and compared under.")
@click.option("--mode", metavar="MODE", help="How the run was made, in a word of yours.")
@click.option(
    "--attempt", type=click.IntRange(1, LARGEST), default=1, metavar="N", help="Which attempt this is."
)
@click.option("--out", type=FILE, metavar="DIR", help="Write the cell result into this folder.")
@click.option("--force", is_flag=True, help="Replace an earlier result of the same cell.")
@click.option("--fail", "must_pass", is_flag=True, help="Exit with status 4 when the scenario did not pass.")
@sandbox_option
@project_option
@format_options
def run(
    *,
    file: Path,
    tool: str | None,
    model: str | None,
    effort: str | None,
    options: tuple[str, ...],
    run_id: str | None,
    traces: Path | None,
    cell: str | None,
    mode: str | None,
    attempt: int,
    out: Path | None,
    force: bool,
    must_pass: bool,
    sandbox: Any,
    project_dir: str | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Run a scenario with a tool, or score the trace of an earlier run.

    \b
    bench scenario run fix-total.toml --tool claude-code --model sonnet-5 --effort high --out results
    bench scenario run fix-total.toml --replay 0b7c0c52-... --cell baseline --out results

    A run's trace is kept before it is scored; both ways come to the same scorer. Exit status 0 whatever the score,
    unless --fail.
    """
    from bench_pipeline.pipeline.scenario_runs import nearest_bench, replay, run_tool
    from bench_pipeline.scenarios import write_cell

    choice = _choice(tool, model, effort, options, run_id)
    if choice is None:
        assert run_id is not None
        ran = replay(file, run_id, traces=traces, cell=cell, mode=mode, attempt=attempt)
    else:
        bench = nearest_bench(project_root(project_dir), sandbox)
        ran = run_tool(
            bench, file, choice, backend=sandbox, traces=traces, cell=cell, mode=mode, attempt=attempt
        )
        notice(f"the trace is {ran.trace}")
    written = None
    if out is not None:
        _refuse_nameless(ran.result)
        written = write_cell(out, ran.result, force=force)
    _print(ran.result, labelled=cell is not None, written=written, as_json=as_json, plain=plain)
    return 4 if must_pass and not ran.result.passed else 0


def _choice(
    tool: str | None, model: str | None, effort: str | None, options: tuple[str, ...], run_id: str | None
) -> "Choice | None":
    """The tool to run with, or None for a replay; UsageError unless exactly one of them is asked for."""
    from bench_pipeline.errors import UsageError
    from bench_pipeline.pipeline.scenario_runs import Choice

    if (tool is None) == (run_id is None):
        raise UsageError(
            "running a scenario", "it is either run or replayed", "give --tool, or --replay RUN_ID"
        )
    unequal = [text for text in options if "=" not in text]
    if unequal:
        raise UsageError("running a scenario", f"{unequal[0]!r} is no option", "write --option NAME=VALUE")
    if tool is None:
        if model or effort or options:
            raise UsageError(
                "replaying a run", "a replay uses no tool", "leave --model, --effort and --option out"
            )
        return None
    return Choice(tool, model, effort, dict(text.split("=", 1) for text in options))


def _refuse_nameless(result: "CellResult") -> None:
    from bench_pipeline.errors import UsageError

    if result.cell is None:
        raise UsageError("writing the cell result", "it has no cell label", "give one with --cell LABEL")


def _print(result: "CellResult", *, labelled: bool, written: Path | None, as_json: bool, plain: bool) -> None:
    if as_json:
        emit_json(result.document())
    elif wants_plain(plain):
        for line in _plain_lines(result, labelled=labelled, written=written):
            click.echo(line)
    else:
        _show(result, written)


def _plain_lines(result: "CellResult", *, labelled: bool, written: Path | None) -> list[str]:
    values = {"scenario": result.scenario}
    if labelled:
        values["cell"] = result.cell or ""
    values |= {
        "passed": str(result.passed).lower(),
        "steps": str(result.steps),
        "seconds": str(result.seconds),
        "missing_evidence": ",".join(result.missing_evidence),
    }
    lines = [f"{name}={one_line(value)}" for name, value in values.items()]
    lines += [f"{name}=true" for name in ("over_steps", "over_seconds") if getattr(result, name)]
    if result.total_tokens is not None:
        names = ("prompt_tokens", "completion_tokens", "total_tokens")
        lines.append(" ".join(f"{name}={getattr(result, name)}" for name in names))
    return [*lines, *([f"out={one_line(str(written))}"] if written is not None else [])]


def _show(result: "CellResult", written: Path | None) -> None:
    """For people: what was measured beside what was allowed."""
    rows = [
        {
            "what": "steps",
            "measured": result.steps,
            "at most": result.max_steps,
            "within": not result.over_steps,
        },
        {
            "what": "seconds",
            "measured": result.seconds,
            "at most": result.max_seconds,
            "within": not result.over_seconds,
        },
    ]
    title = one_line(f"{result.scenario}: {'passed' if result.passed else 'failed'}")
    emit_rows(rows, ["what", "measured", "at most", "within"], plain=False, title=title)
    for text in result.missing_evidence:
        click.echo(f"missing evidence: {one_line(text)}")
    if result.total_tokens is not None:
        click.echo(f"tokens: {result.prompt_tokens} prompt, {result.completion_tokens} completion")
    if written is not None:
        click.echo(f"written: {one_line(str(written))}")


@scenario.command("import")
@click.argument("transcript_format", metavar="FORMAT")
@click.argument("transcript", type=FILE)
@click.option(
    "--scenario", "file", type=FILE, required=True, metavar="FILE", help="The scenario that was run."
)
@click.option("--traces", type=FILE, metavar="DIR", help="Where the trace is written (default: traces).")
@click.option("--cell", metavar="LABEL", help="What the run's result is filed and compared under.")
@click.option("--mode", metavar="MODE", help="How the run was made, in a word of yours.")
@click.option(
    "--seconds", type=COUNT, metavar="N", help="How long the run took, for a transcript without a clock."
)
@click.option("--sample", "which", metavar="ID[/EPOCH]", help="Which sample of an Inspect log.")
@format_options
def import_(
    *,
    transcript_format: str,
    transcript: Path,
    file: Path,
    traces: Path | None,
    cell: str | None,
    mode: str | None,
    seconds: int | None,
    which: str | None,
    as_json: bool,
    plain: bool,
) -> None:
    """Turn another program's transcript into a trace that can be replayed.

    FORMAT is claude-stream-json, codex-jsonl, opencode-jsonl, mini-trajectory, inspect-log or harbor-trajectory.

    \b
    bench scenario import claude-stream-json run.jsonl --scenario fix-total.toml --cell claude
    bench scenario import codex-jsonl run.jsonl --scenario fix-total.toml --cell codex --seconds 41

    What the trace has no place for is listed. What an agent said or printed is no evidence, its last answer apart.
    """
    from bench_pipeline.pipeline.scenario_runs import import_run

    done = import_run(
        transcript_format,
        transcript,
        file,
        traces=traces,
        cell=cell,
        mode=mode,
        seconds=seconds,
        which=which,
    )
    facts = {
        "run_id": done.trace.header.run_id,
        "trace": str(done.path),
        "steps": len(done.trace.of_type("step")),
        "seconds": done.trace.seconds,
    }
    if as_json:
        emit_json({**facts, "unmapped": list(done.unmapped)})
        return
    separator = "=" if wants_plain(plain) else ": "
    for name, value in facts.items():
        click.echo(f"{name}{separator}{one_line(str(value))}")
    for text in done.unmapped:
        click.echo(f"unmapped{separator}{one_line(text)}")
