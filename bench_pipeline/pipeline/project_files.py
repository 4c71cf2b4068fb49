"""The files that people put into a project, by content, hashed anew only where a stamp changed.

What belongs here: telling cheaply that documents are others than before. What does not: which tables are made from
which files (``provenance``) and reading documents.
"""

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bench_pipeline.identity import digest
from bench_pipeline.tasks.paths import path_text

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.store import Store

_FOLDERS = ("evaluations", "golden", "judgements", "predictions", "tasks", "telemetry", "tools")
_REMEMBERED = "made/files.json"
# Size, time, inode and time of the last change of name or owner: what is written, replaced or moved in has another.
Stamp = list[int]


class ProjectFiles:
    """The files of a project as they are when this is made; ``moving``: not all are as they were last remembered."""

    def __init__(self, bench: "Bench") -> None:
        self._root = bench.project.root
        self._store = bench.store
        self._stamps = dict(_stamps(self._root))
        self._known = _remembered(bench.store)
        self.moving = {path: stamp for path, (stamp, _) in self._known.items()} != self._stamps

    def digest(self, folders: Iterable[str]) -> str:
        """Of the names and contents of everything below the folders."""
        starts = tuple(f"{folder}/" for folder in folders)
        return digest(
            {path_text(path): self._content(path) for path in self._stamps if path.startswith(starts)}
        )

    def remember(self) -> None:
        """Keep the contents, so that the next look hashes only what has changed."""
        if self.moving:
            found = {path: (stamp, self._content(path)) for path, stamp in self._stamps.items()}
            self._store.files.write(_REMEMBERED, json.dumps(found).encode())

    def _content(self, path: str) -> str:
        stamp = self._stamps[path]
        if path not in self._known or self._known[path][0] != stamp:
            content = _sha256(self._root / path)
            # One that was written meanwhile is neither what it was nor what it is.
            same = _stamp(self._root / path) == stamp
            self._known[path] = (stamp, content if same else f"written since {stamp}")
        return self._known[path][1]


def _remembered(store: "Store") -> dict[str, tuple[Stamp, str]]:
    try:
        found = json.loads(store.files.read(_REMEMBERED))
        return {path: (list(stamp), str(content)) for path, (stamp, content) in found.items()}
    except (FileNotFoundError, ValueError, TypeError, AttributeError):
        return {}


def _stamps(root: Path) -> Iterator[tuple[str, Stamp]]:
    """Every regular file below the folders, by path; links are not followed, for they could lead anywhere."""
    for folder in _FOLDERS:
        for place, _, names in os.walk(root / folder):
            for name in names:
                path = Path(place, name)
                stamp = _stamp(path)
                if stamp is not None:
                    yield path.relative_to(root).as_posix(), stamp


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return [found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns]


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"unreadable: {error.strerror}"
