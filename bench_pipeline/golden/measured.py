"""Results of golden tasks that this project executed as cells: measured, not told.

What belongs here: rows of task_results from verdicts and the evidence behind them. What does not: executing and
looking at signals (``execution``), pass marks and failures (``results``).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bench_pipeline.documents.jsonl import RejectedJsonError, decode_json
from bench_pipeline.errors import CorruptPartError, NotFoundError
from bench_pipeline.golden.judgements import Judgements
from bench_pipeline.golden.ownership import outside
from bench_pipeline.golden.telemetry import Row, task_facts
from bench_pipeline.tasks import GoldenTask

SIGNALS, PATCH, ACTIVITY = "signals", "patch", "activity"
# Outcomes of cells that measured nothing.
UNMEASURED = ("not_attempted", "infrastructure_error", "adapter_error")
GetArtifact = Callable[[str], bytes]


class _Evidence(BaseModel):
    """A document of ours, so it is read strictly but may grow."""

    model_config = ConfigDict(strict=True, frozen=True)


Found = TypeVar("Found", bound=_Evidence)


class _SignalFound(_Evidence):
    signal: str
    kind: str
    passed: bool | None


class _TestFound(_Evidence):
    command: str
    expected: bool
    before: bool | None
    after: bool | None

    @property
    def failed(self) -> bool:
        return self.after is not self.expected

    @property
    def regressed(self) -> bool:
        return self.failed and self.before is True and self.after is not True


class SignalsFound(_Evidence):
    """The artifact ``signals`` of a cell: what was found of its candidate."""

    signals: list[_SignalFound] = Field(default_factory=list)
    tests: list[_TestFound] = Field(default_factory=list)
    files_modified: list[str] = Field(default_factory=list)
    missing_modules: list[str] = Field(default_factory=list)


class ActivityFound(_Evidence):
    """The artifact ``activity`` of a cell: what its tool's transcript tells of it."""

    files_read: list[str] | None = None


def measured_row(
    verdict: Mapping[str, Any], task: GoldenTask, judgements: Judgements, get: GetArtifact
) -> Row:
    """The row of one cell. ``get`` opens an artifact by its digest.

    A cell that measured nothing was not attempted as far as a score is concerned; a timeout is a measured failure.
    """
    artifacts = dict(verdict["artifacts"] or ())
    candidate = artifacts.get(PATCH)
    outcome = verdict["outcome"]
    row: Row = {
        "setup": verdict["setup"],
        "setup_digest": verdict["setup_digest"],
        "attempt": verdict["attempt"],
        "source": "executed",
        "identity": verdict["identity"],
        "outcome": outcome,
        "candidate": candidate,
        "attempted": outcome not in UNMEASURED,
        "tests_regressed": 0,
        "crashes": 0,
        "orphans": 0,
        **task_facts(task),
        **judgements.columns(task.id, candidate),
    }
    if outcome in UNMEASURED:
        reason = verdict["reason"]
        return row | {
            "telemetry_valid": False,
            "telemetry_problem": f"{outcome}: {reason}" if reason else outcome,
        }
    row |= {
        "duration_s": verdict["duration_s"],
        "cost_usd": verdict["cost_usd"],
        # What ran out of time was ended by us, so the signal that ended it is no crash.
        "crashes": int(verdict["signal"] is not None and outcome != "timeout"),
        "orphans": verdict["orphans"] or 0,
        "timed_out": outcome == "timeout",
        "conflict": outcome == "patch_apply_failed",
        "compile_error": False,
        "telemetry_valid": True,
    }
    try:
        return row | _found(task, judgements, candidate, artifacts, get)
    except _NoEvidenceError as error:
        return row | {"telemetry_valid": False, "telemetry_problem": str(error)}


class _NoEvidenceError(Exception):
    """Evidence of a cell that is gone, or is not what was kept."""


def _found(
    task: GoldenTask,
    judgements: Judgements,
    candidate: str | None,
    artifacts: Mapping[str, str],
    get: GetArtifact,
) -> Row:
    if SIGNALS not in artifacts:
        # Nothing was looked at, because nothing came of the work: no signal holds.
        return {"signals_checked": len(task.signals), "signals_passed": 0, "tests_failed": 0}
    found = _read(artifacts[SIGNALS], SignalsFound, get)
    activity = _read(artifacts[ACTIVITY], ActivityFound, get) if ACTIVITY in artifacts else ActivityFound()
    held = [
        item.passed if item.passed is not None else judgements.holds(task.id, item.signal, candidate)
        for item in found.signals
    ]
    return {
        "signals_checked": len(held),
        "signals_passed": sum(held),
        "tests_failed": sum(test.failed for test in found.tests),
        "tests_regressed": sum(test.regressed for test in found.tests),
        "files_read": None if activity.files_read is None else len(set(activity.files_read)),
        "files_modified": len(found.files_modified),
        "modified_files": found.files_modified,
        "out_of_scope": list(outside(found.files_modified, task.owned_files)),
        "invented_names": found.missing_modules,
    }


def _read(digest: str, model: type[Found], get: GetArtifact) -> Found:
    try:
        return model.model_validate(decode_json(get(digest).decode()))
    except (NotFoundError, CorruptPartError, RejectedJsonError, UnicodeDecodeError, ValidationError) as error:
        raise _NoEvidenceError(f"the evidence {digest} cannot be read: {type(error).__name__}") from error


def told_apart(verdicts: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Verdicts of golden cells, each once, with setups called so that none has two cells of one task.

    Evaluations may prepare the same setup in different ways; where they do, the evaluation is part of its name.
    """
    cells = {(row["setup"], row["identity"]): dict(row) for row in verdicts}
    seen: dict[tuple[Any, ...], set[str]] = {}
    for row in cells.values():
        key = (row["setup"], row["setup_digest"], row["attempt"], row["task_id"])
        seen.setdefault(key, set()).add(row["identity"])
    twice = {key[:2] for key, identities in seen.items() if len(identities) > 1}
    for row in cells.values():
        if (row["setup"], row["setup_digest"]) in twice:
            row["setup"] = f"{row['setup']} ({row['evaluation']})"
    return list(cells.values())
