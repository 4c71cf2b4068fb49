"""What producing and judging a candidate measured, and the rows of the store that it becomes.

What belongs here: the shapes and their mapping to the columns of ``store.schemas``. What does not: doing either
(``cell``).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bench_pipeline.execution.gateway import Traffic
from bench_pipeline.execution.outcome import CellFacts, Decision
from bench_pipeline.execution.overlay import Overlay
from bench_pipeline.execution.usage import ToolEnd
from bench_pipeline.execution.verification import Verification

Row = dict[str, object]

# The largest 64-bit integer; each count that a tool reports is bounded, their sums are not.
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class StepUse:
    """What one use of a tool used; a workflow has several, each with a model and a price of its own.

    ``traffic`` is what a gateway counted; each of its requests has a price of its own, which may depend on its length.
    """

    model_id: str | None
    end: ToolEnd
    traffic: Traffic | None = None

    def priced(self) -> "list[StepUse]":
        """The parts that have a price each."""
        if self.traffic is None:
            return [self]
        return [
            StepUse(each.model, ToolEnd("completed", tokens=each.tokens))
            for each in self.traffic.exchanges
            if any((each.tokens.input, each.tokens.cache_read, each.tokens.cache_write, each.tokens.output))
        ]

    def document(self) -> dict[str, object]:
        """The use as a JSON-able mapping, enough to price it."""
        return {
            "model_id": self.model_id,
            "input": _countable(self.end.tokens.input),
            "cache_read": _countable(self.end.tokens.cache_read),
            "cache_write": _countable(self.end.tokens.cache_write),
            "output": _countable(self.end.tokens.output),
            "cost_reported_usd": self.end.cost_reported_usd,
            "cost_is_real": self.end.cost_is_real,
        }


@dataclass(frozen=True)
class Usage:
    """The measured columns that candidates and verdicts share."""

    columns: Mapping[str, object]

    @classmethod
    def of(
        cls,
        *,
        end: ToolEnd | None,
        steps: Sequence[StepUse],
        exit_code: int | None,
        signal: int | None,
        duration_s: float | None,
        orphans: int | None,
    ) -> "Usage":
        """From what a tool, or the steps of a workflow, said and did; ``end`` None: no tool ran."""
        tokens = end.tokens if end is not None else None
        single = steps[0].model_id if len(steps) == 1 else None
        parts = [part for step in steps for part in step.priced()]
        return cls(
            {
                "exit_code": exit_code,
                "signal": signal,
                "duration_s": duration_s,
                "orphans": orphans,
                "model_id": single,
                "tokens_input": _countable(tokens.input) if tokens else None,
                "tokens_cache_read": _countable(tokens.cache_read) if tokens else None,
                "tokens_cache_write": _countable(tokens.cache_write) if tokens else None,
                "tokens_output": _countable(tokens.output) if tokens else None,
                "turns": _countable(end.turns) if end else None,
                "tool_calls": _countable(end.tool_calls) if end else None,
                "cost_reported_usd": end.cost_reported_usd if end else None,
                "cost_is_real": end.cost_is_real if end else None,
                "step_usage": json.dumps([part.document() for part in parts])
                if len(parts) > 1 or len(steps) > 1
                else None,
            }
        )


def _countable(value: int | None) -> int | None:
    """The count, or None when it is more than a column holds: no tool really used that much."""
    return value if value is not None and value <= _LARGEST else None


@dataclass(frozen=True)
class Produced:
    """What came of running a cell's tool, or of fetching its stored candidate.

    ``overlay`` is None when there is no candidate to judge. ``tool_ran`` says whether this try ran the tool;
    ``not_enforced`` which limits this machine could not hold it to.
    """

    run_key: str
    facts: CellFacts
    usage: Usage
    overlay: Overlay | None = None
    overlay_digest: str | None = None
    patch_files: int | None = None
    patch_lines: int | None = None
    tool_ran: bool = True
    phases: Mapping[str, float] = field(default_factory=dict)
    artifacts: Mapping[str, str] = field(default_factory=dict)
    not_enforced: tuple[str, ...] = ()

    @property
    def interrupted(self) -> bool:
        """Stopped by hand: nothing was measured."""
        return self.facts.cancelled

    @property
    def limited(self) -> bool:
        """Whether the tool stopped at a limit of its own."""
        return self.facts.end is not None and self.facts.end.state == "limit"

    def candidate_row(self, run_id: str) -> Row:
        """The row of a candidate that can be judged again."""
        return {
            "run_key": bytes.fromhex(self.run_key),
            "overlay": self.overlay_digest,
            "empty": bool(self.facts.candidate_empty),
            "tool_outcome": "patch_apply_failed" if self.facts.patch_problem is not None else None,
            "reason": self.facts.patch_problem if self.facts.patch_problem is not None else self._limit(),
            **self.measured_columns(run_id),
        }

    def _limit(self) -> str | None:
        return "limit" if self.limited else None

    def measured_columns(self, run_id: str) -> Row:
        """The columns that its candidate and its verdict share."""
        return {
            **self.usage.columns,
            "patch_files": self.patch_files,
            "patch_lines": self.patch_lines,
            "phases": dict(self.phases),
            "artifacts": dict(self.artifacts),
            "measured_at": datetime.now(UTC),
            "run_id": run_id,
        }


@dataclass(frozen=True)
class Judged:
    """A candidate with its verdict, or a try that ended before there was one."""

    produced: Produced
    identity: str
    verify_key: str
    decision: Decision
    check: Verification | None = None

    @property
    def interrupted(self) -> bool:
        """Stopped by hand: nothing was measured."""
        return self.decision.outcome == "not_attempted"

    def verdict_row(self, run_id: str, records: Mapping[str, str]) -> Row:
        """The row to store; ``records`` are the digests of the documents behind the keys, by name."""
        row = self.produced.measured_columns(run_id)
        check = self.check
        results = check.results if check is not None else None
        evidence = check.evidence if check is not None else {}
        row["artifacts"] = {**dict(self.produced.artifacts), **evidence, **records}
        row["phases"] = {**dict(self.produced.phases), **({"verify": check.duration_s} if check else {})}
        return {
            **row,
            "identity": bytes.fromhex(self.identity),
            "run_key": bytes.fromhex(self.produced.run_key),
            "verify_key": bytes.fromhex(self.verify_key),
            "outcome": self.decision.outcome,
            "outcome_class": self.decision.outcome_class,
            "passed": self.decision.passed,
            "reason": self.decision.reason,
            "verify_s": check.duration_s if check is not None else None,
            "tests_run": results.run if results is not None else None,
            "tests_passed": len(results.passed) if results is not None else None,
            "tool_ran": self.produced.tool_ran,
        }
