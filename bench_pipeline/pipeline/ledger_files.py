"""The ledger files of a project: a folder of this machine, or an fsspec URL.

What belongs here: which files are ledgers, what tells cheaply that one may have changed, and opening one. What does
not: which of them are new (``ledger_watch``) and what they say (``ledgers``).
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from bench_pipeline.documents.files import open_regular
from bench_pipeline.errors import BenchError, NotFoundError
from bench_pipeline.project import Project

# Names under which programs keep a copy until it is whole.
_UNFINISHED = (".tmp", ".part", ".partial", ".crdownload", ".swp", "~")
_VERSIONS = ("LastModified", "mtime", "created", "etag", "ETag")


@dataclass(frozen=True)
class LedgerFile:
    """A file as it was listed: ``version`` and ``inode`` change when it may have been written or replaced."""

    name: str
    size: int
    version: str
    inode: int
    modified: float | None

    @property
    def stamp(self) -> list[str | int]:
        """What is compared to know whether to look."""
        return [self.size, self.version, self.inode]


class LedgerFolder:
    """Where a project's ledgers are."""

    def __init__(self, project: Project) -> None:
        folder = project.config.ledgers.folder
        self._remote = folder if "://" in folder else None
        self._path = project.root / folder

    def files(self) -> list[LedgerFile]:
        """The ledgers by name; none where there is no folder. Links are no ledgers: they could lead anywhere."""
        try:
            found = self._listed_remote() if self._remote else self._listed()
            return sorted(found, key=lambda file: file.name)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise BenchError("listing ledgers", str(error), "check ledgers.folder in config.yaml") from error

    @contextmanager
    def open(self, name: str) -> Iterator[tuple[IO[bytes], int]]:
        """A ledger's bytes, and how many there are now."""
        try:
            if self._remote:
                fs, base = self._file_system()
                size = int(fs.info(f"{base}/{name}")["size"])
                with fs.open(f"{base}/{name}", "rb") as stream:
                    yield stream, size
            else:
                with open_regular(self._path / name) as stream:
                    yield stream, os.fstat(stream.fileno()).st_size
        except FileNotFoundError as error:
            raise NotFoundError(
                "reading a ledger", f"{name} is gone", "put it back, or drop it anew"
            ) from error

    def _listed(self) -> Iterator[LedgerFile]:
        with os.scandir(self._path) as entries:
            for entry in entries:
                if _is_ledger(entry.name) and entry.is_file(follow_symlinks=False):
                    try:
                        found = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    version = str(found.st_mtime_ns)
                    yield LedgerFile(entry.name, found.st_size, version, found.st_ino, found.st_mtime)

    def _listed_remote(self) -> Iterator[LedgerFile]:
        fs, base = self._file_system()
        for info in fs.ls(base, detail=True):
            name = Path(info["name"]).name
            linked = info.get("islink") or stat.S_ISLNK(info.get("mode") or 0)
            if info["type"] == "file" and not linked and _is_ledger(name):
                versions = {key: str(info[key]) for key in _VERSIONS if info.get(key) is not None}
                times = (info.get(key) for key in ("mtime", "LastModified", "created"))
                modified = next((_seconds(time) for time in times if time is not None), None)
                yield LedgerFile(name, int(info["size"]), repr(versions), int(info.get("ino") or 0), modified)

    def _file_system(self) -> tuple[Any, str]:
        import fsspec.core

        try:
            fs, base = fsspec.core.url_to_fs(self._remote, use_listings_cache=False)
        except (ImportError, ValueError) as error:
            remedy = "install what it needs (for s3:// the extra bench-pipeline[s3]) or name another folder"
            raise BenchError(f"opening ledgers.folder {self._remote}", str(error), remedy) from error
        return fs, base.rstrip("/")


def _is_ledger(name: str) -> bool:
    return ".jsonl" in name and not name.startswith(".") and not name.endswith(_UNFINISHED)


def _seconds(time: Any) -> float | None:
    if isinstance(time, datetime):
        return time.timestamp()
    return float(time) if isinstance(time, (int, float)) else None
