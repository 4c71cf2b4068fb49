"""Rankings with bands, cost against pass rate, and what came of cells."""

import shlex
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from bench_pipeline.reports.blocks import Block, Figure, Notes, Section, Table
from bench_pipeline.reports.plots.intervals import Rate, interval_plot
from bench_pipeline.reports.plots.scatter import Point, scatter_plot
from bench_pipeline.reports.sections.parts import Row, by, number, share, table
from bench_pipeline.reports.text import (
    UNKNOWN,
    percent,
    plural,
    ranking_display,
    ranking_notes,
    rate_text,
)

# More rows than this make a picture that nobody reads.
_DRAWN = 24


def ranking_section(document: Row) -> Section | None:
    """The setups of each evaluation: by pass rate, and by what they cost."""
    rankings, pairs = by(document["rankings"], "evaluation"), by(document["pairs"], "evaluation")
    if not rankings:
        return None
    inside = [
        Section(
            str(name), f"ranking-{place}", list(_evaluation(f"ranking-{place}", rows, pairs.get(name, [])))
        )
        for place, (name, rows) in enumerate(rankings.items(), 1)
    ]
    return Section("Rankings and what they cost", "rankings", sections=inside)


def _evaluation(key: str, rows: Sequence[Row], pairs: Sequence[Row]) -> Iterator[Block]:
    ordered = sorted(rows, key=lambda row: (not row["ranked"], row["rank"] or 0, row["setup"]))
    yield Figure(_rates(key, ordered[:_DRAWN]), _drawn("Pass rates with 95 % intervals and ranks", ordered))
    yield _table(ordered)
    priced = [row for row in ordered if row["cost_per_cell"] is not None]
    if len(priced) > 1:
        left_out = len(ordered) - len(priced)
        caption = "What one attempted cell cost against the pass rate"
        if left_out:
            caption += (
                f"; {plural(left_out, 'setup')} not shown: not ranked, or the cost of a cell is unknown"
            )
        yield Figure(_costs(key, priced[:_DRAWN]), _drawn(caption, priced))
    notes = ranking_notes(ordered, pairs, {}, {})
    yield Notes([f"{note.kind}: {note.text}" for note in notes])


def _drawn(caption: str, rows: Sequence[Row]) -> str:
    return caption if len(rows) <= _DRAWN else f"{caption}; the first {_DRAWN} of {len(rows)}"


def _rates(key: str, rows: Sequence[Row]) -> Markup:
    rates = [
        Rate(row["setup"], row["pass_rate"], row["rate_low"], row["rate_high"], _place(row)) for row in rows
    ]
    told = "; ".join(
        f"{rate.name}: {rate_text(rate.value, rate.low, rate.high)}, {rate.beside}" for rate in rates
    )
    return interval_plot(f"{key}-rates", rates, title="Pass rates by setup", description=told)


def _place(row: Row) -> str:
    if row["rank"] is None:
        return "not ranked"
    low, high = row["band_low"], row["band_high"]
    return f"rank {row['rank']}" if low is None else f"rank {row['rank']} (band {_band(low, high)})"


def _band(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _costs(key: str, rows: Sequence[Row]) -> Markup:
    points = [
        Point(
            row["setup"],
            row["cost_per_cell"],
            row["pass_rate"],
            row["rate_low"],
            row["rate_high"],
            row["on_front"],
        )
        for row in rows
    ]
    told = "; ".join(
        f"{point.name}: {point.cost:.4g} USD, {percent(point.rate)}{', on the front' if point.on_front else ''}"
        for point in points
    )
    return scatter_plot(
        f"{key}-costs",
        points,
        title="Cost against pass rate",
        description=f"{told}. Filled diamonds are on the front, hollow circles are not.",
        x_label="USD for one attempted cell",
    )


def _table(rows: Sequence[Row]) -> Table:
    columns = (
        *("setup", number("rank"), number("band"), number("pass rate, 95 % interval"), number("passed")),
        *(number("cost"), number("USD per cell"), "on the front", number("missing cells")),
    )
    shown = [
        (
            row["setup"],
            display["rank"],
            display["band"],
            display["pass rate"],
            display["passed"],
            display["cost"],
            UNKNOWN if row["cost_per_cell"] is None else f"{row['cost_per_cell']:.4g}",
            UNKNOWN if row["on_front"] is None else "yes" if row["on_front"] else "no",
            str(len(row["missing"])),
        )
        for row in rows
        for display in (ranking_display(row),)
    ]
    caption = f"Setups of {rows[0]['evaluation']} by pass rate"
    return table(caption, columns, shown, more=shlex.join(["bench", "rank", rows[0]["evaluation"]]))


def outcome_section(document: Row) -> Section | None:
    """How cells came out, evaluation by evaluation."""
    outcomes = document["outcomes"]
    if not outcomes:
        return None
    rows = [
        (
            row["outcome"],
            row["outcome_class"].replace("_", " "),
            row["evaluation"],
            share(row["cells"], row["of_cells"]),
        )
        for row in outcomes
    ]
    columns = ("outcome", "kind", "evaluation", number("cells"))
    caption = "Planned cells by outcome; only verdicts measured something"
    return Section(
        "Outcomes of cells", "outcomes", [table(caption, columns, rows, more="bench table verdicts")]
    )
