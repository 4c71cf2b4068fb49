"""``bench policy``: one ordered set of questions, three ways to ask, one call budget."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bench_pipeline.cli.output import (
    Amount,
    emit_json,
    emit_rows,
    format_options,
    notice,
    project_option,
    project_root,
    wants_plain,
)
from bench_pipeline.reports.escaping import plain_text

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Stop
    from bench_pipeline.policies.comparing import Attempt, Terms
    from bench_pipeline.policies.leaderboard import Leaderboard
    from bench_pipeline.policies.models import Model

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(dir_okay=False, path_type=Path)
_NAMES = click.Choice(["baseline", "retry-errors", "evidence"])


@click.group()
def policy() -> None:
    """Ask one ordered set of questions in three ways under one call budget, and compare what comes back.

    \b
    baseline       sends each prompt once
    retry-errors   sends it a second time when the first call failed
    evidence       sends it once, with the case's evidence
    """


def _comparison_options(command: F) -> F:
    """What a comparison is over: cases, a live model, and the terms that every policy gets."""
    for option in reversed(
        [
            click.option(
                "--cases", "cases_file", type=_FILE, required=True, help="The questions, a JSON file."
            ),
            click.option("--endpoint", metavar="URL", help="A chat-completions URL of a live model."),
            click.option("--model", metavar="NAME", help="The live model's name."),
            click.option("--key-env", metavar="NAME", help="The variable that holds the live model's key."),
            click.option("--temperature", type=Amount(), help="Of a live model, 0 to 2.  [default: 0]"),
            click.option("--max-tokens", type=click.IntRange(1), help="Of an answer.  [default: 128]"),
            click.option(
                "--budget", type=int, required=True, help="Calls that each policy may make, 0 to 10000."
            ),
            click.option(
                "--timeout", default="5m", show_default=True, help="Time for each policy, such as 30s."
            ),
            click.option(
                "--policy", "policies", multiple=True, type=_NAMES, help="Only this one (repeatable)."
            ),
            click.option("--repeat", type=click.IntRange(1, 1000), default=1, help="Run so many attempts."),
            click.option(
                "--concurrency",
                type=click.IntRange(1, 1000),
                default=1,
                help="Live calls in flight at one time, of policies that ask once.",
            ),
        ]
    ):
        command = option(command)
    return command


@policy.command()
@_comparison_options
@click.option("--recording", type=_FILE, help="Recorded answers to replay, instead of a live model.")
@click.option("--out", type=_FILE, help="Write the receipt here; receipt-1.json and so on with --repeat.")
@click.option(
    "--receipt-version", type=click.IntRange(1, 2), default=1, help="2 adds times, tokens, failures."
)
@project_option
@format_options
def run(
    *,
    cases_file: Path,
    recording: Path | None,
    out: Path | None,
    receipt_version: int,
    repeat: int,
    project_dir: str | None,
    as_json: bool,
    plain: bool,
    **options: Any,
) -> int:
    """Run the policies over a recording or a live model, and print their leaderboard.

    \b
    bench policy run --cases cases.json --recording recording.json --budget 4
    bench policy run --cases cases.json --budget 40 --timeout 2m --out receipt.json \\
        --endpoint http://127.0.0.1:11434/v1/chat/completions --model m
    bench policy run --cases cases.json --recording recording.json --budget 4 --json

    A failed call counts, whatever the reason; nothing is tried again behind the budget. Nothing of a project is
    needed; one that is named raises the limits that it sets under policies. Exit status 3 when the time of a policy
    was over before it was done; what it had is kept. Ctrl-C ends all policies with what they have: status 130.
    """
    from bench_pipeline.cli.progress import counting
    from bench_pipeline.cli.stopping import stop_on_interrupt
    from bench_pipeline.pipeline.bench import Stop
    from bench_pipeline.pipeline.policy_running import most_calls, receipt_path, run_attempts, write_receipt
    from bench_pipeline.policies.cases import read_cases

    max_cases, agreed = _limits(project_dir, options)
    cases = read_cases(cases_file, max_cases)
    model = _model(recording, options)
    attempts = []
    stop = Stop.fresh()
    total = repeat * most_calls(cases, agreed) if recording is None else 0
    with stop_on_interrupt(stop), counting("calls", total) as on_call:
        for attempt in run_attempts(cases, model, agreed, range(1, repeat + 1), on_call, stop.starting):
            attempts.append(attempt)
            if out is not None:
                write_receipt(receipt_path(out, attempt.number, repeat), attempt, receipt_version)
    _print_attempts(attempts, as_json=as_json, plain=plain)
    return _status(attempts, stop)


@policy.command()
@_comparison_options
@click.option("--out", type=_FILE, required=True, help="Write the recording here.")
@click.option(
    "--recording-version",
    type=click.IntRange(1, 2),
    default=2,
    help="1 holds a single attempt of a single policy.",
)
@project_option
@format_options
def record(
    *,
    cases_file: Path,
    out: Path,
    recording_version: int,
    repeat: int,
    project_dir: str | None,
    as_json: bool,
    plain: bool,
    **options: Any,
) -> int:
    """Run the policies over a live model and write what it answered, so that the run can be replayed.

    \b
    bench policy record --cases cases.json --budget 40 --out recording.json \\
        --endpoint http://127.0.0.1:11434/v1/chat/completions --model m
    bench policy run --cases cases.json --budget 40 --recording recording.json

    Exit status 3 when the time of a policy was over before it was done; what it had is recorded, and its replay
    ends otherwise.
    """
    from bench_pipeline.cli.progress import counting
    from bench_pipeline.cli.stopping import stop_on_interrupt
    from bench_pipeline.pipeline.bench import Stop
    from bench_pipeline.pipeline.policy_running import most_calls, recordable, run_attempts, write_recording
    from bench_pipeline.policies.cases import read_cases

    max_cases, agreed = _limits(project_dir, options)
    recordable(agreed, repeat, recording_version)
    cases = read_cases(cases_file, max_cases)
    model = _model(None, options)
    stop = Stop.fresh()
    with stop_on_interrupt(stop), counting("calls", repeat * most_calls(cases, agreed)) as on_call:
        attempts = list(run_attempts(cases, model, agreed, range(1, repeat + 1), on_call, stop.starting))
    write_recording(out, attempts, recording_version)
    _print_attempts(attempts, as_json=as_json, plain=plain)
    return _status(attempts, stop)


@policy.command()
@click.argument("receipts", nargs=-1, type=_FILE, metavar="[RECEIPT]...")
@click.option(
    "--comparison",
    "names",
    multiple=True,
    metavar="NAME",
    help="Of the project's, only this one (repeatable).",
)
@project_option
@format_options
def leaderboard(
    *, receipts: tuple[Path, ...], names: tuple[str, ...], project_dir: str | None, as_json: bool, plain: bool
) -> int:
    """Compare receipts of one case set, one model configuration and one call budget.

    \b
    bench policy leaderboard receipt.json
    bench policy leaderboard receipt-1.json receipt-2.json    of version 2: each attempt, then all pooled
    bench policy leaderboard                                  what the project's tables hold
    bench policy leaderboard --comparison archive-desk

    Receipts that cannot be compared are refused with the field that differs, and so is a receipt whose counters do
    not follow from its trace. A file may also hold an array of rows made by hand: Harness, Correct, Attempted,
    Errors, Total. Exit status 5 when the project has nothing stored.
    """
    from bench_pipeline.policies.leaderboard import leaderboards
    from bench_pipeline.policies.loading import read_entries

    if receipts and names:
        raise click.UsageError("name receipts, or comparisons of the project with --comparison")
    compared: dict[str | None, list[Leaderboard]]
    if receipts:
        compared = {None: leaderboards([entry for path in receipts for entry in read_entries(path)])}
    else:
        compared = _stored(project_dir, names)
    if as_json:
        from bench_pipeline.policies.certainty import rows

        emit_json([row for name, boards in compared.items() for board in boards for row in rows(board, name)])
        return 0
    for name, boards in compared.items():
        _print_boards(boards, plain=plain, comparison=name)
    return 0


def _stored(project_dir: str | None, names: tuple[str, ...]) -> "dict[str | None, list[Leaderboard]]":
    """The leaderboards of the project's comparisons."""
    from bench_pipeline.errors import NotFoundError, NothingToEvaluateError
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.policy_leaderboards import stored_leaderboards

    found = stored_leaderboards(Bench(project_root(project_dir)))
    if not found:
        raise NothingToEvaluateError("comparing policies", "no comparison is stored", "bench run")
    for name in names:
        if name not in found:
            raise NotFoundError(
                f"finding comparison {name!r}", "none of this name is stored", f"stored: {', '.join(found)}"
            )
    return {name: boards for name, boards in found.items() if not names or name in names}


