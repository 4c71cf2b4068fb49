"""Sums of quantities of which some are unknown, and exact sums of many runs of values at once.

What belongs here: totals that never treat unknown as zero and never depend on the order of what is added. What does
not: prices (``registry``).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Whole numbers up to two to this power are exact in a double.
_EXACT_BITS = 53
# Powers of two nearer to 1 than this one are doubles, and so are their inverses.
_FAR = 1000


@dataclass(frozen=True)
class Total:
    """The sum over the known values (None when none is known), and how many are known and unknown."""

    known_sum: float | None
    known: int
    unknown: int

    @property
    def complete(self) -> float | None:
        """The sum when nothing is unknown, else None: what may be ranked or compared."""
        return self.known_sum if self.unknown == 0 else None


def total(values: Iterable[float | None]) -> Total:
    """Add up exactly; None is unknown.

    Raises:
        ValueError: a NaN or an infinity, which is a defect of whoever wrote it and never a quantity.
    """
    items = list(values)
    known = [value for value in items if value is not None]
    if not all(math.isfinite(value) for value in known):
        raise ValueError("a total holds a value that is not finite; unknown is None")
    return Total(math.fsum(known) if known else None, len(known), len(items) - len(known))


def segment_sums(
    values: "npt.NDArray[np.float64]", starts: "npt.NDArray[np.int64]"
) -> "npt.NDArray[np.float64]":
    """The sum of each run of values, rounded once, as ``math.fsum`` gives it; no order of a run changes it.

    ``starts`` are the rising places at which runs begin, the first at 0. Each value is cut into digits of so many
    bits that a run's digits add up exactly; the sums of a run's digits are then put together.

    Raises:
        ValueError: a value that is negative, infinite or not a number.
    """
    import numpy as np

    if not len(values):
        return np.zeros(0)
    largest = float(values.max())
    if not (values.min() >= 0 and largest < math.inf):
        raise ValueError("a sum holds a value that is negative or not finite")
    longest = int(np.diff(starts, append=len(values)).max())
    bits = _EXACT_BITS - longest.bit_length()
    digits: list[npt.NDArray[np.float64]] = []
    exponent = math.frexp(largest)[1]
    rest, digit = values.copy(), np.empty_like(values)
    while rest.any():
        exponent -= bits
        # A power of two scales exactly, and taking a digit away is exact too.
        _scale(rest, -exponent, digit)
        np.floor(digit, out=digit)
        digits.append(np.ldexp(np.add.reduceat(digit, starts), exponent))
        _scale(digit, exponent, digit)
        rest -= digit
    if not digits:
        return np.zeros(len(starts))
    return np.array([math.fsum(own) for own in zip(*(column.tolist() for column in digits), strict=True)])


def _scale(values: "npt.NDArray[np.float64]", exponent: int, out: "npt.NDArray[np.float64]") -> None:
    """Multiply by a power of two, also by one that is no double."""
    import numpy as np

    if abs(exponent) < _FAR:
        np.multiply(values, 2.0**exponent, out=out)
    else:
        np.ldexp(values, exponent, out=out)
