"""What keeps attestations from being swapped or lost: the lineage spine and the audit chain that mirrors it.

What belongs here: appending to both, reading them, repairing an append that was cut off. What does not: what
an attestation says. The spine is ``lineage/NNNNNN.jsonl``, where each entry holds the hash of the one before;
``lineage/head.json`` counts entries under an HMAC, so that a cut tail shows. The audit chain is
``audit/<day>.jsonl``, where each row's HMAC covers that of the row before. Putting a whole older state back is
what only something outside of the store can show.

An append is journalled: its entry is written to ``lineage/pending.json`` first and taken away last; whatever
lies between is finished by the next one who holds the lock. Every file is replaced whole.
"""

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from bench_pipeline.attestation.keys import AuditKey
from bench_pipeline.errors import StoreError
from bench_pipeline.identity import canonical_json, digest
from bench_pipeline.journal import NO_HASH
from bench_pipeline.store import Store

LOCK: Final = "lineage"
_HEAD: Final = "lineage/head.json"
_PENDING: Final = "lineage/pending.json"
_FOLDERS: Final = ("lineage", "attestations", "audit")
# A segment is rewritten with every append: small enough to be cheap, large enough that there are few.
_SEGMENT: Final = 1000
_ENTRY: Final = {"attestation", "cell", "hash", "previous", "sequence", "task", "time"}
_ROW: Final = {"attestation", "entry", "event", "mac", "previous", "sequence", "time"}
_HEAD_KEYS: Final = {"entries", "hash", "key_id", "mac"}

Entry = dict[str, Any]


def attestation_path(name: str) -> str:
    """Where the attestation of a hash is kept."""
    return f"attestations/{name}.json"


@dataclass(frozen=True)
class Lineage:
    """The entries of the spine and the rows of the audit chain, and what is wrong with each, or None."""

    entries: tuple[Entry, ...]
    rows: tuple[Entry, ...]
    spine_problem: str | None
    audit_problem: str | None

    @property
    def problem(self) -> str | None:
        """What is wrong with either of them."""
        return self.spine_problem or self.audit_problem

    def anchor_problem(self, attestation: str) -> str | None:
        """Why the spine does not anchor an attestation, or None."""
        found = [entry for entry in self.entries if entry["attestation"] == attestation]
        return None if len(found) == 1 else f"the spine has {len(found)} entries of it, expected one"

    def mirror_problem(self, attestation: str) -> str | None:
        """Why the audit chain does not mirror its anchor, or None."""
        if self.audit_problem is not None:
            return self.audit_problem
        entry = next(entry for entry in self.entries if entry["attestation"] == attestation)
        mirrored = [row for row in self.rows if row["attestation"] == attestation]
        if [(row["sequence"], row["entry"]) for row in mirrored] != [(entry["sequence"], entry["hash"])]:
            return "the audit chain has no row of it, or another one"
        return None


def read_lineage(store: Store, key: AuditKey | None) -> Lineage:
    """Read spine and audit chain; without a key, what only the key can tell is left unsaid."""
    entries, spine = _read_spine(store)
    rows, audit = _read_audit(store, key)
    spine = spine or _head_problem(store, key, entries) or _unknown_problem(store, entries)
    if audit is None and [(row["sequence"], row["entry"]) for row in rows] != [
        (entry["sequence"], entry["hash"]) for entry in entries
    ]:
        audit = f"it has {len(rows)} rows that do not mirror the {len(entries)} entries of the spine"
    return Lineage(tuple(entries), tuple(rows), spine, audit)


def is_started(store: Store) -> bool:
    """Whether a store has anything of attestations: one that never had any says nothing of its cells."""
    return any(store.files.list(folder) for folder in _FOLDERS)


