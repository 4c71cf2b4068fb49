"""Sums of quantities of which some are unknown.

What belongs here: the total that never treats unknown as zero. What does not: prices (``registry``).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass


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
