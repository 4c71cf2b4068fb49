"""Scoring: from steps, seconds and evidence to passed or not.

What belongs here: the one scorer that live runs and replays share, and what an item of evidence is. What does not:
where the three inputs come from (``trace``) and which checks the harness runs (``checks``).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench_pipeline.scenarios.checks import CHECK_NAMES
from bench_pipeline.scenarios.scenario import Scenario


@dataclass(frozen=True)
class Evidence:
    """One item: a text, and the harness check whose passed label it is, if it is one."""

    text: str
    passed_check: str | None = None

    def meets(self, required: str) -> bool:
        """Whether this item alone meets a required string.

        The name of a harness check is met by that check's own passed label only: a text that mentions it may be an
        agent's. Any other string has to stand in the text, letter for letter.
        """
        if required in CHECK_NAMES:
            return self.passed_check == required
        return required in self.text


@dataclass(frozen=True)
class Measured:
    """What a run, live or replayed, comes down to."""

    steps: int
    seconds: int
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class Score:
    """What scoring says; ``missing`` stands in the scenario's order."""

    passed: bool
    missing: tuple[str, ...]
    over_steps: bool
    over_seconds: bool


def score(scenario: Scenario, measured: Measured) -> Score:
    """Passed: within both caps, bounds included, and every required string met. There is no partial credit."""
    missing = _missing(scenario.required_evidence, measured.evidence)
    over_steps = measured.steps > scenario.max_steps
    over_seconds = measured.seconds > scenario.max_seconds
    return Score(not (missing or over_steps or over_seconds), missing, over_steps, over_seconds)


def _missing(required: Iterable[str], evidence: Sequence[Evidence]) -> tuple[str, ...]:
    return tuple(text for text in required if not any(item.meets(text) for item in evidence))
