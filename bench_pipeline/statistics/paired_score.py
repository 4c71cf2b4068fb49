"""Score intervals of the difference of two paired proportions.

What belongs here: Tango's score statistic, its asymptotic interval, and the exact unconditional interval that
inverts it. What does not: when to use which (docs/decisions/0003-paired-intervals.md). References: Tango
1998, Stat. Med. 17:891; Tang, Tang and Chan 2005, Stat. Med. 24:3565.
"""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from bench_pipeline.statistics.intervals import CONFIDENCE, Interval, normal_quantile

# The exact interval looks at n^2 / 2 outcomes for every point of two grids; beyond this the asymptotic one
# is within 0.01 of it and costs nothing.
EXACT_TASKS = 30
_DELTAS = 200
_NUISANCE = 101
_HALVINGS = 40

Floats = npt.NDArray[np.float64]


def score_interval_paired(only_a: int, only_b: int, tasks: int, confidence: float = CONFIDENCE) -> Interval:
    """The interval of P(a passes) - P(b passes) over paired tasks.

    Args:
        only_a: tasks that only a passed.
        only_b: tasks that only b passed.
        tasks: all tasks, at least 1.
        confidence: two-sided level; each end has half of what is left.

    Raises:
        ValueError: counts that do not fit into ``tasks``.
    """
    if only_a < 0 or only_b < 0 or only_a + only_b > tasks or tasks < 1:
        raise ValueError(f"{only_a} and {only_b} discordant of {tasks} tasks make no sense")
    upper = _exact_upper if tasks <= EXACT_TASKS else _asymptotic_upper
    name = "exact unconditional score interval" if tasks <= EXACT_TASKS else "score interval"
    high = upper(only_a, only_b, tasks, confidence)
    # Swapping the setups mirrors the problem.
    low = -upper(only_b, only_a, tasks, confidence)
    return Interval(low, high, f"{name} (Tango statistic) n={tasks} tasks")


def score_statistic(only_a: Floats, only_b: Floats, tasks: int, delta: float) -> Floats:
    """Tango's z of outcomes against a true difference ``delta``, with the nuisance at its likeliest value."""
    quadratic = 2.0 * tasks
    linear = -only_a - only_b + (2 * tasks - only_a + only_b) * delta
    constant = -only_b * delta * (1 - delta)
    root = np.sqrt(np.maximum(0.0, linear * linear - 4 * quadratic * constant))
    nuisance = np.maximum((root - linear) / (2 * quadratic), max(0.0, -delta))
    variance = tasks * (2 * nuisance + delta * (1 - delta))
    gap = only_a - only_b - tasks * delta
    with np.errstate(divide="ignore", invalid="ignore"):
        z = gap / np.sqrt(np.maximum(variance, 0.0))
    # An outcome that is certain under delta, variance and gap both zero, does not speak against it.
    return np.where(np.abs(gap) < 1e-12, 0.0, z)


def _asymptotic_upper(only_a: int, only_b: int, tasks: int, confidence: float) -> float:
    if only_a == tasks:
        return 1.0
    z = normal_quantile((1 - confidence) / 2)
    inside, outside = (only_a - only_b) / tasks, 1.0
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if float(score_statistic(np.array(only_a * 1.0), np.array(only_b * 1.0), tasks, middle)) >= -z:
            inside = middle
        else:
            outside = middle
    return outside


@lru_cache(maxsize=4096)
def _exact_upper(only_a: int, only_b: int, tasks: int, confidence: float) -> float:
    if only_a == tasks:
        return 1.0
    tail = (1 - confidence) / 2
    estimate = (only_a - only_b) / tasks
    # The worst-case p-value is not monotone in delta: walk in from 1, so that the outermost limit is found.
    step = (1.0 - estimate) / _DELTAS
    inside = next(
        1.0 - place * step
        for place in range(1, _DELTAS + 1)
        if place == _DELTAS or _worst_p(only_a, only_b, tasks, 1.0 - place * step) > tail
    )
    outside = inside + step
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if _worst_p(only_a, only_b, tasks, middle) > tail:
            inside = middle
        else:
            outside = middle
    return outside


def _worst_p(only_a: int, only_b: int, tasks: int, delta: float) -> float:
    """The largest chance, over the nuisance, of an outcome at least as far below ``delta`` as this one."""
    from scipy import special

    a, b, ways = _outcomes(tasks)
    observed = float(score_statistic(np.array(only_a * 1.0), np.array(only_b * 1.0), tasks, delta))
    extreme = score_statistic(a, b, tasks, delta) <= observed + 1e-9
    chance_b = np.linspace(max(0.0, -delta), (1 - delta) / 2, _NUISANCE)[:, None]
    chance_a = np.maximum(chance_b + delta, 0.0)
    rest = np.maximum(1 - chance_a - chance_b, 0.0)
    few_a, few_b, few_ways = a[extreme], b[extreme], ways[extreme]
    logs = (
        few_ways
        + special.xlogy(few_a, chance_a)
        + special.xlogy(few_b, chance_b)
        + special.xlogy(tasks - few_a - few_b, rest)
    )
    return float(np.exp(logs).sum(axis=1).max())


@lru_cache(maxsize=64)
def _outcomes(tasks: int) -> tuple[Floats, Floats, Floats]:
    """Every pair of discordant counts, and the logarithm of how many ways there are to each."""
    from scipy import special

    grid_a, grid_b = np.meshgrid(np.arange(tasks + 1.0), np.arange(tasks + 1.0))
    possible = grid_a + grid_b <= tasks
    a, b = grid_a[possible], grid_b[possible]
    ways = (
        math.lgamma(tasks + 1)
        - special.gammaln(a + 1)
        - special.gammaln(b + 1)
        - special.gammaln(tasks - a - b + 1)
    )
    return a, b, ways
