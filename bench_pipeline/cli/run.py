"""``bench run``: run one evaluation, or everything, through the project's Dagster instance."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from bench_pipeline.cli.output import (
    LARGEST,
    Amount,
    emit_json,
    emit_rows,
    format_options,
    is_terminal,
    notice,
    project_option,
    project_root,
    sandbox_option,
    show,
    wants_plain,
)
from bench_pipeline.errors import UsageError
from bench_pipeline.reports.escaping import plain_text

if TYPE_CHECKING:
    from bench_pipeline.pipeline.selection import RunOptions

# Of a summary: what is said beside the data, on stderr.
_BESIDE = {"failures", "unknown_costs"}


@click.command()
@click.argument("evaluation", required=False)
@click.option("--task", "tasks", multiple=True, metavar="ID", help="Only this task (repeatable).")
@click.option("--tier", "tiers", multiple=True, metavar="TIER", help="Only this tier (repeatable).")
@click.option(
    "--attempt",
    "attempts",
    multiple=True,
    type=click.IntRange(1, LARGEST),
    help="Only this attempt (repeatable).",
)
@click.option("--dry-run", is_flag=True, help="Say what would be run and what it would cost; run nothing.")
@click.option("--fresh", is_flag=True, help="Measure again what has a verdict; earlier evidence is kept.")
@click.option(
    "--retry",
    type=click.IntRange(0, LARGEST),
    default=0,
    metavar="N",
    help="Try execution failures N more times.",
)
@click.option("--max-cost", type=Amount(), metavar="USD", help="Start no cell that could exceed this.")
@click.option(
    "--max-cells", type=click.IntRange(0, LARGEST), metavar="N", help="Run the tool for at most N cells."
)
@click.option(
    "--plan",
    metavar="DIGEST",
    help="Refuse to run another plan than this one of a dry run (8 digits suffice).",
)
@click.option(
    "--record/--no-record",
    default=True,
    help="Keep what tools ask their models and are answered, to be replayed (default).",
)
@click.option(
    "--replay",
    is_flag=True,
    help="Answer tools from recordings in place of models: no key, no network, no cost, no new verdict.",
)
@click.option("--concurrency", type=click.IntRange(1, LARGEST), metavar="N", help="Cells side by side.")
@sandbox_option
@click.option("--yes", is_flag=True, help="Do not ask before running tools that may cost money.")
@project_option
@format_options
def run(
    evaluation: str | None,
    *,
    tasks: tuple[str, ...],
    tiers: tuple[str, ...],
    attempts: tuple[int, ...],
    dry_run: bool,
    fresh: bool,
    retry: int,
    max_cost: float | None,
    max_cells: int | None,
    plan: str | None,
    record: bool,
    replay: bool,
    concurrency: int | None,
    sandbox: Any,
    yes: bool,
    project_dir: str | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Run EVALUATION, or the whole project, and keep every verdict.

    \b
    bench run models --dry-run          what would run, what it would cost
    bench run models --max-cells 10     at most ten cells
    bench run models --task date-range  one task
    bench run models --replay           the recorded cells again, from what models answered then
    bench run                           everything in the project

    Cells that have a verdict are reused. Exit status 3 when a selected cell has no verdict; with --replay, 3 when
    one was not replayed and 4 when one came to something else than was recorded.
    """
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.running import (
        RunRequest,
        dry_run_document,
        prepare,
        replays_document,
        summary,
    )
    from bench_pipeline.pipeline.selection import RunOptions, Selection

    options = RunOptions(
        selection=Selection((evaluation,) if evaluation else (), tasks, tiers, attempts),
        fresh=fresh,
        retry=retry,
        max_cost_usd=max_cost,
        max_cells=max_cells,
        concurrency=concurrency,
        plan=plan,
        record=record,
        replay=replay,
    )
    _refuse_odd_replay(options)
    bench = Bench(project_root(project_dir), backend=sandbox, read_only=dry_run)
    request = prepare(bench, options)
    if dry_run and replay:
        _show_replays(replays_document(request), as_json=as_json, plain=plain)
    elif dry_run:
        _show_dry_run(dry_run_document(bench, request), as_json=as_json, plain=plain)
    if dry_run:
        _say_beforehand(request)
        _report_corrupt(bench)
        return 0
    _announce(bench, request)
    asks = request.paid or request.live_calls or request.questions
    if not yes and asks and is_terminal(sys.stdin) and not click.confirm(_question(request)):
        raise click.Abort
    from bench_pipeline.cli.launching import run_everything
    from bench_pipeline.cli.progress import progress
    from bench_pipeline.cli.stopping import stop_on_interrupt

    bench.interrupts = stop_on_interrupt
    bench.on_notice = notice
    with progress(bench, request.to_measure):
        run_id = run_everything(bench, request.partitions, options)
    if replay:
        return _end_of_replay(bench, request, run_id, as_json=as_json, plain=plain)
    document = summary(bench, request, run_id)
    _show_summary(document, run_id, as_json=as_json, plain=plain)
    _report_failures(document)
    _report_corrupt(bench)
    if bench.stop.starting.is_set():
        return 130
    assert isinstance(request, RunRequest)
    return 3 if document["not_measured"] else 0


