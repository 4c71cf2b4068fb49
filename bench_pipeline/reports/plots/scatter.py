"""Cost against pass rate, with the line along those that nobody beats in both."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from bench_pipeline.reports.plots.drawing import Drawing, fitting
from bench_pipeline.reports.plots.scale import Scale, scale_from_zero

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _FOOT = 720.0, 330.0, 62.0, 24.0, 16.0, 52.0
_LINE, _LABEL = 15.0, 240.0


@dataclass(frozen=True)
class Point:
    """A setup: what one cell costs, its pass rate with the interval, and whether nobody beats it in both."""

    name: str
    cost: float
    rate: float
    low: float | None
    high: float | None
    on_front: bool


def scatter_plot(key: str, points: Sequence[Point], *, title: str, description: str, x_label: str) -> Markup:
    """The points with their names; those on the front are filled diamonds on a line, the others hollow circles."""
    drawing = Drawing(key, _WIDTH, _HEIGHT, title, description)
    bottom = _HEIGHT - _FOOT
    x = scale_from_zero([point.cost for point in points], _LEFT, _WIDTH - _RIGHT)
    y = Scale(0.0, 1.0, bottom, _TOP)
    _axes(drawing, x, y, bottom, x_label)
    front = sorted((point for point in points if point.on_front), key=lambda point: (point.cost, point.rate))
    drawing.path(_steps([(x(point.cost), y(point.rate)) for point in front]), "front")
    for point in points:
        if point.low is not None and point.high is not None:
            drawing.line(x(point.cost), y(point.low), x(point.cost), y(point.high), "error")
    for point in points:
        shape, style = ("diamond", "filled") if point.on_front else ("circle", "hollow")
        told = f"{point.name}: {point.cost:.4g} USD, {point.rate:.1%}"
        drawing.mark(x(point.cost), y(point.rate), shape, style, told)
    _names(drawing, [(x(point.cost), y(point.rate), point.name) for point in points], bottom)
    return drawing.markup()


def _axes(drawing: Drawing, x: Scale, y: Scale, bottom: float, x_label: str) -> None:
    for tick in y.ticks():
        drawing.line(_LEFT, y(tick), _WIDTH - _RIGHT, y(tick), "grid")
        drawing.text(_LEFT - 8, y(tick) + 4, f"{tick:.0%}", "tick", "end")
    for tick in x.ticks():
        drawing.line(x(tick), bottom, x(tick), bottom + 5, "axis")
        drawing.text(x(tick), bottom + 19, f"{tick:.4g}", "tick", "middle")
    drawing.line(_LEFT, bottom, _WIDTH - _RIGHT, bottom, "axis")
    across = f"{x_label}{', logarithmic' if x.log else ''}"
    drawing.text((_LEFT + _WIDTH - _RIGHT) / 2, bottom + 40, across, "tick", "middle")


def _steps(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The line of what is to be had: a better rate only from where it is paid for."""
    line: list[tuple[float, float]] = []
    for x, y in points:
        line += [(x, line[-1][1])] if line else []
        line.append((x, y))
    return line


def _names(drawing: Drawing, places: list[tuple[float, float, str]], bottom: float) -> None:
    """Names beside their points, moved down where they would lie on each other."""
    for left in (True, False):
        lowest = -_LINE
        for x, y, name in sorted(places, key=lambda place: (place[1], place[2])):
            if (x > _WIDTH / 2) is not left:
                continue
            at = max(y - 8, lowest + _LINE)
            lowest = at
            if at <= bottom - 2:
                drawing.text(
                    x - 10 if left else x + 10, at, fitting(name, _LABEL), "label", "end" if left else "start"
                )
