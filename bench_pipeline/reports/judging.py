"""Sentences about judgements for people: the win rate with its interval, and what to be careful about."""

from collections.abc import Iterator
from itertools import pairwise

from bench_pipeline.judging.report import Report
from bench_pipeline.judging.tournament import Tournament


def summary(report: Report) -> str:
    """What the pairs add up to."""
    counts = (
        f"{report.left} won {report.left_wins}, {report.right} won {report.right_wins}, {report.ties} tied"
    )
    if report.no_votes:
        counts += f", {report.no_votes} without a vote"
    rate, interval = report.left_winrate, report.interval
    if rate is None or report.pairs == 0:
        return f"{report.pairs} pairs: {counts}"
    shown = f"win rate of {report.left}: {rate:.1%}"
    return f"{report.pairs} pairs: {counts}; {shown}" + (
        f" ({interval.low:.1%} to {interval.high:.1%})" if interval else ""
    )


def notes(report: Report) -> Iterator[str]:
    """What a reader has to know besides: an uncertain lead, flips, what was left out."""
    interval = report.interval
    leader = report.left if (report.left_winrate or 0) > 0.5 else report.right
    if (
        interval is not None
        and report.left_wins != report.right_wins
        and interval.low <= 0.5 <= interval.high
    ):
        yield f"warning: the lead of {leader} is not distinguishable from chance over these pairs"
    if report.flip_rate:
        yield (
            f"warning: the judge's answer changed with the order of the slots in {report.inconsistent} pairs "
            f"({report.flip_rate:.1%}); they count as ties"
        )
    yield from (f"warning: {text}" for text in report.notes)
    for side, names in ((report.left, report.left_only), (report.right, report.right_only)):
        if names:
            yield f"not paired, only in {side}: {', '.join(names)}"


def tournament_notes(held: Tournament) -> Iterator[str]:
    """How strengths came about, which neighbours are not told apart, and who beats whom in a circle."""
    yield f"strengths: {held.method}"
    yield f"intervals: {held.interval_method}"
    for better, worse in pairwise(held.standings):
        if better.low is not None and worse.high is not None and better.low <= worse.high:
            yield f"warning: the lead of {better.cell} over {worse.cell} is not distinguishable (the intervals overlap)"
    for cycle in held.cycles:
        yield f"warning: a circle: {' beats '.join((*cycle, cycle[0]))}"
