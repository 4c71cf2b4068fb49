"""From values to places on a picture, and where the ticks of an axis are; no drawing here."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

_TICKS = 5
# Values that differ by more than this share one linear axis badly.
_WIDE = 20.0


@dataclass(frozen=True)
class Scale:
    """Maps ``low``..``high`` to ``start``..``end``; by the logarithm of values where ``log``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The place of a value, rounded to what can be seen."""
        low, high, at = (
            (math.log10(x) for x in (self.low, self.high, value))
            if self.log
            else (
                self.low,
                self.high,
                value,
            )
        )
        share = 0.5 if high == low else (at - low) / (high - low)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        """A few round values within the scale."""
        if self.log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            steps = (1, 2, 5) if len(decades) <= _TICKS - 2 else (1,)
            found = [step * 10.0**decade for decade in decades for step in steps]
        else:
            step = _round_step((self.high - self.low) / _TICKS)
            first = math.ceil(self.low / step - 1e-9)
            found = [number * step for number in range(first, math.floor(self.high / step + 1e-9) + 1)]
        return [value for value in found if self.low * (1 - 1e-9) <= value <= self.high * (1 + 1e-9)]


def scale_from_zero(values: Iterable[float], start: float, end: float) -> Scale:
    """A scale over amounts: from zero, or by logarithm where all are positive and they lie far apart."""
    known = list(values)
    least, most = min(known), max(known)
    if least > 0 and most / least >= _WIDE:
        return Scale(least / 1.5, most * 1.5, start, end, log=True)
    return Scale(0.0, most * 1.1 if most > 0 else 1.0, start, end)


def _round_step(rough: float) -> float:
    """The nearest step of 1, 2 or 5 times a power of ten that is no smaller."""
    magnitude = 10.0 ** math.floor(math.log10(rough))
    return next(step * magnitude for step in (1, 2, 5, 10) if step * magnitude >= rough * (1 - 1e-9))