class Appender:
    """Appends to the lineage of a store; use it under ``store.lock(LOCK)``. Repairs what was cut off first.

    Raises StoreError when what is there is not whole: nothing is appended to it.
    """

    def __init__(self, store: Store, key: AuditKey) -> None:
        self._store = store
        self._key = key
        self._repair()
        found = read_lineage(store, key)
        if found.problem is not None:
            raise StoreError(
                "appending to the lineage of attestations", found.problem, "look at lineage/ and audit/"
            )
        self._entries = list(found.entries)
        self._rows = list(found.rows)

    @property
    def last(self) -> str | None:
        """The hash of the newest attestation."""
        return self._entries[-1]["attestation"] if self._entries else None

    def append(self, name: str, data: bytes, *, task: str, cell: str, now: datetime) -> None:
        """Keep an attestation by its hash, anchored and mirrored."""
        entry: Entry = {
            "sequence": len(self._entries) + 1,
            "attestation": name,
            "task": task,
            "cell": cell,
            "time": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "previous": self._entries[-1]["hash"] if self._entries else NO_HASH,
        }
        entry["hash"] = digest(entry)
        self._write(_PENDING, {"entry": entry, "mac": self._key.mac("pending", entry)})
        self._store.files.create(attestation_path(name), data, private=True)
        self._finish(entry)

    def _repair(self) -> None:
        pending = _document(self._store, _PENDING)
        if pending is None:
            return
        entry = pending.get("entry")
        if not _same(self._key.mac("pending", entry), pending.get("mac")):
            raise StoreError(
                "repairing the lineage of attestations",
                "the append that was cut off is not ours",
                f"look at {_PENDING}",
            )
        self._entries, _ = _read_spine(self._store)
        self._rows, _ = _read_audit(self._store, self._key)
        assert isinstance(entry, dict)
        if self._store.files.info(attestation_path(entry["attestation"])) is not None:
            self._finish(entry)
        else:
            self._store.files.delete(_PENDING)

    def _finish(self, entry: Entry) -> None:
        """Anchor, count, mirror; each step only where it is not done yet."""
        number = entry["sequence"]
        if len(self._entries) == number - 1:
            self._entries.append(entry)
            start = (number - 1) // _SEGMENT * _SEGMENT
            self._write_lines(f"lineage/{start // _SEGMENT:06d}.jsonl", self._entries[start:])
        head = {"entries": number, "hash": entry["hash"], "key_id": self._key.id}
        self._write(_HEAD, {**head, "mac": self._key.mac("head", head)})
        if len(self._rows) == number - 1:
            self._mirror(entry)
        self._store.files.delete(_PENDING)

    def _mirror(self, entry: Entry) -> None:
        row = {
            "event": "sealed",
            "sequence": entry["sequence"],
            "attestation": entry["attestation"],
            "entry": entry["hash"],
            "time": entry["time"],
            "previous": self._rows[-1]["mac"] if self._rows else NO_HASH,
        }
        row["mac"] = self._key.mac("audit", row)
        days = _days(self._store)
        # A clock that went back starts no earlier day: rows stay in the order of their files.
        day = max([entry["time"][:10], *days])
        rows = [*_lines(self._store.files.read(f"audit/{day}.jsonl")), row] if day in days else [row]
        self._write_lines(f"audit/{day}.jsonl", rows)
        self._rows.append(row)

    def _write(self, path: str, document: Mapping[str, object]) -> None:
        self._store.files.write(path, canonical_json(document) + b"\n", private=True)

    def _write_lines(self, path: str, documents: list[Entry]) -> None:
        data = b"".join(canonical_json(each) + b"\n" for each in documents)
        self._store.files.write(path, data, private=True)


def repair(store: Store, key: AuditKey) -> None:
    """Finish an append that was cut off, if there is one."""
    if not store.read_only and store.files.info(_PENDING) is not None:
        with store.lock(LOCK):
            Appender(store, key)


