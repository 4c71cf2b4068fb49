"""What is done with a file that is proven to be corrupt: put aside with a reason, counted, reported.

What belongs here: moving the file and writing the reason. What does not: the proof (``parquet``,
``artifacts``). A store that is opened to read only moves nothing and still counts.
"""

import json
import logging
import secrets
import threading
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from bench_pipeline.errors import CorruptPartError
from bench_pipeline.store.files import Files

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Quarantined:
    """A corrupt file: where it was, what was wrong, and where it is now (None when nothing may be moved)."""

    path: str
    reason: str
    moved_to: str | None


class Quarantine:
    """The corrupt files that this process came upon since it opened the store."""

    def __init__(self, files: Files, *, read_only: bool) -> None:
        self._files = files
        self._read_only = read_only
        self._found: dict[str, Quarantined] = {}
        self._lock = threading.Lock()

    @property
    def found(self) -> list[Quarantined]:
        """Every corrupt file since the store was opened, in the order of discovery."""
        with self._lock:
            return list(self._found.values())

    @property
    def paths(self) -> set[str]:
        """The paths at which corrupt files were found."""
        with self._lock:
            return set(self._found)

    def put(self, path: str, error: CorruptPartError, data: bytes | None = None) -> Quarantined:
        """Put a corrupt file aside, with a note beside it; one that went away meanwhile is fine."""
        from bench_pipeline.identity import digest_bytes

        target = None
        if not self._read_only:
            target = f"quarantine/{secrets.token_hex(4)}-{path.rpartition('/')[2]}"
            note = {
                "path": path,
                "reason": error.wrong,
                "bytes": None if data is None else len(data),
                "sha256": None if data is None else digest_bytes(data),
                "found_at": datetime.now(UTC).isoformat(),
            }
            self._files.write(f"{target}.json", json.dumps(note, indent=1).encode() + b"\n")
            with suppress(FileNotFoundError):
                self._files.move(path, target)
        found = Quarantined(path, error.wrong, target)
        with self._lock:
            self._found[path] = found
        _log.warning("%s is corrupt (%s)%s", path, error.wrong, f"; put aside as {target}" if target else "")
        return found
