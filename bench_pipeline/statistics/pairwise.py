"""Strengths from who beat whom: Bradley and Terry's model for pairwise judges.

What belongs here: the maximum-likelihood fit, of one table or many, and the test whether it exists. What does
not: how judges are asked or blinded. References: Ford 1957, Am. Math. Monthly 64:28 (existence);
Hunter 2004, Ann. Stat. 32:384.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_STEPS = 200
_TOLERANCE = 1e-12
_SMALL = 1e-6
_HALVINGS = 40

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Strengths:
    """Log-strengths that sum to zero, by name; None and a reason when the data do not identify them."""

    values: Mapping[str, float] | None
    method: str
    comparisons: int


def bradley_terry(results: Iterable[tuple[str, str, float, float, float]]) -> Strengths:
    """Fit strengths to (left, right, wins of left, wins of right, ties); a tie is half a win for each.

    The likelihood has a maximum only when every contestant can be reached from every other along "has beaten
    at least once"; otherwise a strength would run off to infinity and "not identified" is the answer.

    Raises:
        ValueError: negative counts, or a contestant against itself.
    """
    rows = sorted(results)
    names = sorted({name for left, right, *_ in rows for name in (left, right)})
    place = {name: index for index, name in enumerate(names)}
    wins = np.zeros((len(names), len(names)))
    for left, right, won, lost, tied in rows:
        if left == right or min(won, lost, tied) < 0:
            raise ValueError(f"{left!r} against {right!r} with {won}, {lost}, {tied} is no comparison")
        wins[place[left], place[right]] += won + tied / 2
        wins[place[right], place[left]] += lost + tied / 2
    judged = round(float(wins.sum()))
    if len(names) < 2:
        return Strengths(None, "not identified: fewer than two contestants", judged)
    # Imported here: only this function needs it, and it takes longer to load than all of the rest.
    from scipy.sparse.csgraph import connected_components

    groups, _ = connected_components((wins > 0).astype(np.int8), directed=True, connection="strong")
    if groups > 1:
        reason = (
            f"not identified: {groups} groups of contestants without wins in both directions between them"
        )
        return Strengths(None, reason, judged)
    fitted = _fit(wins[None])[0]
    values = {name: float(fitted[index]) for name, index in place.items()}
    return Strengths(
        values, f"Bradley-Terry maximum likelihood, n={judged} comparisons, ties half a win", judged
    )


def fit_many(wins: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Strengths of many tables of wins at once, and which of the tables identify them.

    Args:
        wins: shape (tables, contestants, contestants): how often the row beat the column, ties half.

    Returns:
        Strengths of shape (tables, contestants), NaN where a table does not identify them, and a mask of those that do.
    """
    identified = _strongly_connected(wins > 0)
    strengths = np.full(wins.shape[:2], np.nan)
    if identified.any():
        strengths[identified] = _fit(wins[identified])
    return strengths, identified


def _strongly_connected(beaten: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """For each table, whether every contestant reaches every other along "has beaten"."""
    count = beaten.shape[-1]
    reach = (beaten | np.eye(count, dtype=bool)).astype(np.float32)
    for _ in range(max(1, count - 1).bit_length()):
        reach = np.minimum(reach @ reach, 1.0)
    return np.asarray((reach > 0).all(axis=(1, 2)))


def _fit(wins: Floats) -> Floats:
    """Newton's method on each concave log-likelihood until every table's step is nothing; strengths sum to zero."""
    strengths = np.zeros(wins.shape[:2])
    moving = np.arange(len(wins))
    for _ in range(_STEPS):
        step = _step(wins[moving], strengths[moving])
        strengths[moving] += step
        moving = moving[np.abs(step).max(axis=1) >= _TOLERANCE]
        if not len(moving):
            break
    return np.asarray(strengths - strengths.mean(axis=1, keepdims=True), dtype=np.float64)


def _step(wins: Floats, strengths: Floats) -> Floats:
    """Newton's step from ``strengths``, halved until the likelihood is no worse; 0 where it can only be worse."""
    games = wins + wins.transpose(0, 2, 1)
    chance = 1 / (1 + np.exp(strengths[:, None, :] - strengths[:, :, None]))
    expected = games * chance
    weight = expected * (1 - chance)
    curvature = -weight
    diagonal = np.arange(wins.shape[1])
    curvature[:, diagonal, diagonal] += weight.sum(axis=2)
    gradient = wins.sum(axis=2) - expected.sum(axis=2)
    # Adding a constant to all strengths changes nothing; the matrix of ones pins their sum.
    step = np.linalg.solve(curvature + 1.0, gradient[:, :, None])[:, :, 0]
    # A step this small is the end, and rounding would call half of them worse.
    worse = np.flatnonzero(np.abs(step).max(axis=1) > _SMALL)
    best = _log_likelihood(wins[worse], strengths[worse])
    for _ in range(_HALVINGS):
        still = _log_likelihood(wins[worse], strengths[worse] + step[worse]) < best
        worse, best = worse[still], best[still]
        if not len(worse):
            return step
        step[worse] /= 2
    step[worse] = 0.0
    return step


def _log_likelihood(wins: Floats, strengths: Floats) -> Floats:
    gaps = strengths[:, None, :] - strengths[:, :, None]
    return np.asarray(-(wins * np.logaddexp(0.0, gaps)).sum(axis=(1, 2)))
