"""Whether scores may pass as a gate: what was asked of them, and the exit status."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench_pipeline.errors import (
    GateFailedError,
    IncompleteError,
    NothingToEvaluateError,
    UsageError,
)

# Sums of doubles may miss a threshold by their last digits.
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class ScoreTerms:
    """What is asked of every score; ``fail_under`` is within 0..1."""

    fail_under: float | None = None
    fail_on_regression: bool = False

    def __post_init__(self) -> None:
        """Refuse a threshold that is none: it could never fail, or never be met."""
        if self.fail_under is not None and not 0 <= self.fail_under <= 1:
            wrong = f"--fail-under {self.fail_under} is not within 0..1"
            raise UsageError("setting up the gate", wrong, "scores are from 0 to 1")

    @property
    def asked(self) -> bool:
        """Whether anything is."""
        return self.fail_under is not None or self.fail_on_regression


def enforce(
    rows: Sequence[Mapping[str, Any]], terms: ScoreTerms, worse: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Return when every score passes.

    ``rows`` are of composite_scores; ``worse`` names, by a score's title, tasks that passed in the run that it is
    compared with and fail now. What completing a score could not mend is looked at before whether it is complete.

    Raises:
        NothingToEvaluateError: there is no task in scope. Always, whatever is asked.
        GateFailedError: a regression, or a score below the threshold.
        IncompleteError: a score over tasks of which some were not attempted.
    """
    if not rows or any(row["tasks"] == 0 for row in rows):
        raise NothingToEvaluateError(
            "scoring golden tasks", "there is nothing to score", "import telemetry, or run: bench run"
        )
    if not terms.asked:
        return
    regressed = [title(row) for row in rows if row["regressions"]] if terms.fail_on_regression else []
    lost = [f"{name} ({', '.join(tasks)})" for name, tasks in (worse or {}).items() if tasks]
    if terms.fail_on_regression and (regressed or lost):
        raise GateFailedError(
            "checking for regressions", "; ".join([*regressed, *lost]), "see the reasons above"
        )
    below = [
        row for row in rows if terms.fail_under is not None and _is_below(row["score"], terms.fail_under)
    ]
    closed = [row for row in below if row["safety"] == 0]
    unfinished = [title(row) for row in rows if not row["complete"]]
    if unfinished and not closed:
        remedy = "attempt the missing tasks: bench run, or add their telemetry"
        raise IncompleteError("checking scores", f"incomplete: {'; '.join(unfinished)}", remedy)
    if below:
        scores = "; ".join(f"{title(row)} has {row['score']:.4f}" for row in below)
        remedy = "see the parts and reasons above"
        if not all(row["judged"] for row in below):
            remedy += "; a score without judgements has a code_quality of 0"
        raise GateFailedError("checking scores", f"below {terms.fail_under:g}: {scores}", remedy)


def title(row: Mapping[str, Any]) -> str:
    """A score by whose it is."""
    return f"{row['setup']}, attempt {row['attempt']}"


def _is_below(score: float, threshold: float) -> bool:
    return not (math.isfinite(score) and score >= threshold - _TOLERANCE)
