"""Examining a journal against a commitment: findings and the verdict, from nothing but the evidence.

What belongs here: what makes a finding and a verdict. What does not: keeping them (``sealing``). Scanning,
sealing and verifying all ask here, so they cannot disagree.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final, Literal

from bench_pipeline.attestation.activities import Activities, Activity, read_activities
from bench_pipeline.attestation.commitment import Commitment, Matcher, Seal, kinds_of
from bench_pipeline.attestation.scope import Scope
from bench_pipeline.journal import INCOMING, OPEN, Head, JournalReader, Row

FindingKind = Literal["contraband", "canary", "out_of_scope_path", "out_of_scope_endpoint", "git_history"]
Verdict = Literal["CLEAN", "DIRTY", "INCONCLUSIVE"]

NO_SOURCES: Final = "no source of the answer is covered"
INCOMPLETE: Final = "the journal is incomplete"
NOTHING_SHOWN: Final = "the tool's format shows no activity"
NOT_SHOWN: Final = "the journal has no rows of a kind that the tool always leaves"
NOT_READ: Final = "more came in than was kept or could be decoded"


@dataclass(frozen=True, order=True)
class Finding:
    """One thing that was not clean: the journal's row and the kind, never the text."""

    row: int
    kind: FindingKind


@dataclass(frozen=True)
class Evidence:
    """What a journal holds: scope and kinds of rows to expect as recorded, activities, head, problems.

    ``expected`` is None for a tool whose format shows nothing.
    """

    scope: Scope
    expected: tuple[str, ...] | None
    activities: Activities
    head: Head
    problems: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether the journal is unbroken from its open to its close."""
        return not self.problems


@dataclass(frozen=True)
class Examination:
    """The findings, the verdict, and for an inconclusive one the reasons."""

    findings: tuple[Finding, ...]
    verdict: Verdict
    reasons: tuple[str, ...] = ()


def read_evidence(journal: BinaryIO, commitment: Commitment, seal: Seal) -> Evidence:
    """What a journal holds, as far as it concerns the commitment."""
    reader = JournalReader(journal)
    rows = iter(reader)
    opened: Row | None = next(rows, None)
    payload = opened.payload if opened is not None and opened.type == OPEN else {}
    scope = Scope.of(payload.get("scope"))
    activities = read_activities(rows, Matcher(commitment, seal), scope)
    expected = payload.get("expected")
    kinds = tuple(str(kind) for kind in expected) if isinstance(expected, list) else None
    return Evidence(scope, kinds, activities, reader.head, tuple(reader.problems))


def examine(evidence: Evidence, commitment: Commitment) -> Examination:
    """Findings and verdict of the evidence."""
    found = findings_of(evidence.activities.found, commitment)
    return Examination(found, *verdict_of(found, evidence, commitment))


def findings_of(activities: Iterable[Activity], commitment: Commitment) -> tuple[Finding, ...]:
    """What of the activities is not clean: sealed windows that came in, and places out of scope."""
    kinds = kinds_of(commitment)
    found: set[Finding] = set()
    for activity in activities:
        found.update(Finding(activity.row, kind) for kind in activity.elsewhere)
        if activity.kind in INCOMING:
            found.update(Finding(activity.row, kinds[each]) for each in activity.digests if each in kinds)
    return tuple(sorted(found))


def verdict_of(
    findings: Sequence[Finding], evidence: Evidence, commitment: Commitment
) -> tuple[Verdict, tuple[str, ...]]:
    """The verdict, with the reasons of an inconclusive one."""
    if findings:
        return "DIRTY", ()
    kinds = {activity.kind for activity in evidence.activities.found}
    lacking = {
        NO_SOURCES: not commitment.coverage.covered,
        INCOMPLETE: not evidence.complete,
        NOTHING_SHOWN: not evidence.expected,
        NOT_SHOWN: bool(evidence.expected) and not kinds.intersection(evidence.expected or ()),
        NOT_READ: evidence.activities.exhausted,
    }
    reasons = tuple(reason for reason, holds in lacking.items() if holds)
    return ("INCONCLUSIVE", reasons) if reasons else ("CLEAN", ())
