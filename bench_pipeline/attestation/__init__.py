"""Clean-run attestation: evidence that an agent never saw the answer.

What belongs here: committing to a task's answer without telling it, scanning a journal against that, sealing
what was found, verifying it offline. What does not: writing journals (``execution``), and which cells are
sealed (``pipeline.attesting``). What it proves and what it does not: docs/security/clean-run.md.
"""

from dataclasses import dataclass

from bench_pipeline.attestation.examining import Examination, Finding, Verdict
from bench_pipeline.attestation.keys import AuditKey, create_key, find_key, key_file, load_key
from bench_pipeline.attestation.sealing import CellEvidence, Scanned, scan, seal_cell, usage_digest
from bench_pipeline.attestation.truth import Subject, subject_of
from bench_pipeline.attestation.verifying import Verification, Verifier

__all__ = [
    "Attested",
    "AuditKey",
    "CellEvidence",
    "Examination",
    "Finding",
    "Scanned",
    "Subject",
    "Verdict",
    "Verification",
    "Verifier",
    "create_key",
    "find_key",
    "key_file",
    "load_key",
    "scan",
    "seal_cell",
    "subject_of",
    "usage_digest",
]


@dataclass(frozen=True)
class Attested:
    """What an attestation says of a cell, for scoring.

    ``digest`` names it and ``verdict`` is the re-derived one, both None where none was made; ``problem`` is why
    it does not verify or match.
    """

    digest: str | None
    verdict: Verdict | None
    problem: str | None = None