def _limits(project_dir: str | None, options: dict[str, Any]) -> "tuple[int, Terms]":
    """The most cases, and the terms: within the limits of the project where one is named."""
    from pydantic_core import PydanticCustomError

    from bench_pipeline.documents.fields import as_duration
    from bench_pipeline.pipeline.policy_running import terms
    from bench_pipeline.project import Policies, find_project

    root = project_root(project_dir)
    limits = Policies() if root is None else find_project(root).config.policies
    try:
        timeout_s = as_duration(options.pop("timeout"))
    except PydanticCustomError as error:
        raise click.BadParameter(error.message(), param_hint="--timeout") from None
    return limits.max_cases, terms(
        options.pop("budget"), timeout_s, limits.max_timeout, options.pop("policies")
    )


def _model(recording: Path | None, options: dict[str, Any]) -> "Model":
    """The model that was asked for: a recording, or a live one."""
    concurrency = options.pop("concurrency")
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is not None]
    if recording is not None:
        from bench_pipeline.policies.recordings import Replay, read_recording

        if given:
            words = (
                f"{', '.join(given)} cannot be given with --recording, which has its own model and settings"
            )
            raise click.UsageError(words)
        return Replay(read_recording(recording))
    endpoint, name = options["endpoint"], options["model"]
    if endpoint is None or name is None:
        raise click.UsageError("name a --recording, or a live model with --endpoint and --model")
    from bench_pipeline.pipeline.policy_running import live_model

    return live_model(
        endpoint,
        name,
        key_env=options["key_env"],
        temperature=options["temperature"],
        max_tokens=options["max_tokens"],
        concurrency=concurrency,
    )


