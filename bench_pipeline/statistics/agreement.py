"""How well judges agree beyond chance.

What belongs here: Cohen's kappa for two raters, Krippendorff's alpha for any number with gaps, both on
nominal categories. What does not: the judges. Reference: Cohen 1960; Krippendorff 2004, Content Analysis,
chapter 11.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Agreement:
    """A coefficient (1 is perfect, 0 is chance), None where it is undefined, with the n behind it."""

    value: float | None
    units: int
    method: str


def cohen_kappa(first: Sequence[Hashable | None], second: Sequence[Hashable | None]) -> Agreement:
    """Kappa over the units that both raters rated; None is a gap.

    Undefined without such units, and when both raters gave one and the same category throughout.

    Raises:
        ValueError: the raters were asked about different numbers of units.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} ratings against {len(second)}: both raters need the same units")
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    method = f"Cohen kappa n={len(pairs)} units"
    if not pairs:
        return Agreement(None, 0, method)
    left, right = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    count = len(pairs)
    seen = Fraction(sum(a == b for a, b in pairs), count)
    expected = Fraction(sum(left[category] * right[category] for category in left), count * count)
    value = None if expected == 1 else float((seen - expected) / (1 - expected))
    return Agreement(value, count, method)


def krippendorff_alpha(ratings: Sequence[Sequence[Hashable | None]]) -> Agreement:
    """Nominal alpha; ``ratings`` holds one sequence per rater over the same units, None is a gap.

    Units with fewer than two ratings cannot be paired and drop out. Undefined when nothing can be paired or
    all paired ratings are one category.

    Raises:
        ValueError: the raters were asked about different numbers of units.
    """
    if len({len(row) for row in ratings}) > 1:
        raise ValueError("every rater needs one entry per unit; use None for a gap")
    units = [[value for value in column if value is not None] for column in zip(*ratings, strict=True)]
    paired = [unit for unit in units if len(unit) > 1]
    totals: Counter[Hashable] = Counter(value for unit in paired for value in unit)
    values = totals.total()
    method = f"Krippendorff alpha, nominal, n={len(paired)} units, {values} ratings"
    disagreements = Fraction(0)
    for unit in paired:
        same = sum(size * (size - 1) for size in Counter(unit).values())
        disagreements += Fraction(len(unit) * (len(unit) - 1) - same, len(unit) - 1)
    chance = values * (values - 1) - sum(size * (size - 1) for size in totals.values())
    if chance == 0:
        return Agreement(None, len(paired), method)
    return Agreement(float(1 - disagreements * (values - 1) / chance), len(paired), method)
