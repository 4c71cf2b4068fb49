"""Rates with their intervals, one below the other on one axis."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from bench_pipeline.reports.plots.drawing import Drawing, fitting
from bench_pipeline.reports.plots.scale import Scale

_WIDTH, _NAMES, _BESIDE, _ROW, _TOP, _FOOT = 720.0, 250.0, 130.0, 26.0, 14.0, 34.0


@dataclass(frozen=True)
class Rate:
    """One row: a share of 0..1 with its interval, each None where it is unknown, and a text beside it."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    beside: str = ""


def interval_plot(
    key: str, rates: Sequence[Rate], *, title: str, description: str, middle: float | None = None
) -> Markup:
    """Rates in the given order; ``middle`` is a value that is marked across all of them."""
    bottom = _TOP + _ROW * len(rates)
    drawing = Drawing(key, _WIDTH, bottom + _FOOT, title, description)
    across = Scale(0.0, 1.0, _NAMES + 8, _WIDTH - _BESIDE - 14)
    for tick in across.ticks():
        drawing.line(across(tick), _TOP, across(tick), bottom, "grid")
        drawing.text(across(tick), bottom + 18, f"{tick:.0%}", "tick", "middle")
    if middle is not None:
        drawing.line(across(middle), _TOP, across(middle), bottom, "middle")
    for place, rate in enumerate(rates):
        y = _TOP + _ROW * (place + 0.5)
        drawing.text(_NAMES - 4, y + 4, fitting(rate.name, _NAMES), "label", "end")
        drawing.text(_WIDTH - _BESIDE, y + 4, fitting(rate.beside, _BESIDE), "tick")
        if rate.low is not None and rate.high is not None:
            left, right = across(rate.low), across(rate.high)
            drawing.line(left, y, right, y, "interval")
            for end in (left, right):
                drawing.line(end, y - 5, end, y + 5, "interval")
        if rate.value is None:
            drawing.text(across(0.5), y + 4, "unknown", "tick", "middle")
        else:
            drawing.mark(across(rate.value), y, "circle", "filled", f"{rate.name}: {rate.value:.1%}")
    return drawing.markup()