def _read_spine(store: Store) -> tuple[list[Entry], str | None]:
    entries: list[Entry] = []
    names = [info.path for info in store.files.list("lineage") if info.path.endswith(".jsonl")]
    for number, path in enumerate(names):
        if path != f"lineage/{number:06d}.jsonl" or len(entries) != number * _SEGMENT:
            return entries, "a segment of the spine is missing"
        try:
            segment = _lines(store.files.read(path))
        except ValueError:
            return entries, f"{path} is not as it was written"
        for entry in segment:
            rest = {name: value for name, value in entry.items() if name != "hash"}
            previous = entries[-1]["hash"] if entries else NO_HASH
            wanted = (len(entries) + 1, previous, digest(rest))
            if entry.keys() != _ENTRY or (entry["sequence"], entry["previous"], entry["hash"]) != wanted:
                return entries, f"entry {len(entries) + 1} of the spine does not follow from the one before"
            entries.append(entry)
    return entries, None


def _head_problem(store: Store, key: AuditKey | None, entries: list[Entry]) -> str | None:
    try:
        head = _document(store, _HEAD)
    except StoreError as error:
        return error.wrong
    if head is None:
        return "the head of the spine is missing" if entries else None
    rest = {name: value for name, value in head.items() if name != "mac"}
    wrong = {
        "the head of the spine is not as it was written": head.keys() != _HEAD_KEYS,
        "the spine was made with another key": key is not None and head.get("key_id") != key.id,
        "the head of the spine is not ours": key is not None
        and not _same(key.mac("head", rest), head.get("mac")),
    }
    if any(wrong.values()):
        return next(reason for reason, holds in wrong.items() if holds)
    last = entries[-1]["hash"] if entries else NO_HASH
    if (head["entries"], head["hash"]) != (len(entries), last):
        return f"the spine has {len(entries)} entries, its head counts {head['entries']}"
    return None


def _unknown_problem(store: Store, entries: list[Entry]) -> str | None:
    """Attestations without an entry: somebody took the spine, or its end, away with its head."""
    if store.files.info(_PENDING) is not None:
        return "an append was cut off; sealing again or verifying with the key finishes it"
    known = {attestation_path(entry["attestation"]) for entry in entries}
    unknown = sum(info.path not in known for info in store.files.list("attestations"))
    return f"it does not know {unknown} of the attestations" if unknown else None


def _read_audit(store: Store, key: AuditKey | None) -> tuple[list[Entry], str | None]:
    rows: list[Entry] = []
    for day in _days(store):
        try:
            found = _lines(store.files.read(f"audit/{day}.jsonl"))
        except ValueError:
            return rows, f"audit/{day}.jsonl is not as it was written"
        for row in found:
            if row.keys() != _ROW or row["previous"] != (rows[-1]["mac"] if rows else NO_HASH):
                return rows, f"row {len(rows) + 1} of the audit chain does not follow from the one before"
            rest = {name: value for name, value in row.items() if name != "mac"}
            if key is not None and not _same(key.mac("audit", rest), row["mac"]):
                return rows, f"row {len(rows) + 1} of the audit chain is not ours"
            rows.append(row)
    return rows, None


def _days(store: Store) -> list[str]:
    names = (info.path for info in store.files.list("audit"))
    return sorted(name[len("audit/") : -len(".jsonl")] for name in names if name.endswith(".jsonl"))


def _same(mac: str, found: object) -> bool:
    return isinstance(found, str) and hmac.compare_digest(mac.encode(), found.encode("utf-8", "replace"))


def _document(store: Store, path: str) -> Entry | None:
    try:
        data = store.files.read(path)
    except FileNotFoundError:
        return None
    try:
        (document,) = _lines(data)
    except ValueError:
        raise StoreError(f"reading {path}", f"{path} is not as it was written", "put it back") from None
    return document


def _lines(data: bytes) -> list[Entry]:
    """The objects of a file; ValueError unless every byte is as it was written."""
    found = []
    for line in data.split(b"\n")[:-1]:
        try:
            value = json.loads(line)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        if not isinstance(value, dict) or canonical_json(value) != line:
            raise ValueError("not canonical")
        found.append(value)
    if not data.endswith(b"\n"):
        raise ValueError("a line is cut")
    return found
