"""Two setups over the tasks that both measured.

What belongs here: the paired difference with its interval, exact McNemar, the sign-flip permutation test.
What does not: the exact score interval itself (``paired_score``), which tasks are shared (``pipeline``),
corrections for many pairs (``multiplicity``). Reference: docs/decisions/0003-paired-intervals.md.
"""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bench_pipeline.statistics.bootstrap import RESAMPLES, SEED
from bench_pipeline.statistics.intervals import CONFIDENCE, Interval, clustered_se, standard_error, t_interval
from bench_pipeline.statistics.paired_score import score_interval_paired

# With fewer tasks the distribution of the mean difference is too far from t.
MIN_TASKS = 10
# Enumerating this many sums takes milliseconds; beyond it the test draws at random.
_ENUMERABLE = 2**16
# Differences such as 1 - 2/3 and 1/3 are the same magnitude but for the last bits.
_DIGITS = 12


@dataclass(frozen=True)
class PairedDifference:
    """The mean of a - b over tasks, its standard error, and its interval where there is one.

    ``method`` names the interval, its n and, when there is none, why. ``interval`` and ``error`` are None
    when the data do not give them.
    """

    tasks: int
    difference: float | None
    error: float | None
    interval: Interval | None
    method: str


@dataclass(frozen=True)
class TestResult:
    """A p-value and how it was computed: the name, n, and the seed where chance was used."""

    __test__ = False

    p_value: float | None
    method: str


def paired_difference(
    a: Sequence[float],
    b: Sequence[float],
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = CONFIDENCE,
) -> PairedDifference:
    """The difference a - b over the same tasks, each score in 0..1.

    Args:
        a: one score per task.
        b: the scores of the other setup, in the same order of tasks.
        clusters: what each task shares with others (its repository); None when tasks are independent. A
            single cluster holds no information on how clusters differ: the tasks are then taken as
            independent, and the method says that the result is about that cluster.
        confidence: two-sided level of the interval.

    Returns:
        A t interval with n - 1 (clusters - 1) degrees of freedom; below ``MIN_TASKS`` tasks or at zero
        variance the exact score interval when every score is 0 or 1, else none.
    """
    if len(a) != len(b):
        raise ValueError(f"{len(a)} scores against {len(b)}: both setups need the same tasks")
    differences = [x - y for x, y in zip(a, b, strict=True)]
    count = len(differences)
    if count == 0:
        return PairedDifference(0, None, None, None, "none: no shared tasks")
    # The sums of each side are exact; their difference is not rounded twice per task.
    value = math.fsum([*a, *(-y for y in b)]) / count
    error, freedom, name = _error(differences, clusters)
    method = f"paired t, {name}, n={count} tasks"
    interval = t_interval(value, error, freedom, method, confidence)
    if count < MIN_TASKS or interval is None:
        why = f"fewer than {MIN_TASKS} tasks" if count < MIN_TASKS else "no variance"
        if not all(score in (0, 1) for score in (*a, *b)):
            return PairedDifference(count, value, error, None, f"no interval: {why}, n={count} tasks")
        flips = Counter(differences)
        interval = score_interval_paired(flips[1], flips[-1], count, confidence)
    interval = interval.clamped(-1.0, 1.0)
    return PairedDifference(count, value, error, interval, interval.method)


def _error(
    differences: Sequence[float], clusters: Sequence[Hashable] | None
) -> tuple[float | None, int, str]:
    count = len(differences)
    groups = count if clusters is None else len(set(clusters))
    if clusters is None or groups == count:
        return standard_error(differences), count - 1, "independent tasks"
    if groups == 1:
        return standard_error(differences), count - 1, "one repository"
    return clustered_se(differences, clusters), groups - 1, f"clustered by {groups} repositories"


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """The exact two-sided McNemar p-value for the counts of tasks that only one of two setups passed."""
    if only_a < 0 or only_b < 0:
        raise ValueError("counts of tasks are not negative")
    from scipy import special

    tail = float(special.bdtr(min(only_a, only_b), only_a + only_b, 0.5))
    return min(1.0, 2 * tail)


def sign_flip(differences: Sequence[float], *, seed: int = SEED, resamples: int = RESAMPLES) -> TestResult:
    """The two-sided sign-flip permutation test of a mean difference of zero over tasks.

    Tasks without a difference say nothing and equal magnitudes are exchangeable, so the sum over sign flips
    is counted per magnitude: all sums are enumerated while they are few, else ``resamples`` of them are
    drawn.
    """
    sizes = Counter(round(abs(d), _DIGITS) for d in differences)
    tasks, ties = len(differences), sizes.pop(0.0, 0)
    if tasks == 0:
        return TestResult(None, "none: no shared tasks")
    magnitudes = sorted(sizes.items())
    observed = abs(math.fsum(math.copysign(round(abs(d), _DIGITS), d) for d in differences))
    threshold = observed - 1e-9
    label = f"sign-flip n={tasks} tasks ({tasks - ties} differ)"
    if math.prod(size + 1 for _, size in magnitudes) <= _ENUMERABLE:
        return TestResult(_enumerate(magnitudes, threshold), f"{label}, exact enumeration")
    generator = np.random.default_rng(seed)
    sums = np.zeros(resamples)
    for magnitude, size in magnitudes:
        sums += magnitude * (2 * generator.binomial(size, 0.5, resamples) - size)
    hits = int((np.abs(sums) >= threshold).sum())
    # The observed assignment is one of the permutations, so p is never 0.
    return TestResult((hits + 1) / (resamples + 1), f"{label}, {resamples} permutations, seed {seed}")


def _enumerate(magnitudes: Sequence[tuple[float, int]], threshold: float) -> float:
    sums: npt.NDArray[np.float64] = np.zeros(1)
    chances: npt.NDArray[np.float64] = np.ones(1)
    for magnitude, size in magnitudes:
        heads = np.arange(size + 1)
        sums = np.add.outer(sums, magnitude * (2 * heads - size)).ravel()
        chances = np.multiply.outer(chances, _fair_coin(heads, size)).ravel()
    return min(1.0, math.fsum(chances[np.abs(sums) >= threshold].tolist()))


def _fair_coin(heads: npt.NDArray[np.int64], flips: int) -> npt.NDArray[np.float64]:
    """The chance of each number of heads in ``flips`` flips."""
    from scipy import special

    ways = special.gammaln(flips + 1) - special.gammaln(heads + 1) - special.gammaln(flips - heads + 1)
    return np.asarray(np.exp(ways - flips * math.log(2)), dtype=np.float64)


def compare_scores(
    a: Sequence[float],
    b: Sequence[float],
    *,
    single_attempts: bool,
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> TestResult:
    """Whether two setups differ: exact McNemar with one attempt per task, the sign-flip test otherwise."""
    if not a:
        return TestResult(None, "none: no shared tasks")
    differences = [x - y for x, y in zip(a, b, strict=True)]
    if not single_attempts:
        return sign_flip(differences, seed=seed, resamples=resamples)
    flips = Counter(differences)
    return TestResult(mcnemar_exact(flips[1], flips[-1]), f"exact McNemar n={len(a)} tasks")
