"""``bench golden``: check golden tasks, score what was measured, show runs and failures."""

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from bench_pipeline.golden.runs import Skipped
    from bench_pipeline.pipeline.golden_scores import Scored, Scores


@click.group()
def golden() -> None:
    """Check golden tasks, score what was measured, show runs and failures."""


@golden.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--tier", "tiers", multiple=True, type=TIERS, help="Only this tier (repeatable).")
@sandbox_option
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
        emit_rows(
            rows,
            ["task_id", "tier", "source", "runs", "signals", "for_a_judge", "valid", "problems"],
            plain=True,
        )
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


@golden.command()
@click.option("--tier", "tiers", multiple=True, type=TIERS, help="Only this tier (repeatable).")
@click.option("--setup", metavar="S", help="Only this setup.")
@click.option("--attempt", type=click.IntRange(1, LARGEST), metavar="N", help="Only this attempt.")
@click.option("--compare", is_flag=True, help="Compare each score with the setup's newest earlier run.")
@click.option("--no-save", is_flag=True, help="Write no table and no run file.")
@click.option("--fail-under", type=float, metavar="X", help="Exit with 4 when a score is below X.")
@click.option("--fail-on-regression", is_flag=True, help="Exit with 4 when a test regressed.")
@project_option
@format_options
def run(
    *,
    tiers: tuple[str, ...],
    setup: str | None,
    attempt: int | None,
    compare: bool,
    no_save: bool,
    fail_under: float | None,
    fail_on_regression: bool,
    project_dir: str | None,
    as_json: bool,
    plain: bool,
) -> None:
    """Score what cells measured and telemetry tells. No agent is run: `bench run` does that.

    \b
    bench golden run                                  all tiers but adversarial
    bench golden run --tier smoke --setup careful
    bench golden run --fail-under 0.6 --fail-on-regression   a gate for CI
    bench golden run --compare --json

    Each score is kept as a row of composite_scores and as a run file. With --compare, a task that passed before and
    fails now is a regression too. Exit status 5 when there is nothing to score; of a gate, 4 when it fails and 3
    when a score is incomplete.
    """
    from bench_pipeline.golden.gating import ScoreTerms, enforce
    from bench_pipeline.golden.suite import DEFAULT_TIERS
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.golden_scores import ScoreRequest, make_scores

    terms = ScoreTerms(fail_under, fail_on_regression)
    request = ScoreRequest(tiers or DEFAULT_TIERS, setup, attempt, compare, save=not no_save)
    made = make_scores(Bench(project_root(project_dir)), request)
    _warn(made)
    if as_json:
        emit_json({"runs": [_score_document(item, saved=not no_save) for item in made.scores]})
    elif wants_plain(plain):
        _show_plain(made.scores, saved=not no_save)
    else:
        _show_scores(made.scores, saved=not no_save)
    enforce([item.row for item in made.scores], terms, made.worse)


def _warn(made: "Scores") -> None:
    """What is wrong with files that scores are made from, on stderr: none of it is silent."""
    assert made.gathered is not None
    for problem in made.gathered.problems:
        click.echo(f"bench: {plain_text(str(problem))}", err=True)
    _warn_skipped(made.skipped)


def _warn_skipped(skipped: "list[Skipped]") -> None:
    for item in skipped:
        click.echo(f"bench: the run file {item.name} is skipped: {plain_text(item.why)}", err=True)


def _with_run(item: "Scored", *, saved: bool) -> dict[str, Any]:
    """A score's row, with the name that its run file goes by where it has one."""
    return {**item.row, "run": item.run.run if saved and item.row["tasks"] else None}


def _score_document(item: "Scored", *, saved: bool) -> dict[str, Any]:
    document = _with_run(item, saved=saved)
    document["failures"] = [failure.model_dump() for failure in item.run.failures]
    document["warnings"] = [
        {"task": result.task, "warning": text} for result in item.run.results for text in result.warnings
    ]
    if item.comparison is not None:
        document["comparison"] = dict(item.comparison.document)
    return document


def _show_plain(scores: "list[Scored]", *, saved: bool) -> None:
    from bench_pipeline.tables import table_schema

    columns = [*table_schema("composite_scores").schema.names, "run"]
    emit_rows([_with_run(item, saved=saved) for item in scores], columns, plain=True)
    for item in scores:
        if item.comparison is not None:
            document = item.comparison.document
            compared = ("run", "against", "comparable", "reason", "delta", "shared_tasks", "flips", "drift")
            emit_rows([document], compared, plain=True)


def _show_scores(scores: "list[Scored]", *, saved: bool) -> None:
    from bench_pipeline.golden.gating import title
    from bench_pipeline.reports.golden import (
        LEGEND,
        comparison_notes,
        gathered_notes,
        score_display,
        score_notes,
    )

    shown = [score_display(item.row) for item in scores]
    emit_rows(shown, shown[0] if shown else (), plain=False, title="Golden scores")
    if scores:
        click.echo(LEGEND)
    for note in gathered_notes({title(item.row): score_notes(item.row) for item in scores}):
        _say(note)
    for item in scores:
        for note in comparison_notes(item.comparison.document) if item.comparison else ():
            _say(f"{title(item.row)}: {note}")
    for item in scores:
        if name := _with_run(item, saved=saved)["run"]:
            _say(f"{title(item.row)}: kept as {name}")


