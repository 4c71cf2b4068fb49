"""``bench judge``: compare the scenario cells of two folders blindly, or of several in a tournament."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_pipeline.cli.output import (
    LARGEST,
    Amount,
    emit_json,
    emit_rows,
    format_options,
    notice,
    wants_plain,
)
from bench_pipeline.reports.escaping import one_line

if TYPE_CHECKING:
    from bench_pipeline.judging import Report
    from bench_pipeline.judging.tournament import Tournament

FOLDER = click.Path(path_type=Path)


@click.command()
@click.argument("folders", nargs=-1, type=FOLDER, metavar="LEFT RIGHT | DIR...", required=True)
@click.option("--tournament", is_flag=True, help="All pairs of three or more folders.")
@click.option(
    "--seed",
    type=click.IntRange(0, LARGEST),
    default=0,
    metavar="N",
    help="Of the blinding coin and the bootstrap.",
)
@click.option("--attempt", type=click.IntRange(1, LARGEST), metavar="N", help="Only cells of this attempt.")
@click.option(
    "--judge-endpoint", "endpoint", metavar="URL", help="Let a model judge: a chat-completions URL."
)
@click.option("--judge-model", "model", metavar="M", help="The judge's model.")
@click.option("--key-env", metavar="NAME", help="The variable that holds the judge's key.")
@click.option(
    "--judgements",
    type=FOLDER,
    metavar="FILE",
    help="Record the judge's replies here, and use those that are there; without --judge-endpoint, replay them.",
)
@click.option(
    "--scenarios", type=FOLDER, metavar="DIR", help="Scenario files, from which the judge learns the goals."
)
@click.option(
    "--quorum",
    type=click.FloatRange(0, 1),
    default=0.5,
    metavar="X",
    help="The least share of pairs with a vote.",
)
@click.option(
    "--concurrency", type=click.IntRange(1, 256), default=8, metavar="N", help="Pairs asked about at once."
)
@click.option("--timeout", "call_s", type=Amount(), metavar="S", help="The seconds of one call to the judge.")
@click.option("--out", type=FOLDER, metavar="FILE", help="Write the report as JSON.")
@format_options
def judge(
    *,
    folders: tuple[Path, ...],
    tournament: bool,
    seed: int,
    attempt: int | None,
    endpoint: str | None,
    model: str | None,
    key_env: str | None,
    judgements: Path | None,
    scenarios: Path | None,
    quorum: float,
    concurrency: int,
    call_s: float | None,
    out: Path | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Compare two folders of cell results, scenario by scenario, without knowing whose is whose.

    \b
    bench judge results/baseline results/candidate
    bench judge results/baseline results/candidate --seed 7 --out report.json
    bench judge --tournament results/*
    bench judge results/baseline results/candidate --judge-endpoint https://host/v1/chat/completions --judge-model m
      --key-env JUDGE_KEY --judgements judged.jsonl --scenarios scenarios

    A coin per scenario decides which cell stands first. The rubric decides by the first difference: passed beats
    failed, fewer missing items, the longer artifact, fewer steps. A tournament fits strengths over all pairs
    (Bradley-Terry), with bootstrap intervals over the scenarios, and tells who beats whom in a circle. Exit status 5
    when no scenario is in two folders, 3 when a tournament does not identify the strengths.

    A model judges in the same slots, in both orders: an answer that changes with the order is a tie and counted, one
    that cannot be read is no vote. Exit status 3 when fewer pairs than the quorum have a vote.
    """
    from bench_pipeline.cli.progress import counting
    from bench_pipeline.errors import UsageError
    from bench_pipeline.pipeline.judging import Judging, judge_all, judge_folders

    watch = partial(counting, "pairs") if endpoint is not None else None
    judging = Judging(seed, endpoint, model, key_env, judgements, scenarios, concurrency, call_s, watch)
    if endpoint is None and (model or key_env):
        raise UsageError("judging", "a model was named but not where to ask it", "give --judge-endpoint URL")
    if tournament:
        held = judge_all(folders, judging, attempt=attempt)
        written = _write(held.document(), out)
        _print_tournament(held, written, as_json=as_json, plain=plain)
        status = _status(held.reports, quorum)
        return status or (0 if held.standings[0].strength is not None else 3)
    if len(folders) != 2:
        raise UsageError("judging", f"{len(folders)} folders were given", "name LEFT and RIGHT")
    report = judge_folders(folders[0], folders[1], judging, attempt=attempt)
    written = _write(report.document(), out)
    _print(report, written, as_json=as_json, plain=plain)
    return _status([report], quorum)


