"""Composite scores over attempts with their gates, and failures by category."""

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from bench_pipeline.golden.gating import title
from bench_pipeline.reports.blocks import Block, Column, Figure, Notes, Section
from bench_pipeline.reports.golden import LEGEND, gathered_notes, score_display, score_notes
from bench_pipeline.reports.plots.lines import MOST, Score, line_plot
from bench_pipeline.reports.sections.parts import Row, by, fixed, number, share, table
from bench_pipeline.reports.text import UNKNOWN, plural


def score_section(document: Row) -> Section | None:
    """The scores of each scope."""
    scopes = by(document["scores"], "scope")
    if not scopes:
        return None
    inside = [
        Section(f"Tiers {scope.replace(',', ', ')}", f"scores-{place}", list(_scope(f"scores-{place}", rows)))
        for place, (scope, rows) in enumerate(scopes.items(), 1)
    ]
    return Section("Composite scores", "scores", [Notes([LEGEND])], inside)


def _scope(key: str, rows: Sequence[Row]) -> Iterator[Block]:
    series = _series(rows)
    if series:
        drawn = dict(list(series.items())[:MOST])
        caption = "Scores over attempts; a hollow mark is an incomplete score, a cross one whose gate closed"
        if len(series) > MOST:
            caption += f"; {MOST} of {len(series)} setups with several attempts"
        yield Figure(_lines(key, drawn), caption)
    ordered = sorted(rows, key=lambda row: (-row["score"], row["setup"], row["attempt"]))
    rows_shown = [_row(row) for row in ordered]
    yield table(
        f"{plural(len(rows), 'score')}, best first", _COLUMNS, rows_shown, more="bench table composite_scores"
    )
    notes = gathered_notes({title(row): score_notes(row) for row in ordered}, len(ordered))
    yield Notes(notes or ["No gate closed, and nothing is missing."])


_LETTERS = ("T", "Q", "E", "R", "S")
_COLUMNS: tuple[Column | str, ...] = (
    *("setup", number("attempt"), number("score"), "gate"),
    *(number(letter) for letter in _LETTERS),
    *(number("passed"), number("judged"), number("cost")),
)


def _row(row: Row) -> tuple[str, ...]:
    display = score_display(row)
    return (
        row["setup"],
        display["attempt"],
        display["score"],
        UNKNOWN if row["safety"] is None else "closed" if row["safety"] == 0 else "open",
        *(display[letter] for letter in _LETTERS),
        display["passed"],
        f"{row['judged']} of {row['tasks']}",
        display["cost"],
    )


def _series(rows: Sequence[Row]) -> dict[str, dict[int, Score]]:
    """The scores of setups with several attempts by attempt, best mean first."""
    found = {
        name: {
            row["attempt"]: Score(row["score"], closed=row["safety"] == 0, whole=row["complete"])
            for row in own
        }
        for name, own in by(rows, "setup").items()
        if len({row["attempt"] for row in own}) > 1
    }
    mean = {name: sum(score.value for score in own.values()) / len(own) for name, own in found.items()}
    return {name: found[name] for name in sorted(found, key=lambda name: (-mean[name], name))}


def _lines(key: str, series: Mapping[str, Mapping[int, Score]]) -> Markup:
    told = "; ".join(
        f"{name}: "
        + ", ".join(
            f"attempt {attempt} {fixed(score.value)}{' (gate closed)' if score.closed else ''}"
            f"{'' if score.whole else ' (incomplete)'}"
            for attempt, score in sorted(scores.items())
        )
        for name, scores in series.items()
    )
    return line_plot(f"{key}-lines", series, title="Composite scores over attempts", description=told)


def failure_section(document: Row) -> Section | None:
    """Failed golden tasks by category."""
    failures = document["failures"]
    if not failures:
        return None
    rows = [
        (
            row["category"],
            row["severity"],
            share(row["results"], row["of_failed"]),
            f"{row['results']} of {row['of_results']}",
            plural(row["setups"], "setup"),
        )
        for row in failures
    ]
    columns = (
        *(Column("category"), Column("severity"), number("of failed results"), number("of all results")),
        number("setups"),
    )
    caption = "Failed golden tasks by category, all setups and attempts"
    return Section(
        "Failures by category", "failures", [table(caption, columns, rows, more="bench golden failures")]
    )
