"""Scenarios that cells passed, and what judges said of pairs of them."""

from collections.abc import Iterator, Sequence

from bench_pipeline.reports.blocks import Block, Figure, Section
from bench_pipeline.reports.plots.intervals import Rate, interval_plot
from bench_pipeline.reports.sections.parts import Row, by, number, share, table
from bench_pipeline.reports.text import UNKNOWN, rate_text

_DRAWN = 24


def judge_section(document: Row) -> Section | None:
    """Each comparison of scenarios: what passed, and who won against whom."""
    judged, ran = by(document["judges"], "comparison"), by(document["scenarios"], "comparison")
    names = sorted({*judged, *ran})
    if not names:
        return None
    inside = [
        Section(
            str(name),
            f"judges-{place}",
            list(_comparison(f"judges-{place}", ran.get(name, []), judged.get(name, []))),
        )
        for place, name in enumerate(names, 1)
    ]
    return Section("Scenarios and judges", "judges", sections=inside)


def _comparison(key: str, ran: Sequence[Row], judged: Sequence[Row]) -> Iterator[Block]:
    if ran:
        rows = [(row["cell"], share(row["passed"], row["runs"])) for row in ran]
        yield table(
            "Scenarios passed by cell", ("cell", number("passed")), rows, more="bench table scenario_results"
        )
    if not judged:
        return
    rates = [
        Rate(
            f"{row['left']} vs {row['right']}",
            row["left_winrate"],
            row["winrate_low"],
            row["winrate_high"],
            _over(row),
        )
        for row in judged[:_DRAWN]
    ]
    told = "; ".join(
        f"{rate.name}: {rate_text(rate.value, rate.low, rate.high)}, {rate.beside}" for rate in rates
    )
    picture = interval_plot(
        f"{key}-rates", rates, title="Win rates of the first named", description=told, middle=0.5
    )
    caption = "Win rate of the first named with its 95 % interval; one that holds 50 % tells nobody apart"
    yield Figure(
        picture, caption if len(judged) <= _DRAWN else f"{caption}; the first {_DRAWN} of {len(judged)}"
    )
    yield table(
        "Blind judgements, pair by pair",
        _COLUMNS,
        [_row(row) for row in judged],
        more="bench table judge_pairs",
    )


_COLUMNS = (
    *("pair", "judge", number("attempt"), number("win rate of the first, 95 % interval"), number("wins")),
    *(number("ties"), number("no vote"), number("inconsistent"), "notes"),
)


def _row(row: Row) -> tuple[str, ...]:
    return (
        f"{row['left']} vs {row['right']}",
        row["judge"],
        str(row["attempt"]),
        rate_text(row["left_winrate"], row["winrate_low"], row["winrate_high"]),
        f"{row['left_wins']} to {row['right_wins']} of {row['pairs']}",
        f"{row['ties']} of {row['pairs']}",
        f"{row['no_votes']} of {row['pairs']}",
        f"{row['inconsistent']} of {row['pairs']}",
        "; ".join(row["notes"] or ()) or "none",
    )


def _over(row: Row) -> str:
    return f"{row['pairs']} pairs" if row["left_winrate"] is not None else UNKNOWN
