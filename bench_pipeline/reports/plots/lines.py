"""Scores over attempts, a line for each setup, with the attempts whose gate closed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from bench_pipeline.reports.plots.drawing import SERIES, Drawing, fitting
from bench_pipeline.reports.plots.scale import Scale

_WIDTH, _HEIGHT, _LEFT, _LEGEND, _TOP, _FOOT = 720.0, 300.0, 48.0, 230.0, 16.0, 48.0
# More lines than shapes could not be told apart.
MOST = len(SERIES)


@dataclass(frozen=True)
class Score:
    """One score: ``closed`` where a gate made it 0, ``whole`` unless something was not measured."""

    value: float
    closed: bool = False
    whole: bool = True


def line_plot(key: str, series: Mapping[str, Mapping[int, Score]], *, title: str, description: str) -> Markup:
    """At most ``MOST`` lines, by attempt; a hollow mark is an incomplete score, a cross one whose gate closed."""
    drawing = Drawing(key, _WIDTH, _HEIGHT, title, description)
    bottom, right = _HEIGHT - _FOOT, _WIDTH - _LEGEND
    attempts = sorted({attempt for scores in series.values() for attempt in scores})
    x = Scale(attempts[0], attempts[-1], _LEFT + 24, right - 24)
    y = Scale(0.0, 1.0, bottom, _TOP)
    for tick in y.ticks():
        drawing.line(_LEFT, y(tick), right, y(tick), "grid")
        drawing.text(_LEFT - 8, y(tick) + 4, f"{tick:.1f}", "tick", "end")
    for attempt in _some(attempts):
        drawing.text(x(attempt), bottom + 19, str(attempt), "tick", "middle")
    drawing.line(_LEFT, bottom, right, bottom, "axis")
    drawing.text((_LEFT + right) / 2, bottom + 38, "attempt", "tick", "middle")
    for number, (name, scores) in enumerate(series.items()):
        shape, style = SERIES[number], f"series-{number}"
        drawing.path([(x(attempt), y(scores[attempt].value)) for attempt in sorted(scores)], f"line {style}")
        for attempt, score in scores.items():
            fill = "filled" if score.whole else "hollow"
            told = f"{name}, attempt {attempt}: {score.value:.4f}"
            chosen = "cross" if score.closed else shape
            drawing.mark(x(attempt), y(score.value), chosen, f"{style} {fill}", told)
        at = _TOP + 10 + 22 * number
        drawing.line(right + 12, at, right + 36, at, f"line {style}")
        drawing.mark(right + 24, at, shape, f"{style} filled")
        drawing.text(right + 44, at + 4, fitting(name, _LEGEND - 50))
    return drawing.markup()


def _some(attempts: Sequence[int]) -> list[int]:
    """The attempts that are named: all of them, or every so many."""
    step = -(-len(attempts) // 12)
    return list(attempts[::step])
