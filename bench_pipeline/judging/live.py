"""A live judge: a model that is asked about every pair in both orders.

What belongs here: asking, settling the two answers, the report. What does not: what it is shown (``prompt``), the
client and its retries (``providers``). An answer that changes with the order is a tie and counted; one that cannot be
read, or none at all, is no vote: neither a tie nor a loss. Both orders are needed for a vote.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol

from bench_pipeline.judging.blinding import Side, side_of, swapped
from bench_pipeline.judging.judgements import Reply
from bench_pipeline.judging.pairing import Folder, pair
from bench_pipeline.judging.prompt import judge_prompt, read_verdict
from bench_pipeline.judging.report import PairVerdict, Report
from bench_pipeline.scenarios.cell_result import CellResult

UNREADABLE, NOT_RECORDED, STOPPED = "unreadable", "not_recorded", "stopped"

# Asks the model one prompt; what failed has a kind and no text.
Ask = Callable[[str], Reply]
Watch = Callable[[int], AbstractContextManager[Callable[[str], None] | None]]


def unwatched(_total: int) -> AbstractContextManager[None]:
    """Nobody waits for the pairs."""
    return nullcontext()


class Replies(Protocol):
    """What one judge has answered so far; threads share it."""

    @property
    def model(self) -> str:
        """The judge's model."""
        ...

    def find(self, question: str, /) -> Reply | None:
        """The reply to a question; None where there is none."""

    def add(self, scenario: str, question: str, reply: Reply, /) -> None:
        """Keep a reply; it is durable when this returns."""


@dataclass(frozen=True)
class LiveJudge:
    """A model that judges.

    ``ask`` is None for a replay, which contacts nobody; ``goals`` are the tasks' texts by scenario, where they are
    known; ``concurrency`` pairs are asked about side by side, which changes no verdict. ``watch`` takes the number of
    pairs and hands out what is told of each that is decided; ``stop`` is set when nobody waits any more, and nothing
    more is asked then.
    """

    judgements: Replies
    ask: Ask | None = None
    goals: Mapping[str, str] | None = None
    seed: int = 0
    concurrency: int = 8
    watch: Watch = unwatched
    stop: threading.Event = field(default_factory=threading.Event)

    def judge(self, left: Folder, right: Folder) -> Report:
        """Judge two folders; RefusedError as ``pair``."""
        paired = pair(left, right)
        verdicts = tuple(self._verdicts(paired.pairs))
        return Report(
            left.label,
            right.label,
            self.judgements.model,
            self.seed,
            verdicts,
            paired.left_only,
            paired.right_only,
            tuple(self._notes(left, right, verdicts)),
        )

    def _verdicts(self, pairs: Sequence[tuple[CellResult, CellResult]]) -> Iterator[PairVerdict]:
        """What the model says of each pair; what it is answering when that is cut off is waited for and kept."""
        pool = ThreadPoolExecutor(self.concurrency, thread_name_prefix="judge")
        try:
            with self.watch(len(pairs)) as told:
                for verdict in pool.map(lambda both: self._verdict(*both), pairs):
                    yield verdict
                    if told is not None:
                        told(verdict.scenario)
        except BaseException:
            self.stop.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _verdict(self, left: CellResult, right: CellResult) -> PairVerdict:
        flipped = swapped(self.seed, left.scenario)
        one, one_failed = self._side(left, right, flipped=flipped)
        other, other_failed = self._side(left, right, flipped=not flipped)
        if one is None or other is None:
            return PairVerdict(left.scenario, "no_vote", flipped, one_failed or other_failed or UNREADABLE)
        if one != other:
            return PairVerdict(left.scenario, "tie", flipped, "inconsistent", inconsistent=True)
        return PairVerdict(left.scenario, one, flipped, "judge", inconsistent=False)

    def _side(self, left: CellResult, right: CellResult, *, flipped: bool) -> tuple[Side | None, str | None]:
        """The side that the judge prefers in one order, or None and why it does not say."""
        goal = self._goal(left)
        prompt = judge_prompt(goal, right, left) if flipped else judge_prompt(goal, left, right)
        reply = self._reply(left.scenario, prompt)
        if reply.text is None:
            return None, reply.failure or UNREADABLE
        slot = read_verdict(reply.text)
        return (None, UNREADABLE) if slot is None else (side_of(slot, swapped=flipped), None)

    def _goal(self, cell: CellResult) -> str:
        return (self.goals or {}).get(cell.scenario, cell.scenario)

    def _reply(self, scenario: str, prompt: str) -> Reply:
        key = question(scenario, prompt)
        known = self.judgements.find(key)
        if known is not None and (known.settled or self.ask is None):
            return known
        if self.ask is None or self.stop.is_set():
            return Reply(failure=NOT_RECORDED if self.ask is None else STOPPED)
        reply = self.ask(prompt)
        self.judgements.add(scenario, key, reply)
        return reply

    def open_questions(self, left: Folder, right: Folder) -> int:
        """How many questions have no reply yet; RefusedError as ``pair``."""
        return sum(
            self.judgements.find(question(one.scenario, prompt)) is None
            for one, other in pair(left, right).pairs
            for prompt in self._prompts(one, other)
        )

    def _prompts(self, left: CellResult, right: CellResult) -> Iterator[str]:
        goal = self._goal(left)
        yield judge_prompt(goal, left, right)
        yield judge_prompt(goal, right, left)

    def _notes(self, left: Folder, right: Folder, verdicts: tuple[PairVerdict, ...]) -> list[str]:
        model = self.judgements.model
        notes = [
            f"self-preference: the judge {model} is also the model of {folder.label}"
            for folder in (left, right)
            if any((cell.model or "").casefold() == model.casefold() for cell in folder.cells.values())
        ]
        failed = Counter(item.rule for item in verdicts if item.verdict == "no_vote")
        return notes + [f"no vote in {count} pairs: {kind}" for kind, count in sorted(failed.items())]


def question(scenario: str, prompt: str) -> str:
    """The digest by which the reply to a prompt is known."""
    return sha256(f"{scenario}\0{prompt}".encode("utf-8", "replace")).hexdigest()
