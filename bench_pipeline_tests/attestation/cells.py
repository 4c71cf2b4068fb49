"""A golden task, an agent's journal and a store, for tests of attestations."""

import io
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from bench_pipeline.attestation import AuditKey, CellEvidence, Scanned, Subject, scan, seal_cell, subject_of
from bench_pipeline.attestation.document import Sealed
from bench_pipeline.journal import JournalWriter
from bench_pipeline.store import Store
from bench_pipeline.tasks import GoldenTask
from bench_pipeline.tasks.signals import parse_signal

KEY = AuditKey(bytes(range(32)))
SCAN_KEY = b"k" * 32
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CANARY = "zanzibar-7f3a91c2"
SIGNALS = ("file_contains: notes.txt :: harbour lights", "the report lists every vessel that called in March")
COMMAND = "python -m unittest tests.test_ledger_totals"
FRONT_MATTER = "\n".join(
    [
        "id: harbour",
        "title: Harbour report",
        "completion_signals:",
        *(f"  - '{signal}'" for signal in SIGNALS),
        "expected_files_modified: [notes.txt, report/vessels.csv]",
        "expected_test_outcomes:",
        f"  {COMMAND}: true",
        "owned_files: [notes.txt, report]",
    ]
)
ANSWER = SIGNALS[1]
SCOPE = {
    "roots": ["/workspace"],
    "readable": ["/usr", "/etc", "/tmp", "/home/agent"],
    "denied": ["/project"],
    "endpoints": ["localhost:*"],
    "home": "/home/agent",
}


def golden(tree: Path | None = None, **changes: Any) -> GoldenTask:
    """The golden task."""
    fields: dict[str, Any] = {
        "id": "harbour",
        "tier": "smoke",
        "title": "Harbour report",
        "role": "backend",
        "prompt": "Write the report on the harbour. Use the files in the folder.",
        "file": Path("golden/smoke/harbour.md"),
        "front_matter": FRONT_MATTER,
        "signals": tuple(parse_signal(text) for text in SIGNALS),
        "expected_test_outcomes": {COMMAND: True},
        "workspace": tree,
    }
    return GoldenTask(**{**fields, **changes})


def subject(tree: Path, *, extra: tuple[str, ...] = (), **changes: Any) -> Subject:
    """The task's subject; ``tree`` is what the agent began with."""
    task = golden(tree, **changes)
    return subject_of(task.as_task(), task, tree, extra=extra)


def journal(
    *rows: tuple[str, Mapping[str, object]],
    scope: Mapping[str, object] = SCOPE,
    expected: list[str] | None = None,
    closed: bool = True,
) -> bytes:
    """A journal of these rows of activity, in its frame."""
    stream, ticks = io.BytesIO(), count()
    writer = JournalWriter(stream, lambda: START + timedelta(seconds=next(ticks)))
    writer.append("open", {"scope": scope, "expected": ["message", "read"] if expected is None else expected})
    for kind, payload in rows:
        writer.append(kind, payload)
    if closed:
        writer.append("close", {"exit_code": 0})
    return stream.getvalue()


def read(text: str, path: str = "/workspace/a.txt", **more: object) -> tuple[str, dict[str, object]]:
    """A row of a read."""
    return "read", {"path": path, "text": text, **more}


def scanned(tree: Path, *rows: tuple[str, Mapping[str, object]], **changes: Any) -> Scanned:
    """The scan of a journal of these rows."""
    return scan(journal(*rows), subject(tree, **changes), SCAN_KEY)


def findings(tree: Path, *rows: tuple[str, Mapping[str, object]], **changes: Any) -> list[tuple[int, str]]:
    """Row and kind of each finding."""
    return [(each.row, each.kind) for each in scanned(tree, *rows, **changes).examination.findings]


def sealed(store: Store, tree: Path, *rows: tuple[str, Mapping[str, object]], key: AuditKey = KEY) -> Sealed:
    """The attestation of a cell with these rows, in the store."""
    artifact = store.artifacts.put(journal(*rows), "application/jsonl")
    cell = CellEvidence("a" * 64, "b" * 64, "c" * 64, artifact)
    return seal_cell(store, key, cell, subject(tree), now=lambda: START)
