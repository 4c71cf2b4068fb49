"""What a planned evaluation could show before it is paid for.

What belongs here: the relation between tasks, attempts and the smallest difference seen at a given power.
What does not: plans of cells (``pipeline``). Reference: Miller 2024, arXiv:2411.00640, section on power.
"""

import math
from dataclasses import dataclass

from bench_pipeline.statistics.intervals import normal_quantile

ALPHA = 0.05
POWER = 0.80
# Score chances spread evenly over 0..1 give a chance p(1-p) inside a task that averages 1/6; 1/9 is the
# variance between tasks of the difference for two such setups that agree moderately.
ASSUMED_WITHIN = 1 / 6
ASSUMED_BETWEEN = 1 / 9


@dataclass(frozen=True)
class Detectable:
    """The smallest difference that would be seen, or None when not even a difference of 1 would be.

    ``assumptions`` says in words which variances, level and power are behind it; ``method`` names the
    formula.
    """

    difference: float | None
    tasks: int
    attempts_a: int
    attempts_b: int
    assumptions: str
    method: str = "normal power formula for paired tasks"


def detectable_difference(
    tasks: int,
    attempts: int = 1,
    attempts_b: int | None = None,
    *,
    between: float | None = None,
    within_a: float | None = None,
    within_b: float | None = None,
    alpha: float = ALPHA,
    power: float = POWER,
) -> Detectable:
    """The smallest difference in pass rate that ``tasks`` tasks with ``attempts`` attempts each could show.

    Args:
        tasks: tasks that both setups would measure.
        attempts: attempts per task, of the first setup and, without ``attempts_b``, of both.
        attempts_b: attempts per task of the second setup.
        between: variance over tasks of the difference of the two setups' chances; None: an assumption.
        within_a: mean variance of one attempt's score inside a task, first setup; None: an assumption.
        within_b: the same for the second setup.
        alpha: two-sided level.
        power: chance of seeing a difference of the size that is returned.
    """
    second = attempts if attempts_b is None else attempts_b
    variance = _variance(attempts, second, between, within_a, within_b)
    value = math.sqrt(_quantiles(alpha, power) * variance / tasks) if tasks > 0 else math.inf
    assumed = None in (between, within_a, within_b)
    inside = [f"{_or(value, ASSUMED_WITHIN):.4g}" for value in (within_a, within_b)]
    text = (
        f"two-sided level {alpha:g}, power {power:.0%}, variance of the difference between tasks "
        f"{_or(between, ASSUMED_BETWEEN):.4g}, of an attempt inside a task {inside[0]} and {inside[1]}"
    )
    text += " (assumed where no earlier measurement is known)" if assumed else ""
    return Detectable(value if value <= 1 else None, tasks, attempts, second, text)


def tasks_needed(
    difference: float,
    attempts: int = 1,
    attempts_b: int | None = None,
    *,
    between: float | None = None,
    within_a: float | None = None,
    within_b: float | None = None,
    alpha: float = ALPHA,
    power: float = POWER,
) -> int:
    """How many tasks it takes to see ``difference`` (0 < difference <= 1); arguments as above.

    Raises:
        ValueError: a difference outside that range.
    """
    if not 0 < difference <= 1:
        raise ValueError(f"a difference of {difference} is outside 0..1")
    second = attempts if attempts_b is None else attempts_b
    variance = _variance(attempts, second, between, within_a, within_b)
    return math.ceil(_quantiles(alpha, power) * variance / difference**2)


def _or(value: float | None, assumed: float) -> float:
    return assumed if value is None else value


def _quantiles(alpha: float, power: float) -> float:
    return (normal_quantile(alpha / 2) + normal_quantile(1 - power)) ** 2


def _variance(
    attempts_a: int, attempts_b: int, between: float | None, within_a: float | None, within_b: float | None
) -> float:
    if attempts_a < 1 or attempts_b < 1:
        raise ValueError("a setup needs at least one attempt per task")
    noise = _or(within_a, ASSUMED_WITHIN) / attempts_a + _or(within_b, ASSUMED_WITHIN) / attempts_b
    return _or(between, ASSUMED_BETWEEN) + noise
