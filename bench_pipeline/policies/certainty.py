"""How sure one can be of a leaderboard: rates with intervals, and leads that the cases do not bear out.

What belongs here: statistics over the entries of one leaderboard. What does not: their order (``leaderboard``) and the
estimators themselves (``statistics``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from bench_pipeline.policies.entries import Entry
from bench_pipeline.policies.leaderboard import Leaderboard
from bench_pipeline.statistics.intervals import mean, score_interval, wilson
from bench_pipeline.statistics.multiplicity import holm
from bench_pipeline.statistics.paired import compare_scores

ALPHA = 0.05


def rows(board: Leaderboard, comparison: str | None = None) -> list[dict[str, object]]:
    """Rows of the table policy_leaderboard.

    The rate is over attempted cases: what the budget stopped is not wrong. Over several attempts each case is one
    value, the mean of its attempts.
    """
    return [
        {
            "comparison": comparison,
            "attempt": board.attempt,
            "rank": rank,
            "harness": entry.harness,
            "correct": entry.correct,
            "total": entry.total,
            "attempted": entry.attempted,
            "errors": entry.errors,
            "calls": entry.calls,
            "call_budget": entry.call_budget,
            "state": entry.state,
            **_rate(entry),
        }
        for rank, entry in zip(board.ranks, board.entries, strict=True)
    ]


def _rate(entry: Entry) -> Mapping[str, object]:
    if entry.attempts == 1:
        rate = entry.correct / entry.attempted if entry.attempted else None
        interval = wilson(entry.correct, entry.attempted)
    else:
        scores = list((entry.outcomes or {}).values())
        rate, interval = mean(scores), score_interval(scores)
    if interval is None:
        return {"rate": rate, "rate_low": None, "rate_high": None, "method": None}
    return {"rate": rate, "rate_low": interval.low, "rate_high": interval.high, "method": interval.method}


@dataclass(frozen=True)
class Lead:
    """One entry above another: over how many cases that both attempted, and whether these tell them apart."""

    above: Entry
    below: Entry
    shared: int
    p_holm: float | None
    method: str

    @property
    def distinguishable(self) -> bool:
        """Whether the shared cases alone would bear the lead out."""
        return self.p_holm is not None and self.p_holm < ALPHA

    @property
    def uneven(self) -> bool:
        """Whether the two attempted different numbers of cases."""
        return self.above.attempted != self.below.attempted


def leads(board: Leaderboard) -> list[Lead]:
    """Every pair of which one ranks above the other, corrected together; empty without traces."""
    ranked = zip(board.entries, board.ranks, strict=True)
    pairs = [(a, b) for (a, i), (b, j) in combinations(ranked, 2) if i < j]
    tests = [_test(a, b) for a, b in pairs]
    corrected = holm([p for _, p, _ in tests])
    return [
        Lead(a, b, shared, p, method)
        for (a, b), (shared, _, method), p in zip(pairs, tests, corrected, strict=True)
    ]


def _test(a: Entry, b: Entry) -> tuple[int, float | None, str]:
    if a.outcomes is None or b.outcomes is None:
        return 0, None, "no traces"
    shared = [case for case in a.outcomes if case in b.outcomes]
    result = compare_scores(
        [a.outcomes[case] for case in shared],
        [b.outcomes[case] for case in shared],
        single_attempts=a.attempts == 1,
    )
    return len(shared), result.p_value, result.method