def _say(text: str) -> None:
    click.echo(plain_text(text).replace("\n", "\\n"))


@golden.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@project_option
@format_options
def report(run_name: str | None, *, project_dir: str | None, as_json: bool, plain: bool) -> None:
    """Print a run as Markdown: score, parts, rates, cost, reasons, failures.

    \b
    bench golden report                                     the newest readable run
    bench golden report eval_run_20260131T120000.000000Z
    bench golden report --json                              everything that the run file has

    A run file that cannot be read is named and skipped. Exit status 5 when there is no run.
    """
    from bench_pipeline.golden.runs import chosen_run
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.reports.golden import markdown_report

    found, skipped = chosen_run(Bench(project_root(project_dir)).store, run_name)
    _warn_skipped(skipped)
    document = found.model_dump()
    if as_json:
        emit_json(document)
    elif plain:
        emit_rows([document], [name for name in document if name not in {"failures", "results"}], plain=True)
    else:
        click.echo(plain_text(markdown_report(document)))


@golden.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@click.option("--compare", metavar="RUN", help="Show how much each category grew or shrank since this run.")
@project_option
@format_options
def failures(
    run_name: str | None, *, compare: str | None, project_dir: str | None, as_json: bool, plain: bool
) -> None:
    """Print the failed tasks of a run by kind, and how many there are of each.

    \b
    bench golden failures                                 of the newest readable run
    bench golden failures RUN --compare EARLIER_RUN

    Exit status 5 when there is no run.
    """
    from bench_pipeline.golden.comparing import drift
    from bench_pipeline.golden.runs import chosen_run, read_run
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.reports.golden import drift_lines

    store = Bench(project_root(project_dir)).store
    found, skipped = chosen_run(store, run_name)
    _warn_skipped(skipped)
    changes = None if compare is None else drift(found, read_run(store, compare))
    rows = [failure.model_dump() for failure in found.failures]
    if as_json:
        document = {"run": found.run, "failures": rows, "counts": found.counts()}
        emit_json(document if changes is None else {**document, "against": compare, "drift": changes})
        return
    emit_rows(
        rows, ("task", "category", "severity", "details"), plain=plain, title=f"Failures of {found.run}"
    )
    for category, count in found.counts().items():
        click.echo(f"{category}={count}" if wants_plain(plain) else f"{count} {category}")
    if changes is not None:
        lines = drift_lines(changes) or ["  no change"]
        for line in lines:
            click.echo(f"drift{line.replace('  ', ' ')}" if wants_plain(plain) else f"drift:{line}")


@golden.command()
@click.option("--setup", metavar="S", help="Only changes of this setup.")
@click.option("--attempt", type=click.IntRange(1, LARGEST), metavar="N", help="Only of this attempt.")
@click.option("--task", "tasks", multiple=True, metavar="ID", help="Only of this task (repeatable).")
@click.option("--again", is_flag=True, help="Also ask about changes that a model has judged.")
@click.option("--endpoint", metavar="URL", help="A chat-completions URL (default: the project's judge).")
@click.option("--model", metavar="M", help="Which model to ask (default: the project's judge).")
@click.option("--key-env", metavar="NAME", help="The environment variable that holds the key.")
@project_option
@format_options
def judge(
    *,
    setup: str | None,
    attempt: int | None,
    tasks: tuple[str, ...],
    again: bool,
    endpoint: str | None,
    model: str | None,
    key_env: str | None,
    project_dir: str | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Let a model judge the changes that executed golden cells made. This may spend money.

    \b
    bench golden judge                                      the judge of config.yaml
    bench golden judge --setup S --endpoint https://host/v1/chat/completions --model m --key-env KEY

    Judgements go to judgements/, where `bench golden run` reads them; a change that has one is not asked about again.
    A judge that failed is kept as failed, never as low marks, and is asked again next time. Exit status 3 when the
    judge failed on a change, 5 when there is none to judge.
    """
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.golden_judging import JudgingRequest, judge_changes

    request = JudgingRequest(setup, attempt, tasks, again, endpoint, model, key_env)
    done = judge_changes(Bench(project_root(project_dir)), request)
    document = done.document()
    if as_json:
        emit_json(document)
    else:
        columns = ("setup", "attempt", "task_id", "correctness", "style", "test_coverage", "safety", "failed")
        emit_rows(done.records, columns, plain=plain, title="Judgements")
        counts = " ".join(
            f"{name}={document[name]}" for name in ("judged", "failed", "kept", "without_change")
        )
        click.echo(counts)
    return 3 if done.failed else 0
