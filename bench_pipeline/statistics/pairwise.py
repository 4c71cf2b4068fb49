"""Strengths from who beat whom: Bradley and Terry's model for pairwise judges.

What belongs here: the maximum-likelihood fit and the test whether it exists. What does not: how judges are
asked or blinded. Reference: Ford 1957, Am. Math. Monthly 64:28 (existence); Hunter 2004, Ann. Stat. 32:384.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_STEPS = 200
_TOLERANCE = 1e-12


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
    fitted = _fit(wins)
    values = {name: float(fitted[index]) for name, index in place.items()}
    return Strengths(
        values, f"Bradley-Terry maximum likelihood, n={judged} comparisons, ties half a win", judged
    )


def _fit(wins: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Newton's method with halved steps on the concave log-likelihood; the sum is held at zero."""
    games = wins + wins.T
    won = wins.sum(axis=1)
    strengths = np.zeros(len(wins))
    best = _log_likelihood(wins, strengths)
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
        gradient = won - (games * chance).sum(axis=1)
        weight = games * chance * (1 - chance)
        curvature = np.diag(weight.sum(axis=1)) - weight
        # Adding a constant to all strengths changes nothing; the matrix of ones pins their sum.
        step = np.linalg.solve(curvature + 1.0, gradient)
        scale = 1.0
        while scale > _TOLERANCE and _log_likelihood(wins, strengths + scale * step) < best:
            scale /= 2
        strengths = strengths + scale * step
        best = _log_likelihood(wins, strengths)
        if float(np.abs(step).max()) < _TOLERANCE or scale <= _TOLERANCE:
            break
    return np.asarray(strengths - strengths.mean(), dtype=np.float64)


def _log_likelihood(wins: npt.NDArray[np.float64], strengths: npt.NDArray[np.float64]) -> float:
    return -float((wins * np.logaddexp(0.0, strengths[None, :] - strengths[:, None])).sum())
