"""Ranks by score, and how firmly they stand.

What belongs here: ranks with ties, and the bootstrap band of each rank. What does not: which setups may be
ranked and over which tasks (``pipeline``). Everything is exact in whole numbers, so ties are ties.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bench_pipeline.statistics.bootstrap import RESAMPLES, SEED, resampled_sums

# Sums of whole numbers in float64 are exact below this.
_EXACT = 2**53


@dataclass(frozen=True)
class RankBands:
    """The 2.5 to 97.5 % interval of every rank under resampled tasks, and how it was made."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    method: str


def competition_ranks(scores: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Ranks along the last axis: 1 + how many score strictly more, so equal scores share a rank."""
    above = scores[..., None, :] > scores[..., :, None]
    return np.asarray(above.sum(axis=-1) + 1, dtype=np.int64)


def whole_scores(
    passed: npt.NDArray[np.int64], attempts: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], int]:
    """Task scores passed / attempts as whole numbers over one common denominator.

    Args:
        passed: passes per setup and task, shape (setups, tasks).
        attempts: measured attempts, same shape, none of them 0.

    Returns:
        The numerators, same shape, and the denominator. Where the exact denominator would be too large to add
        up exactly, scores are rounded to a fixed one of 2**40 / tasks.
    """
    denominator = math.lcm(*(int(count) for count in np.unique(attempts))) if attempts.size else 1
    tasks = attempts.shape[-1]
    if denominator * max(1, tasks) < _EXACT:
        return passed * (denominator // attempts), denominator
    denominator = 2**40 // max(1, tasks)
    return np.asarray(np.rint(passed / attempts * denominator), dtype=np.int64), denominator


def rank_bands(
    scores: npt.NDArray[np.int64], *, seed: int = SEED, resamples: int = RESAMPLES
) -> RankBands | None:
    """The band of every setup's rank: tasks are drawn anew with replacement and the setups ranked again.

    Args:
        scores: whole-number scores, shape (setups, tasks), as from ``whole_scores``; the order of the tasks
            is part of the random draw, so give them sorted.
        seed: of the random generator.
        resamples: how many times.

    Returns:
        None for fewer than two tasks, where resampling has nothing to say. A band always holds the rank
        itself.
    """
    setups, tasks = scores.shape
    if tasks < 2 or setups == 0:
        return None
    drawn = []
    for sums in resampled_sums(scores.T.astype(np.float64), seed=seed, resamples=resamples):
        whole = np.asarray(np.rint(sums), dtype=np.int64)
        drawn.append(
            np.stack([(whole > whole[:, [setup]]).sum(axis=1) + 1 for setup in range(setups)], axis=1)
        )
    rank = competition_ranks(scores.sum(axis=1))
    low, high = np.percentile(np.concatenate(drawn), [2.5, 97.5], axis=0, method="inverted_cdf")
    return RankBands(
        tuple(int(value) for value in np.minimum(low, rank)),
        tuple(int(value) for value in np.maximum(high, rank)),
        f"rank band: bootstrap of {tasks} tasks, {resamples} resamples, seed {seed}",
    )
