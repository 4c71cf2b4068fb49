"""``bench judge``: compare the scenario cells of two folders blindly, or of several in a tournament."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_pipeline.cli.output import LARGEST, emit_json, emit_rows, format_options, wants_plain
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
@click.option("--out", type=FOLDER, metavar="FILE", help="Write the report as JSON.")
@format_options
def judge(
    *,
    folders: tuple[Path, ...],
    tournament: bool,
    seed: int,
    attempt: int | None,
    out: Path | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Compare two folders of cell results, scenario by scenario, without knowing whose is whose.

    \b
    bench judge results/baseline results/candidate
    bench judge results/baseline results/candidate --seed 7 --out report.json
    bench judge --tournament results/*

    A coin per scenario decides which cell stands first. The rubric decides by the first difference: passed beats
    failed, fewer missing items, the longer artifact, fewer steps. A tournament fits strengths over all pairs
    (Bradley-Terry), with bootstrap intervals over the scenarios, and tells who beats whom in a circle. Exit status 5
    when no scenario is in two folders, 3 when a tournament does not identify the strengths.
    """
    from bench_pipeline.errors import UsageError
    from bench_pipeline.pipeline.judging import judge_all, judge_folders

    if tournament:
        held = judge_all(folders, seed=seed, attempt=attempt)
        written = _write(held.document(), out)
        _print_tournament(held, written, as_json=as_json, plain=plain)
        if not any(report.pairs for report in held.reports):
            return 5
        return 0 if held.standings[0].strength is not None else 3
    if len(folders) != 2:
        raise UsageError("judging", f"{len(folders)} folders were given", "name LEFT and RIGHT")
    report = judge_folders(folders[0], folders[1], seed=seed, attempt=attempt)
    written = _write(report.document(), out)
    _print(report, written, as_json=as_json, plain=plain)
    return _status(report)


def _write(document: dict[str, object], out: Path | None) -> Path | None:
    """Write a report whole, replacing an earlier one."""
    if out is None:
        return None
    import json

    from bench_pipeline.store.files import LocalFiles

    data = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2).encode() + b"\n"
    LocalFiles(out.absolute().parent).write(out.name, data)
    return out


def _status(report: "Report") -> int:
    return 5 if report.pairs == 0 else 0


def _print(report: "Report", written: Path | None, *, as_json: bool, plain: bool) -> None:
    if as_json:
        emit_json(report.document())
    elif wants_plain(plain):
        for line in _plain_lines(report, written):
            click.echo(line)
    else:
        _show(report, written)


def _plain_lines(report: "Report", written: Path | None) -> list[str]:
    rate = report.left_winrate
    facts: dict[str, object] = {
        "pairs": report.pairs,
        "left_wins": report.left_wins,
        "right_wins": report.right_wins,
        "ties": report.ties,
        "left_winrate": "-" if rate is None else f"{rate:.4f}",
    }
    lines = [f"{name}={value}" for name, value in facts.items()]
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
