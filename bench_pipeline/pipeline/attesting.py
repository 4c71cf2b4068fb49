"""Attestations of this project's cells: sealed as cells are measured or when asked, verified before they count.

What belongs here: which cells, with which task and which journal. What does not: how an attestation is made and
believed (``bench_pipeline.attestation``) and what it does to a score (``golden``).
"""

import io
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.attestation import (
    Attested,
    AuditKey,
    CellEvidence,
    Scanned,
    Subject,
    Verifier,
    find_key,
    load_key,
    scan,
    seal_cell,
    subject_of,
    usage_digest,
)
from bench_pipeline.attestation.lineage import is_started
from bench_pipeline.attestation.power import Power, measure_power
from bench_pipeline.errors import BenchError, NotFoundError, RefusedError
from bench_pipeline.journal import inclusion_proof, leaves_of

if TYPE_CHECKING:
    from bench_pipeline.attestation import Verification
    from bench_pipeline.attestation.document import Sealed
    from bench_pipeline.pipeline.bench import Bench

JOURNAL = "journal"


@dataclass(frozen=True)
class AttestedCell:
    """A measured cell with what an attestation of it needs."""

    evidence: CellEvidence
    subject: Subject


def seal_measured(bench: "Bench", task_id: str, row: Mapping[str, Any]) -> str | None:
    """Seal a golden cell that has just been measured, when there is a key; ``row`` is its row in the verdicts.

    Returns why it could not be sealed, or None. A cell that was measured stays measured whatever comes of this.
    """
    if bench.project.config.attestation == "off" or task_id not in bench.golden.by_id:
        return None
    measured = row["outcome_class"] == "verdict" or row["outcome"] == "timeout"
    journal = dict(row["artifacts"]).get(JOURNAL)
    if not measured or journal is None:
        return None
    try:
        key = find_key()
        if key is not None:
            seal_cell(bench.store, key, _evidence(row, journal), _subject(bench, task_id))
    except (BenchError, OSError) as error:
        return f"{task_id} is not attested: {error}"
    return None


def attested_cell(bench: "Bench", identity: str, references: Sequence[Path] = ()) -> AttestedCell:
    """A stored cell by its identity, newest try first; ``references`` are extra texts of the answer.

    Raises NotFoundError when it has no journal, or its task is not in the project any more.
    """
    tries = bench.store.verdicts.history(identity).to_pylist()
    row = next((row for row in reversed(tries) if JOURNAL in dict(row["artifacts"] or ())), None)
    tried = f"attesting the cell {identity[:12]}"
    if row is None:
        raise NotFoundError(tried, "it has no journal", "run it again with `bench run --fresh`")
    planned = bench.store.tables.read("evaluation_cells", columns=["identity", "task_id"])
    names = planned.filter(pc.equal(planned["identity"], identity))["task_id"].to_pylist()
    if not names:
        raise NotFoundError(
            tried, "no evaluation plans it any more", "`bench table evaluation_cells` lists them"
        )
    evidence = _evidence(row, dict(row["artifacts"])[JOURNAL])
    return AttestedCell(evidence, _subject(bench, names[0], tuple(map(_reference, references))))


def seal_stored(bench: "Bench", cell: AttestedCell) -> "Sealed":
    """Seal a stored cell; raises NotFoundError without a key, RefusedError for a source that cannot be sealed."""
    return seal_cell(bench.store, load_key(), cell.evidence, cell.subject)


def scan_stored(bench: "Bench", cell: AttestedCell) -> Scanned:
    """Scan a stored cell and keep nothing; it needs no key."""
    return scan(bench.store.artifacts.get(cell.evidence.journal), cell.subject, secrets.token_bytes(32))


def power_of(bench: "Bench", cell: AttestedCell) -> Power:
    """How much of the cell's answer the scan would find in its journal; it needs no key."""
    return measure_power(
        bench.store.artifacts.get(cell.evidence.journal), cell.subject, secrets.token_bytes(32)
    )


