"""One line of a leaderboard, and what its counters may be.

What belongs here: counters with the receipt behind them, whether from a run, a file or a table. What does not: the
order of several (``leaderboard``).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from bench_pipeline.policies.calling import Call
from bench_pipeline.policies.comparing import Attempt


@dataclass(frozen=True)
class Entry:
    """A harness's counters. Without a receipt the digests are None, and whatever else the row did not say.

    ``outcomes`` holds, by case, whether it was answered correctly; over several attempts, how often.
    """

    harness: str
    correct: int
    attempted: int
    errors: int
    total: int
    state: str | None = None
    calls: int | None = None
    call_budget: int | None = None
    dataset_sha256: str | None = None
    model_config_sha256: str | None = None
    scope: str | None = None
    model: str | None = None
    attempt: int | None = None
    attempts: int = 1
    outcomes: Mapping[str, float] | None = field(default=None, repr=False)

    @property
    def has_receipt(self) -> bool:
        """Whether it says which cases and which model it is about."""
        return self.dataset_sha256 is not None or self.model_config_sha256 is not None


def entries_of(attempt: Attempt) -> list[Entry]:
    """The entries of an attempt, in the order of its policies."""
    return [
        Entry(
            harness=result.policy.name,
            correct=result.tally.correct,
            attempted=result.tally.attempted,
            errors=result.tally.errors,
            total=result.tally.total,
            state=result.tally.state,
            calls=len(result.tally.calls),
            call_budget=attempt.terms.budget,
            dataset_sha256=attempt.dataset_sha256,
            model_config_sha256=attempt.model.sha256,
            scope=attempt.scope,
            model=attempt.model.model,
            attempt=attempt.number,
            outcomes=outcomes_of(result.tally.calls),
        )
        for result in attempt.results
    ]


def outcomes_of(calls: list[Call]) -> dict[str, float]:
    """Whether each case that was called is correct: its last call decides."""
    return {call.case_id: float(call.correct) for call in calls}


def impossible(entry: Entry) -> Iterator[tuple[str, str]]:
    """What no run can have counted: the counter, as a table's column, and a sentence."""
    counted = (("correct", entry.correct), ("attempted", entry.attempted), ("errors", entry.errors))
    known = (*counted, ("calls", entry.calls), ("call_budget", entry.call_budget))
    yield from ((name, f"is {value}, below 0") for name, value in known if value is not None and value < 0)
    if entry.total < 1:
        yield "total", f"is {entry.total}; a comparison has at least one case"
    if entry.attempted > entry.total:
        yield "attempted", f"is {entry.attempted}, more than the {entry.total} cases"
    if entry.correct + entry.errors > entry.attempted:
        both = f"{entry.correct} correct and {entry.errors} errors"
        yield "correct", f"{both} are more than the {entry.attempted} attempted"
    if entry.calls is not None and entry.calls < entry.attempted:
        yield "calls", f"is {entry.calls}, fewer than the {entry.attempted} attempted"
    if entry.calls is not None and entry.call_budget is not None and entry.calls > entry.call_budget:
        yield "calls", f"is {entry.calls}, more than the budget of {entry.call_budget}"
