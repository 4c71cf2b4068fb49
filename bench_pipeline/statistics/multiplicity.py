"""Corrections for looking at many comparisons at once.

What belongs here: Holm's step-down (for claims) and Benjamini and Hochberg's step-up (for lists to look
into). What does not: the p-values themselves (``paired``). A None stays None and counts as no comparison.
"""

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p-values, in the order of the input; they bound the chance of any false claim."""
    return _adjusted(p_values, step_down=True)


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Benjamini and Hochberg's adjusted p-values, in the order of the input; they bound the false share."""
    return _adjusted(p_values, step_down=False)


def _adjusted(p_values: Sequence[float | None], *, step_down: bool) -> list[float | None]:
    known = [index for index, p in enumerate(p_values) if p is not None]
    raw = np.array([p for p in p_values if p is not None], dtype=np.float64)
    if raw.size and not (raw.min() >= 0 and raw.max() <= 1):
        raise ValueError("a p-value lies outside 0..1")
    order = np.argsort(raw, kind="stable")
    places = np.arange(raw.size)
    if step_down:
        scaled = np.maximum.accumulate(raw[order] * (raw.size - places))
    else:
        scaled = np.minimum.accumulate((raw[order] * raw.size / (places + 1))[::-1])[::-1]
    result: list[float | None] = [None] * len(p_values)
    for place, index in enumerate(order):
        result[known[int(index)]] = min(1.0, float(scaled[place]))
    return result
