"""Scanning a cell, and sealing what was found: write-once, anchored and mirrored.

What belongs here: from a subject and a journal to an attestation in the store. What does not: which cells are
sealed and when (``pipeline.attesting``).
"""

import io
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from bench_pipeline.attestation.commitment import Commitment, Seal, commit
from bench_pipeline.attestation.document import SIGNED_PREFIX, Attestation, Sealed, evidence_parts
from bench_pipeline.attestation.examining import Evidence, Examination, examine, read_evidence
from bench_pipeline.attestation.keys import NONCE_BYTES, AuditKey
from bench_pipeline.attestation.lineage import LOCK, Appender
from bench_pipeline.attestation.truth import Subject
from bench_pipeline.identity import digest
from bench_pipeline.store import Store

# Of a verdict's row: tokens, times and counts of the tool's run, no prices, and nothing of the check after it.
_USAGE = (
    "duration_s",
    "exit_code",
    "orphans",
    "patch_files",
    "patch_lines",
    "signal",
    "tokens_cache_read",
    "tokens_cache_write",
    "tokens_input",
    "tokens_output",
    "tool_calls",
    "turns",
)


@dataclass(frozen=True)
class CellEvidence:
    """What is known of a cell: its keys, the digest of its raw usage, and its journal's artifact."""

    identity: str
    run_key: str
    usage: str
    journal: str


@dataclass(frozen=True)
class Scanned:
    """A scan under one key: the answer sealed, the evidence and what was found."""

    commitment: Commitment
    evidence: Evidence
    examination: Examination


def usage_digest(row: Mapping[str, object]) -> str:
    """The digest of a cell's raw usage, from its row in the verdicts."""
    return digest({name: row.get(name) for name in _USAGE})


def scan(journal: bytes, subject: Subject, key: bytes) -> Scanned:
    """Look for the subject's answer, and for looking elsewhere, in a journal.

    Raises RefusedError when a declared source cannot be sealed.
    """
    seal = Seal(key)
    commitment = commit(seal, subject.sources, subject.allowance)
    evidence = read_evidence(io.BytesIO(journal), commitment, seal)
    return Scanned(commitment, evidence, examine(evidence, commitment))


def seal_cell(
    store: Store,
    key: AuditKey,
    cell: CellEvidence,
    subject: Subject,
    *,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Sealed:
    """Scan a cell and keep the attestation of what was found.

    Raises RefusedError when a declared source cannot be sealed, StoreError when the store fails or its lineage is
    not whole, NotFoundError or CorruptPartError when the journal is lost.
    """
    store.refuse_read_only("sealing a cell")
    nonce = secrets.token_bytes(NONCE_BYTES)
    scanned = scan(
        store.artifacts.get(cell.journal),
        subject,
        key.attestation_key(nonce, subject.task_digest, cell.run_key),
    )
    head, found, moment = scanned.evidence.head, scanned.examination, now()
    parts = {
        "schema": 1,
        "task": {"id": subject.task_id, "digest": subject.task_digest},
        "run": cell.run_key,
        "cell": cell.identity,
        "usage": cell.usage,
        "key_id": key.id,
        "signer": key.public,
        "nonce": nonce.hex(),
        "commitment": scanned.commitment.document(),
        "allowance": subject.allowance.digest(),
        **evidence_parts(scanned.evidence),
        "journal": {"artifact": cell.journal, **asdict(head), "complete": scanned.evidence.complete},
        "findings": [asdict(each) for each in found.findings],
        "verdict": found.verdict,
        "reasons": list(found.reasons),
        "created": moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    with store.lock(LOCK):
        lineage = Appender(store, key)
        sealed = _sealed(key, Attestation.model_validate({**parts, "previous": lineage.last}))
        lineage.append(sealed.hash, sealed.encode(), task=subject.task_id, cell=cell.identity, now=moment)
    return sealed


def _sealed(key: AuditKey, attestation: Attestation) -> Sealed:
    name = attestation.hash
    signature = key.sign(SIGNED_PREFIX + bytes.fromhex(name))
    return Sealed(attestation=attestation, hash=name, mac=key.mac("attestation", name), signature=signature)