def _write(document: dict[str, object], out: Path | None) -> Path | None:
    """Write a report whole, replacing an earlier one."""
    if out is None:
        return None
    import json

    from bench_pipeline.store.files import LocalFiles

    data = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2).encode() + b"\n"
    LocalFiles(out.absolute().parent).write(out.name, data)
    return out


def _status(reports: "Sequence[Report]", quorum: float) -> int:
    """5 where there is nothing to compare, 3 where too few pairs have a vote, whatever these said."""
    if not any(report.pairs for report in reports):
        return 5
    poor = [report for report in reports if report.voted < quorum or (report.pairs and report.voted == 0)]
    for report in poor:
        notice(f"{report.left} against {report.right}: only {report.voted:.1%} of the pairs have a vote")
    return 3 if poor else 0


def _print(report: "Report", written: Path | None, *, as_json: bool, plain: bool) -> None:
    if as_json:
        emit_json(report.document())
    elif wants_plain(plain):
        for line in _plain_lines(report, written):
            click.echo(line)
    else:
        _show(report, written)


def _plain_lines(report: "Report", written: Path | None) -> list[str]:
    from bench_pipeline.judging.report import RUBRIC

    rate = report.left_winrate
    facts: dict[str, object] = {
        "pairs": report.pairs,
        "left_wins": report.left_wins,
        "right_wins": report.right_wins,
        "ties": report.ties,
        "left_winrate": "-" if rate is None else f"{rate:.4f}",
    }
    if report.judge != RUBRIC:
        facts |= {
            "judge": one_line(report.judge),
            "no_votes": report.no_votes,
            "inconsistent": report.inconsistent,
        }
    lines = [f"{name}={value}" for name, value in facts.items()]
    lines += [f"note={one_line(text)}" for text in report.notes]
    lines += [f"left_only={one_line(name)}" for name in report.left_only]
    lines += [f"right_only={one_line(name)}" for name in report.right_only]
    return [*lines, *([f"out={one_line(str(written))}"] if written is not None else [])]


def _show(report: "Report", written: Path | None) -> None:
    """For people: every pair, then what they add up to and how sure that is."""
    left, right = one_line(report.left), one_line(report.right)
    winners = {"left": left, "right": right, "tie": "tie", "no_vote": "no vote"}
    rows = [
        {
            "scenario": item.scenario,
            "winner": winners[item.verdict],
            "decided by": item.rule.replace("_", " "),
        }
        for item in report.verdicts
    ]
    emit_rows(rows, ["scenario", "winner", "decided by"], plain=False, title=f"{left} against {right}")
    from bench_pipeline.reports.judging import notes, summary

    for line in (summary(report), *notes(report)):
        click.echo(one_line(line))
    if written is not None:
        click.echo(f"written: {one_line(str(written))}")


_STANDING = ("rank", "cell", "strength", "low", "high", "wins", "losses", "ties")


def _print_tournament(held: "Tournament", written: Path | None, *, as_json: bool, plain: bool) -> None:
    if as_json:
        emit_json(held.document())
        return
    rows = [vars(standing) for standing in held.standings]
    emit_rows(rows, _STANDING, plain=plain, title="Tournament")
    if wants_plain(plain):
        lines = [f"cycle={','.join(cycle)}" for cycle in held.cycles]
        lines += [f"method={held.method}", f"interval_method={held.interval_method}"]
        lines += [f"out={written}"] if written is not None else []
    else:
        from bench_pipeline.reports.judging import tournament_notes

        lines = [*tournament_notes(held), *([f"written: {written}"] if written is not None else [])]
    for line in lines:
        click.echo(one_line(line))
