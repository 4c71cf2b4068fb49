"""Looking after a store: the use cases of ``bench store``.

What belongs here: what each command does and the document it prints. What does not: how (``bench_pipeline.store``).
"""

from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench_pipeline.store import Store

Document = dict[str, object]


def verify_store(store: "Store", *, put_aside: bool = False) -> Document:
    """Read everything and check it.

    Returns counts of what was read, ``findings`` ([{path, reason, moved_to}]), ``in_quarantine`` (corrupt files put
    aside so far) and ``whole``: whether there are no findings.
    """
    report = store.verify(put_aside=put_aside)
    aside = [info for info in store.files.list("quarantine") if not info.path.endswith(".json")]
    return {**asdict(report), "in_quarantine": len(aside), "whole": not report.findings}


def compact_store(store: "Store") -> Document:
    """Merge small parts; returns how many parts there were and are, of verdicts and candidates."""
    return asdict(store.compact()) | _put_aside(store)


def migrate_store(store: "Store") -> Document:
    """Rewrite files of older versions; returns how many parts and table files that were."""
    return asdict(store.migrate()) | _put_aside(store)


def clean_store(store: "Store", *, dry_run: bool, grace_s: float | None = None) -> Document:
    """Remove what nothing refers to and nobody finished; returns counts and bytes. ``dry_run`` removes nothing."""
    return asdict(store.gc(dry_run=dry_run, grace_s=grace_s)) | _put_aside(store)


def forget_cell(store: "Store", identity: str) -> Document:
    """Remove an identity's rows and the evidence that only they name; returns how much that was."""
    return asdict(store.forget(identity)) | _put_aside(store)


def _put_aside(store: "Store") -> Document:
    """The corrupt files that were come upon on the way."""
    return {"quarantined": [asdict(found) for found in store.quarantined]}
