"""Leaderboards of policies."""

from collections.abc import Iterator, Sequence
from typing import Any

from bench_pipeline.reports.blocks import Block, Figure, Section
from bench_pipeline.reports.leaderboards import leaderboard_display
from bench_pipeline.reports.plots.intervals import Rate, interval_plot
from bench_pipeline.reports.sections.parts import Row, by, number, table
from bench_pipeline.reports.text import rate_text


def policy_section(document: Row) -> Section | None:
    """The leaderboards of each comparison, pooled ones first."""
    comparisons = by(document["leaderboard"], "comparison")
    if not comparisons:
        return None
    inside = [
        Section(str(name), f"policies-{place}", list(_comparison(f"policies-{place}", rows)))
        for place, (name, rows) in enumerate(comparisons.items(), 1)
    ]
    return Section("Policies", "policies", sections=inside)


def _comparison(key: str, rows: Sequence[Row]) -> Iterator[Block]:
    boards = by(rows, "attempt")
    attempts: list[Any] = sorted(boards, key=lambda attempt: (attempt is not None, attempt or 0))
    first = sorted(boards[attempts[0]], key=lambda row: (row["rank"], row["harness"]))
    rates = [
        Rate(
            row["harness"],
            row["rate"],
            row["rate_low"],
            row["rate_high"],
            f"{row['attempted']}/{row['total']} attempted",
        )
        for row in first
    ]
    told = "; ".join(f"{rate.name}: {rate_text(rate.value, rate.low, rate.high)}" for rate in rates)
    name = _attempt(attempts[0])
    picture = interval_plot(f"{key}-rates", rates, title=f"Correct answers, {name}", description=told)
    yield Figure(picture, f"Correct of attempted answers with 95 % intervals, {name}")
    shown = [
        (
            display["harness"],
            _attempt(attempt),
            *(
                display[column]
                for column in ("rank", "correct", "coverage", "rate of attempted", "errors", "calls")
            ),
            display["state"],
        )
        for attempt in attempts
        for row in sorted(boards[attempt], key=lambda row: (row["rank"], row["harness"]))
        for display in (leaderboard_display(row),)
    ]
    columns = (
        *("policy", "attempt", number("rank"), number("correct of all"), number("coverage")),
        *(number("rate of attempted, 95 % interval"), number("errors"), number("calls of budget"), "state"),
    )
    caption = "Policies by correct answers, all on the same cases, model and budget"
    yield table(caption, columns, shown, more="bench policy leaderboard")


def _attempt(attempt: int | None) -> str:
    return "all attempts pooled" if attempt is None else f"attempt {attempt}"