def _refuse_odd_replay(options: "RunOptions") -> None:
    """A replay is of one evaluation, and takes no option that is about measuring or spending."""
    if not options.replay:
        return
    if not options.selection.evaluations:
        raise UsageError("replaying", "it is of one evaluation", "name one: bench run EVALUATION --replay")
    odd = {
        "--fresh": options.fresh,
        "--retry": options.retry,
        "--max-cost": options.max_cost_usd is not None,
        "--max-cells": options.max_cells is not None,
    }
    given = [name for name, is_given in odd.items() if is_given]
    if given:
        wrong = f"{' and '.join(given)} is about measuring, and a replay measures and spends nothing"
        raise UsageError("replaying", wrong, "leave it out")


def _end_of_replay(bench: Any, request: Any, run_id: str, *, as_json: bool, plain: bool) -> int:
    """Show what came of a replay; the exit status."""
    from bench_pipeline.pipeline.replaying import summary

    document = summary(bench, request.actions, request.evaluation, run_id)
    if as_json:
        emit_json(document)
    elif not wants_plain(plain):
        replayed, same = document["replayed"], document["same"]
        click.echo(
            f"{document['cells']} cells: {replayed} replayed, {same} of them to the same end and candidate, "
            f"{document['not_replayed']} not replayed; nothing was spent"
        )
    else:
        flat = {name: value for name, value in document.items() if name not in {"outcomes", "differences"}}
        flat |= {f"outcome.{name}": count for name, count in document["outcomes"].items()}
        click.echo(" ".join(f"{name}={show(value)}" for name, value in {"run": run_id, **flat}.items()))
    for reason, cells in document["differences"]:
        click.echo(f"bench: {cells} of {document['cells']} cells: {plain_text(reason)}", err=True)
    if document["differences"]:
        click.echo("bench: `bench cell show IDENTITY` has the replays and their evidence", err=True)
    _report_corrupt(bench)
    if bench.stop.starting.is_set():
        return 130
    return status_of_replay(document)


def status_of_replay(document: Mapping[str, Any]) -> int:
    """The exit status: 4 when a cell came to something else than was recorded, 3 when one was not replayed."""
    if document["same"] < document["replayed"]:
        return 4
    return 3 if document["not_replayed"] else 0


def _show_replays(document: dict[str, Any], *, as_json: bool, plain: bool) -> None:
    if as_json:
        emit_json(document)
        return
    counted = ["cells", "replay", "unrecorded"]
    emit_rows(document["setups"], ["setup", *counted], plain=plain, title="What would be replayed")
    click.echo(" ".join(f"{name}={document[name]}" for name in counted))
    for setup in document["setups"]:
        for reason in setup["reasons"]:
            click.echo(f"{plain_text(setup['setup'])}: {plain_text(reason)}")
    click.echo(f"plan_digest={document['plan_digest']}")


def _report_failures(document: dict[str, Any]) -> None:
    """What is wrong with the cells, on stderr: a setup that never worked must not look like a quiet night."""
    for cells, outcome, reason in document["failures"]:
        click.echo(f"bench: {cells} of {document['cells']} cells: {outcome}: {plain_text(reason)}", err=True)
    for why in document["unknown_costs"]:
        notice(why)
    if document["failures"]:
        click.echo("bench: `bench cell show IDENTITY` has the evidence, `--retry 1` tries again", err=True)


def _announce(bench: Any, request: Any) -> None:
    """Say loudly what a person has to know before anything runs; on stderr, so that output stays data."""
    if request.to_measure and bench.sandbox.notice:
        click.echo(f"bench: {plain_text(bench.sandbox.notice)}", err=True)
    _say_beforehand(request)