def _status(attempts: "list[Attempt]", stop: "Stop") -> int:
    cancelled = [attempt for attempt in attempts if attempt.cancelled]
    for attempt in cancelled:
        names = [result.policy.name for result in attempt.results if result.tally.state == "cancelled"]
        why = "it was stopped" if stop.starting.is_set() else "the time was over"
        notice(f"attempt {attempt.number}: {why} before {', '.join(names)} was done")
    if stop.starting.is_set():
        return 130
    return 3 if cancelled else 0


def _print_attempts(attempts: "list[Attempt]", *, as_json: bool, plain: bool) -> None:
    from bench_pipeline.pipeline.policy_running import receipt_rows
    from bench_pipeline.policies.entries import entries_of
    from bench_pipeline.policies.leaderboard import leaderboards

    if as_json:
        first = attempts[0]
        head = {"scope": first.scope, "model": first.model.model, "dataset_sha256": first.dataset_sha256}
        emit_json({**head, "results": [row for attempt in attempts for row in receipt_rows(attempt)]})
        return
    _print_boards(leaderboards([entry for attempt in attempts for entry in entries_of(attempt)]), plain=plain)


def _print_boards(boards: "list[Leaderboard]", *, plain: bool, comparison: str | None = None) -> None:
    from bench_pipeline.reports.leaderboards import plain_lines

    if comparison is not None:
        click.echo(f"COMPARISON {comparison}" if wants_plain(plain) else comparison)
    for board in boards:
        if not wants_plain(plain):
            _show(board)
            continue
        if len(boards) > 1:
            click.echo(f"ATTEMPT {'pooled' if board.attempt is None else board.attempt}")
        for line in plain_lines(board):
            click.echo(line)


def _show(board: "Leaderboard") -> None:
    """A leaderboard for people: with coverage, intervals, and what a lead rests on."""
    from bench_pipeline.policies.certainty import leads, rows
    from bench_pipeline.reports.leaderboards import leaderboard_display, leaderboard_notes

    shown = [leaderboard_display(row) for row in rows(board)]
    first = board.entries[0]
    number = (
        f", {'pooled' if board.pooled else f'attempt {board.attempt}'}"
        if board.attempt or board.pooled
        else ""
    )
    title = plain_text(
        f"{first.model or 'rows without a receipt'} ({first.scope or 'unknown scope'}){number}"
    )
    emit_rows(shown, list(shown[0]), plain=False, title=title, optional=("errors", "calls"))
    for note in leaderboard_notes(board, leads(board)):
        click.echo(plain_text(f"{note.kind}: {note.text}"))
