"""The report of one comparison: every pair's verdict, and what they add up to.

What belongs here: verdicts, counts, the win rate and its interval, their JSON and rows. What does not: how a verdict
comes about (``rubric``, ``live``) and how it is shown (``reports``).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from bench_pipeline.judging.blinding import side_of, swapped
from bench_pipeline.judging.pairing import Folder, pair
from bench_pipeline.judging.rubric import by_rubric
from bench_pipeline.statistics.intervals import Interval

Verdict = Literal["left", "right", "tie", "no_vote"]
RUBRIC = "rubric"


@dataclass(frozen=True)
class PairVerdict:
    """What was decided about one scenario, and by which rule.

    ``inconsistent``: the judge's answer changed with the order of the slots. ``None``: it was not asked twice.
    """

    scenario: str
    verdict: Verdict
    swapped: bool
    rule: str
    inconsistent: bool | None = None


@dataclass(frozen=True)
class Report:
    """All pairs of two folders, in scenario order."""

    left: str
    right: str
    judge: str
    seed: int
    verdicts: tuple[PairVerdict, ...]
    left_only: tuple[str, ...] = ()
    right_only: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @cached_property
    def _counts(self) -> Counter[str]:
        return Counter(item.verdict for item in self.verdicts)

    @property
    def pairs(self) -> int:
        """How many scenarios both sides have."""
        return len(self.verdicts)

    @property
    def left_wins(self) -> int:
        """Pairs that the left won."""
        return self._counts["left"]

    @property
    def right_wins(self) -> int:
        """Pairs that the right won."""
        return self._counts["right"]

    @property
    def ties(self) -> int:
        """Pairs without a winner, those included in which the order of the slots decided."""
        return self._counts["tie"]

    @property
    def no_votes(self) -> int:
        """Pairs about which the judge said nothing that can be read."""
        return self._counts["no_vote"]

    @property
    def inconsistent(self) -> int:
        """Pairs in which the answer changed with the order of the slots."""
        return sum(item.inconsistent is True for item in self.verdicts)

    @property
    def flip_rate(self) -> float | None:
        """Of the pairs judged in both orders, the share whose answer changed; None where there is none."""
        asked = sum(item.inconsistent is not None for item in self.verdicts)
        return self.inconsistent / asked if asked else None

    @property
    def voted(self) -> float:
        """The share of pairs with a vote; 1 without pairs."""
        return 1 - self.no_votes / self.pairs if self.pairs else 1.0

    @property
    def left_winrate(self) -> float | None:
        """Wins of the left, a tie half a win, over the pairs with a vote; 0.5 without pairs, None without votes."""
        votes = self.pairs - self.no_votes
        if votes == 0:
            return 0.5 if self.pairs == 0 else None
        return (self.left_wins + self.ties / 2) / votes

    @cached_property
    def interval(self) -> Interval | None:
        """The win rate's interval: a score interval of wins minus losses over pairs, as a rate; None without votes."""
        votes = self.pairs - self.no_votes
        if votes == 0:
            return None
        from bench_pipeline.statistics.paired_score import score_interval_paired

        of_difference = score_interval_paired(self.left_wins, self.right_wins, votes)
        return Interval((1 + of_difference.low) / 2, (1 + of_difference.high) / 2, of_difference.method)

    def document(self) -> dict[str, object]:
        """The report as JSON."""
        interval = self.interval
        return {
            "pairs": self.pairs,
            "left_wins": self.left_wins,
            "right_wins": self.right_wins,
            "ties": self.ties,
            "left_winrate": self.left_winrate,
            "left": self.left,
            "right": self.right,
            "judge": self.judge,
            "seed": self.seed,
            "no_votes": self.no_votes,
            "inconsistent": self.inconsistent,
            "flip_rate": self.flip_rate,
            "winrate_low": interval.low if interval else None,
            "winrate_high": interval.high if interval else None,
            "method": interval.method if interval else None,
            "left_only": list(self.left_only),
            "right_only": list(self.right_only),
            "notes": list(self.notes),
            "verdicts": [
                {
                    "scenario": item.scenario,
                    "verdict": item.verdict,
                    "swapped": item.swapped,
                    "rule": item.rule,
                }
                | ({} if item.inconsistent is None else {"inconsistent": item.inconsistent})
                for item in self.verdicts
            ],
        }


def judge_by_rubric(left: Folder, right: Folder, seed: int = 0) -> Report:
    """Judge two folders by the rubric, blinded by ``seed``; RefusedError as ``pair``."""
    paired = pair(left, right)
    verdicts = []
    for one, other in paired.pairs:
        flipped = swapped(seed, one.scenario)
        slot, rule = by_rubric(other, one) if flipped else by_rubric(one, other)
        verdicts.append(PairVerdict(one.scenario, side_of(slot, swapped=flipped), flipped, rule))
    return Report(left.label, right.label, RUBRIC, seed, tuple(verdicts), paired.left_only, paired.right_only)


def tallied(verdicts: Sequence[PairVerdict]) -> tuple[int, int, int]:
    """Wins of the left, wins of the right, and ties."""
    counts = Counter(item.verdict for item in verdicts)
    return counts["left"], counts["right"], counts["tie"]
