"""Means, standard errors and confidence intervals of one sample.

What belongs here: Wilson intervals of proportions, t intervals of means, plain or clustered. What does not:
differences between two setups (``paired``). Reference: Wilson 1927; Miller 2024, arXiv:2411.00640.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95
# The point beyond which lies half of what that confidence leaves out, as scipy has it: nearly every interval takes
# it, and loading scipy for it would take longer than most commands.
_USUAL_TAIL, _USUAL_QUANTILE = (1 - CONFIDENCE) / 2, 1.959963984540054


@dataclass(frozen=True)
class Interval:
    """A confidence interval and the name of the method that gave it, with its n."""

    low: float
    high: float
    method: str

    def clamped(self, low: float, high: float) -> "Interval":
        """The same interval cut to what the quantity can be."""
        return Interval(max(self.low, low), min(self.high, high), self.method)


def normal_quantile(tail: float) -> float:
    """The point that a standard normal variable exceeds with chance ``tail``."""
    if tail == _USUAL_TAIL:
        return _USUAL_QUANTILE
    from scipy import special

    return -float(special.ndtri(tail))


def mean(values: Iterable[float]) -> float | None:
    """The mean by exact summation; None for no values."""
    items = list(values)
    return math.fsum(items) / len(items) if items else None


def wilson(successes: int, trials: int, confidence: float = CONFIDENCE) -> Interval | None:
    """Wilson's interval of a proportion, within 0..1; None without trials.

    Raises:
        ValueError: counts that are no proportion.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials is no proportion")
    if trials == 0:
        return None
    z = normal_quantile((1 - confidence) / 2)
    rate, shrink = successes / trials, 1 + z * z / trials
    centre = (rate + z * z / (2 * trials)) / shrink
    half = z / shrink * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials))
    # Rounding would leave the ends that are exactly 0 and 1 a hair off.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return Interval(low, high, f"wilson n={trials}")


def standard_error(values: Sequence[float]) -> float | None:
    """The standard error of the mean of independent values, sd / sqrt(n); None for n < 2."""
    return clustered_se(values, range(len(values)))


def clustered_se(values: Sequence[float], clusters: Sequence[Hashable] | range) -> float | None:
    """The standard error of a mean whose values are correlated inside clusters.

    ``sqrt(C/(C-1)) * (1/n) * sqrt(sum over clusters of (sum of deviations)^2)``; with every value a cluster
    of its own it is sd / sqrt(n). None for fewer than two values or clusters.

    Raises:
        ValueError: not one cluster per value.
    """
    if len(values) != len(clusters):
        raise ValueError(f"{len(values)} values but {len(clusters)} clusters")
    members: dict[Hashable, list[float]] = defaultdict(list)
    centre = mean(values)
    for value, cluster in zip(values, clusters, strict=True):
        members[cluster].append(value)
    if centre is None or len(members) < 2:
        return None
    # One exact sum per cluster, centre taken off n times at once: the order of the values cannot matter.
    squares = [math.fsum([*group, *[-centre] * len(group)]) ** 2 for group in members.values()]
    count = len(members)
    return math.sqrt(count / (count - 1)) * math.sqrt(math.fsum(squares)) / len(values)


def t_interval(
    centre: float, error: float | None, freedom: int, method: str, confidence: float = CONFIDENCE
) -> Interval | None:
    """``centre`` ± t * ``error`` with ``freedom`` degrees; None without an error or at zero variance."""
    if error is None or freedom < 1 or error <= 0:
        return None
    from scipy import special

    half = -float(special.stdtrit(freedom, (1 - confidence) / 2)) * error
    return Interval(centre - half, centre + half, method)


def score_interval(scores: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """The interval of a mean of task scores in 0..1, each the mean of several attempts: t over tasks.

    When every task scored 0, or every task scored 1, t has no variance to work with and Wilson over tasks is
    given instead; any other set of equal scores, and a single task, have no interval.
    """
    count = len(scores)
    centre = mean(scores)
    if centre is None or count < 2:
        return None
    if all(score == scores[0] for score in scores):
        if centre not in (0.0, 1.0):
            return None
        flat = wilson(round(centre) * count, count, confidence)
        return None if flat is None else Interval(flat.low, flat.high, f"wilson over tasks n={count}")
    error = standard_error(scores)
    interval = t_interval(centre, error, count - 1, f"clustered t over tasks n={count}", confidence)
    return None if interval is None else interval.clamped(0.0, 1.0)