def _say_beforehand(request: Any) -> None:
    """What a plan leaves out and takes away, and what else it may cost."""
    if request.displaced:
        rows = "1 measured row" if request.displaced == 1 else f"{request.displaced} measured rows"
        notice(
            f"{rows} of the tables will leave them: measured in another environment (sandbox, limits, toolchain) than "
            "this plan's; the store keeps the verdicts, and a run in that environment shows them again"
        )
    for task_id, why in request.left_out.items():
        click.echo(f"bench: task {plain_text(task_id)} is left out: {plain_text(why)}", err=True)
    if request.left_out:
        click.echo("bench: `bench task validate` checks them again", err=True)
    for name, calls in request.live_calls.items():
        notice(f"the comparison {name} makes up to {calls} calls to a live model, which may cost money")
    for name, questions in request.questions.items():
        notice(f"the comparison {name} has up to {questions} questions for its judge, which may cost money")


def _report_corrupt(bench: Any) -> None:
    """Say how many files of the store were found to be corrupt, and where they are now."""
    found = bench.store.quarantined
    if not found:
        return
    files = "1 corrupt file was" if len(found) == 1 else f"{len(found)} corrupt files were"
    done = "found and left alone" if bench.store.read_only else "put aside, and their cells planned again"
    click.echo(f"bench: {files} {done}; `bench store verify` lists what is wrong", err=True)


def _question(request: Any) -> str:
    costs = []
    if request.paid:
        costs.append(
            f"{request.to_measure} cells would run tools that use credentials or a model ({', '.join(request.paid)})"
        )
    costs += [
        f"the comparison {name} would make up to {calls} calls to a live model"
        for name, calls in request.live_calls.items()
    ]
    costs += [
        f"the comparison {name} would put up to {questions} questions to its judge"
        for name, questions in request.questions.items()
    ]
    return f"{'; '.join(costs)}. Go on?"


def _show_dry_run(document: dict[str, Any], *, as_json: bool, plain: bool) -> None:
    if as_json:
        emit_json(document)
        return
    counted = ["cells", "reuse", "reverify", "run", "exhausted", "not_reusable"]
    columns = ["setup", *counted, "cost_low", "cost_median", "cost_high", "cost_unknown", "seconds_median"]
    # What is 0 for all says least; the sums are below the table.
    none = [name for name in counted[2:] if not document[name]]
    optional = [
        *none,
        "cost_low",
        "cost_high",
        "seconds_median",
        "not_reusable",
        "exhausted",
        "cost_median",
        "reuse",
    ]
    _emit_spaced(document["setups"], columns, plain=plain, title="What would be done", optional=optional)
    click.echo(" ".join(f"{name}={document[name]}" for name in counted))
    for setup in document["setups"]:
        for reason in setup["reasons"]:
            click.echo(f"{plain_text(setup['setup'])}: {plain_text(reason)}")
    columns = ["evaluation", "difference", "tasks", "attempts_a", "assumptions"]
    _emit_spaced(document["detectable"], columns, plain=plain, title="What difference this could show")
    click.echo(f"plan_digest={document['plan_digest']}")


def _emit_spaced(
    rows: list[dict[str, Any]],
    columns: list[str],
    *,
    plain: bool,
    title: str,
    optional: Sequence[str] = (),
) -> None:
    """As ``emit_rows``; on a terminal the names of columns are words, which can be wrapped."""
    if wants_plain(plain):
        emit_rows(rows, columns, plain=True)
        return
    spaced = {name: name.replace("_", " ") for name in columns}
    shown = [{spaced[name]: row[name] for name in columns} for row in rows]
    given_up = [spaced[name] for name in dict.fromkeys(optional)]
    emit_rows(shown, spaced.values(), plain=False, title=title, optional=given_up)


def _show_summary(document: dict[str, Any], run_id: str, *, as_json: bool, plain: bool) -> None:
    if as_json:
        emit_json({key: value for key, value in document.items() if key not in {"not_measured", *_BESIDE}})
        return
    if wants_plain(plain):
        flat = {key: value for key, value in document.items() if key not in {"outcomes", *_BESIDE}}
        flat |= {f"outcome.{name}": count for name, count in document["outcomes"].items()}
        click.echo(" ".join(f"{key}={show(value)}" for key, value in {"run": run_id, **flat}.items()))
        return
    known, unknown = document["cost_known"], document["cost_unknown"]
    click.echo(
        f"{document['cells']} cells: {document['executed']} executed, {document['reused']} reused, "
        f"{document['reverified']} reverified, {document['not_attempted']} not attempted"
    )
    click.echo(
        "outcomes: " + ", ".join(f"{name} {count}" for name, count in sorted(document["outcomes"].items()))
    )
    click.echo(f"spent by this run: {show(document['cost_usd'])} USD over {known} of {known + unknown} cells")
