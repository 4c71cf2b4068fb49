"""Who answered more, where everybody had the same cases, the same model and the same number of calls.

What belongs here: refusing what cannot be compared, the order, attempts pooled. What does not: how sure one can be of
the order (``certainty``), and how it is shown (``reports``).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bench_pipeline.errors import RefusedError
from bench_pipeline.policies.entries import Entry, impossible

_TRIED = "comparing receipts"
# Of a digest, enough to see that two differ.
_SHOWN = 12


@dataclass(frozen=True)
class Leaderboard:
    """Entries in their order, and the rank of each; equal counters share a rank. ``attempt`` is None when pooled."""

    entries: tuple[Entry, ...]
    ranks: tuple[int, ...]
    attempt: int | None

    @property
    def pooled(self) -> bool:
        """Whether it sums several attempts."""
        return any(entry.attempts > 1 for entry in self.entries)


def leaderboards(entries: Sequence[Entry]) -> list[Leaderboard]:
    """A leaderboard for each attempt, and one over all of them where there are several.

    Raises:
        RefusedError: names every field in which the entries differ, or every counter that is impossible.
    """
    _refuse(_faults(entries), "mend the counters, or leave the row out")
    _refuse(
        _differences(entries), "compare receipts of one case set, one model configuration and one call budget"
    )
    attempts: dict[int | None, list[Entry]] = {}
    for entry in entries:
        attempts.setdefault(entry.attempt, []).append(entry)
    boards = [_ranked(attempts[number], number) for number in sorted(attempts, key=lambda n: n or 0)]
    return [*boards, _ranked(_pooled(entries), None)] if len(boards) > 1 else boards


def _refuse(wrong: Iterator[str], remedy: str) -> None:
    found = list(wrong)
    if found:
        raise RefusedError(_TRIED, "; ".join(found), remedy)


def _faults(entries: Sequence[Entry]) -> Iterator[str]:
    for entry in entries:
        yield from (f"{entry.harness}: {name} {text}" for name, text in impossible(entry))
    names = [(entry.attempt, entry.harness) for entry in entries]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        attempt = "" if name[0] is None else f" in attempt {name[0]}"
        yield f"{name[1]} stands there {names.count(name)} times{attempt}"


_COMPARED: Mapping[str, Callable[[Entry], object]] = {
    "receipt": lambda entry: "present" if entry.has_receipt else "absent",
    "dataset_sha256": lambda entry: entry.dataset_sha256,
    "model_config_sha256": lambda entry: entry.model_config_sha256,
    "call_budget": lambda entry: entry.call_budget,
    "total": lambda entry: entry.total,
}


def _differences(entries: Sequence[Entry]) -> Iterator[str]:
    for name, value in _COMPARED.items():
        found: dict[object, str] = {}
        for entry in entries:
            found.setdefault(value(entry), entry.harness)
        if len(found) > 1:
            told = ", ".join(f"{harness} {str(value)[:_SHOWN]}" for value, harness in found.items())
            yield f"{name} differs: {told}"
            if name == "receipt":
                return
    by_attempt: dict[int | None, set[str]] = {}
    for entry in entries:
        by_attempt.setdefault(entry.attempt, set()).add(entry.harness)
    for attempt, names in by_attempt.items():
        for absent in sorted({entry.harness for entry in entries} - names):
            yield f"{absent} is missing from {'one attempt' if attempt is None else f'attempt {attempt}'}"


def _ranked(entries: Sequence[Entry], attempt: int | None) -> Leaderboard:
    ordered = sorted(entries, key=lambda entry: (-entry.correct, entry.errors, entry.harness))
    scores = [(-entry.correct, entry.errors) for entry in ordered]
    return Leaderboard(tuple(ordered), tuple(scores.index(score) + 1 for score in scores), attempt)


def _pooled(entries: Sequence[Entry]) -> list[Entry]:
    """The attempts of each harness as one entry: counters are summed, each case is the mean of its attempts."""
    own: dict[str, list[Entry]] = {}
    for entry in entries:
        own.setdefault(entry.harness, []).append(entry)
    return [_pool(attempts) for attempts in own.values()]


def _pool(attempts: Sequence[Entry]) -> Entry:
    def summed(values: Sequence[int | None]) -> int | None:
        known = [value for value in values if value is not None]
        return sum(known) if len(known) == len(values) else None

    states = {entry.state for entry in attempts}
    worst = next((state for state in ("cancelled", "budget-exhausted") if state in states), attempts[0].state)
    return replace(
        attempts[0],
        correct=sum(entry.correct for entry in attempts),
        attempted=sum(entry.attempted for entry in attempts),
        errors=sum(entry.errors for entry in attempts),
        total=sum(entry.total for entry in attempts),
        calls=summed([entry.calls for entry in attempts]),
        call_budget=summed([entry.call_budget for entry in attempts]),
        state=worst,
        attempt=None,
        attempts=len(attempts),
        outcomes=_mean_outcomes([entry.outcomes for entry in attempts]),
    )


def _mean_outcomes(attempts: Sequence[Mapping[str, float] | None]) -> dict[str, float] | None:
    scores: dict[str, list[float]] = {}
    for outcomes in attempts:
        if outcomes is None:
            return None
        for case, score in outcomes.items():
            scores.setdefault(case, []).append(score)
    return {case: math.fsum(own) / len(own) for case, own in scores.items()}
