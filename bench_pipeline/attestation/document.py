"""The attestation as a document: exact types, one canonical form, one hash over all of it.

What belongs here: the fields, to JSON and back. What does not: making one (``sealing``) and believing one
(``verifying``).
"""

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bench_pipeline.attestation.activities import Activities, Activity
from bench_pipeline.attestation.commitment import Commitment, commitment_of, packed_digests, unpacked_digests
from bench_pipeline.attestation.examining import Evidence, Examination, Finding, FindingKind, Verdict
from bench_pipeline.attestation.scope import Elsewhere, Scope
from bench_pipeline.identity import canonical_json, digest
from bench_pipeline.journal import Head

SCHEMA: Final = 1
SIGNED_PREFIX: Final = b"bench attestation 1\n"

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, le=2**53 - 1)]
Packed = Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]*={0,2}$")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=True)


class CoveragePart(_Part):
    """See ``commitment.Coverage``."""

    declared: Count
    covered: Count
    short: Count
    given: Count
    windows: Count


class WindowsPart(_Part):
    """See ``commitment.SealedWindows``."""

    kind: Literal["contraband", "canary"]
    words: Annotated[int, Field(ge=1, le=8)]
    bits: Annotated[int, Field(ge=1, le=24)]
    prefixes: Packed
    digests: Packed


class CommitmentPart(_Part):
    """See ``commitment.Commitment``."""

    coverage: CoveragePart
    windows: list[WindowsPart]


class TaskPart(_Part):
    """The task by its id and digest."""

    id: str
    digest: Digest


class ScopePart(_Part):
    """See ``scope.Scope``."""

    roots: list[str]
    readable: list[str]
    denied: list[str]
    endpoints: list[str]
    home: str


class ActivityPart(_Part):
    """See ``activities.Activity``; what is empty is left out."""

    row: Count
    kind: Literal["read", "result", "response", "message", "write", "command", "request"]
    words: Count = 0
    digests: Packed = ""
    elsewhere: list[Elsewhere] = []


class JournalPart(_Part):
    """The journal's artifact and its head; ``complete``: unbroken from open to close."""

    artifact: Digest
    rows: Count
    last_hash: Digest
    root: Digest
    complete: bool


class FindingPart(_Part):
    """See ``examining.Finding``."""

    row: Count
    kind: FindingKind


class Attestation(_Part):
    """An attestation without its seal: ``hash`` is over exactly this.

    ``run`` is the cell's run key and ``cell`` its identity; ``usage`` the digest of tokens, times and counts;
    ``signer`` the public key of the signature; ``previous`` the hash of the attestation before it.
    """

    schema_: Literal[1] = Field(alias="schema")
    task: TaskPart
    run: Digest
    cell: Digest
    usage: Digest
    key_id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    signer: Digest
    nonce: Digest
    commitment: CommitmentPart
    allowance: Digest
    scope: ScopePart
    expected: list[str] | None
    activities: list[ActivityPart]
    exhausted: bool
    journal: JournalPart
    findings: list[FindingPart]
    verdict: Verdict
    reasons: list[str]
    created: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")]
    previous: Digest | None

    @property
    def body(self) -> dict[str, Any]:
        """The document as JSON."""
        found = self.model_dump(by_alias=True)
        found["activities"] = [each.model_dump(exclude_defaults=True) for each in self.activities]
        return found

    @property
    def hash(self) -> str:
        """The SHA-256 of the body's canonical JSON."""
        return digest(self.body)

    def to_commitment(self) -> Commitment:
        """The sealed windows; ValueError when they are no columns."""
        return commitment_of(self.commitment.model_dump())

    def to_evidence(self) -> Evidence:
        """What the attestation says that its journal holds; ValueError when a column is none."""
        activities = [
            Activity(
                each.row, each.kind, each.words, tuple(unpacked_digests(each.digests)), tuple(each.elsewhere)
            )
            for each in self.activities
        ]
        return Evidence(
            scope=Scope.of(self.scope.model_dump()),
            expected=None if self.expected is None else tuple(self.expected),
            activities=Activities(activities, self.exhausted),
            head=Head(self.journal.rows, self.journal.last_hash, self.journal.root),
            problems=() if self.journal.complete else ("incomplete",),
        )

    @property
    def examination(self) -> Examination:
        """The findings and the verdict as they were sealed."""
        found = tuple(Finding(each.row, each.kind) for each in self.findings)
        return Examination(found, self.verdict, tuple(self.reasons))


class Sealed(_Part):
    """An attestation with what seals it."""

    attestation: Attestation
    hash: Digest
    mac: Digest
    signature: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")]

    def encode(self) -> bytes:
        """The one form in which it is kept."""
        return canonical_json(
            {
                "attestation": self.attestation.body,
                "hash": self.hash,
                "mac": self.mac,
                "signature": self.signature,
            }
        )


def decode(data: bytes) -> Sealed:
    """The attestation of a file; ValueError, quoting nothing, when a type is not exact or the form not canonical."""
    try:
        found = Sealed.model_validate_json(data)
    except (ValidationError, RecursionError):
        raise ValueError("its fields are not those of an attestation") from None
    if found.encode() != data:
        raise ValueError("it is not in canonical form")
    return found


def evidence_parts(evidence: Evidence) -> dict[str, object]:
    """The fields of an attestation that hold its evidence."""
    return {
        "scope": evidence.scope.document(),
        "expected": None if evidence.expected is None else list(evidence.expected),
        "activities": [
            {
                "row": each.row,
                "kind": each.kind,
                "words": each.words,
                "digests": packed_digests(each.digests),
                "elsewhere": list(each.elsewhere),
            }
            for each in evidence.activities.found
        ],
        "exhausted": evidence.activities.exhausted,
    }