def verify_stored(
    bench: "Bench", name: str, references: Sequence[Path] = (), public: str | None = None
) -> "Verification":
    """Verify an attestation of this project's store, with its key, or with a public key."""
    key = find_key()
    extra = tuple(map(_reference, references))
    return _verifier(bench, key, extra, public).verify(name)


def proven_findings(bench: "Bench", checked: "Verification") -> list[dict[str, Any]]:
    """The findings of a verified attestation; each row with its hash and what proves it against the sealed root."""
    assert checked.sealed is not None
    assert checked.examination is not None
    findings = checked.examination.findings
    journal = bench.store.artifacts.get(checked.sealed.attestation.journal.artifact) if findings else b""
    leaves = leaves_of(io.BytesIO(journal))
    return [
        {
            "row": each.row,
            "kind": each.kind,
            "row_hash": leaves[each.row].hex(),
            "proof": [node.hex() for node in inclusion_proof(leaves, each.row)],
        }
        for each in findings
    ]


def attested(bench: "Bench", verdicts: pa.Table) -> Mapping[str, Attested]:
    """What attestations say of cells, by identity: each verified, and matched to its task, cell and raw usage."""
    rows = verdicts.to_pylist()
    if not is_started(bench.store):
        return {row["identity"]: Attested(None, None) for row in rows}
    try:
        verifier = _verifier(bench, find_key())
        lineage = verifier.lineage
    except BenchError as error:
        return {row["identity"]: Attested(None, None, error.wrong) for row in rows}
    newest = {entry["cell"]: entry["attestation"] for entry in lineage.entries}
    found = {}
    for row in rows:
        name = newest.get(row["identity"])
        if name is None:
            found[row["identity"]] = Attested(None, None, lineage.problem)
        else:
            found[row["identity"]] = _matched(verifier, verifier.verify(name), row)
    return found


def _matched(verifier: Verifier, checked: "Verification", row: Mapping[str, Any]) -> Attested:
    if not checked.verified or checked.sealed is None or checked.examination is None:
        return Attested(checked.name, None, checked.problem)
    sealed, subject = checked.sealed.attestation, verifier.subjects(row["task_id"])
    wrong = {
        "it attests another task": sealed.task.id != row["task_id"],
        "its task has changed since": subject is None or subject.task_digest != sealed.task.digest,
        "it attests another cell": sealed.cell != row["identity"],
        "it attests another run of the cell": sealed.usage != usage_digest(row),
    }
    problem = next((reason for reason, holds in wrong.items() if holds), None)
    return Attested(checked.name, checked.examination.verdict if problem is None else None, problem)


def _verifier(
    bench: "Bench", key: AuditKey | None, extra: tuple[str, ...] = (), public: str | None = None
) -> Verifier:
    return Verifier(bench.store, key, cache(lambda name: _subject_at_hand(bench, name, extra)), public=public)


def _evidence(row: Mapping[str, Any], journal: str) -> CellEvidence:
    return CellEvidence(row["identity"].hex(), row["run_key"].hex(), usage_digest(row), journal)


def _subject(bench: "Bench", task_id: str, extra: tuple[str, ...] = ()) -> Subject:
    golden = bench.golden.by_id.get(task_id)
    task = golden.as_task() if golden is not None else bench.tasks.get(task_id)
    tree, _ = bench.base_tree(task)
    root = bench.project.root
    documents = tuple(root / name for name in bench.project.config.allowance)
    missing = [str(path) for path in documents if not path.exists()]
    if missing:
        tried = "reading the documentation that agents may read"
        raise RefusedError(tried, f"not there: {', '.join(missing)}", "correct allowance in config.yaml")
    return subject_of(task, golden, tree, extra=extra, documents=documents)


def _subject_at_hand(bench: "Bench", task_id: str, extra: tuple[str, ...] = ()) -> Subject | None:
    try:
        return _subject(bench, task_id, extra)
    except (BenchError, OSError):
        return None


def _reference(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise RefusedError(
            f"reading the reference text {path.name}", error.strerror or "", "check it"
        ) from None
