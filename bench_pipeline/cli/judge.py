"""``bench judge``: compare the scenario cells of two folders blindly, or of several in a tournament."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_pipeline.cli.output import LARGEST, emit_json, emit_rows, format_options, wants_plain
from bench_pipeline.reports.escaping import one_line

if TYPE_CHECKING:
    from bench_pipeline.judging import Report

FOLDER = click.Path(path_type=Path)


@click.command()
@click.argument("folders", nargs=-1, type=FOLDER, metavar="LEFT RIGHT", required=True)
@click.option("--seed", type=click.IntRange(0, LARGEST), default=0, metavar="N", help="Of the blinding coin.")
@click.option("--attempt", type=click.IntRange(1, LARGEST), metavar="N", help="Only cells of this attempt.")
@click.option("--out", type=FOLDER, metavar="FILE", help="Write the report as JSON.")
@format_options
def judge(
    *,
    folders: tuple[Path, ...],
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

    A coin per scenario decides which cell stands first. The rubric decides by the first difference: passed beats
    failed, fewer missing items, the longer artifact, fewer steps. Exit status 5 when no scenario is in both.
    """
    from bench_pipeline.errors import UsageError
    from bench_pipeline.pipeline.judging import judge_folders

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
