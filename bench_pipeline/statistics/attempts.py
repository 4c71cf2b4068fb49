"""What several attempts at the same tasks say: pass@k and pass^k.

What belongs here: the unbiased estimators per task and their mean over tasks. What does not: how attempts are
counted (``pipeline``). Reference: Chen et al. 2021, arXiv:2107.03374; Yao et al. 2024, arXiv:2406.12045.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import comb


@dataclass(frozen=True)
class TaskMean:
    """A mean over tasks: the value, how many tasks are in it, and the tasks that have too few attempts."""

    value: float | None
    tasks: int
    left_out: tuple[str, ...]


def pass_at_k(attempts: int, passed: int, k: int) -> float | None:
    """The chance that at least one of ``k`` attempts passes, estimated from ``passed`` of ``attempts``.

    None when there are fewer than ``k`` attempts.

    Raises:
        ValueError: k below 1, or more passes than attempts.
    """
    value = _at_least_one(attempts, passed, k)
    return None if value is None else float(value)


def pass_hat_k(attempts: int, passed: int, k: int) -> float | None:
    """The chance that all of ``k`` attempts pass (pass^k); None and errors as in ``pass_at_k``."""
    value = _all_of(attempts, passed, k)
    return None if value is None else float(value)


def mean_pass_at_k(counts: Mapping[str, tuple[int, int]], k: int) -> TaskMean:
    """The mean over tasks of pass@k; ``counts`` maps a task to (attempts, passed)."""
    return _task_mean(counts, k, _at_least_one)


def mean_pass_hat_k(counts: Mapping[str, tuple[int, int]], k: int) -> TaskMean:
    """The mean over tasks of pass^k; ``counts`` maps a task to (attempts, passed)."""
    return _task_mean(counts, k, _all_of)


def _at_least_one(attempts: int, passed: int, k: int) -> Fraction | None:
    if not _enough(attempts, passed, k):
        return None
    return 1 - Fraction(comb(attempts - passed, k), comb(attempts, k))


def _all_of(attempts: int, passed: int, k: int) -> Fraction | None:
    if not _enough(attempts, passed, k):
        return None
    return Fraction(comb(passed, k), comb(attempts, k))


def _enough(attempts: int, passed: int, k: int) -> bool:
    if k < 1 or not 0 <= passed <= attempts:
        raise ValueError(f"{passed} passes in {attempts} attempts with k={k} make no sense")
    return attempts >= k


def _task_mean(
    counts: Mapping[str, tuple[int, int]], k: int, estimate: Callable[[int, int, int], Fraction | None]
) -> TaskMean:
    total, tasks, short = Fraction(0), 0, set()
    for (attempts, passed), repeats in Counter(counts.values()).items():
        value = estimate(attempts, passed, k)
        if value is None:
            short.add((attempts, passed))
        else:
            total += value * repeats
            tasks += repeats
    left_out = tuple(sorted(task for task, count in counts.items() if count in short))
    return TaskMean(float(total / tasks) if tasks else None, tasks, left_out)
