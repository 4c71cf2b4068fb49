"""Where the bytes of a store are: a folder on this machine, or an fsspec location.

What belongs here: reading, listing, and writing whole files so that a reader sees all of a file or none of
it. What does not: what the bytes mean. Paths are relative to the store, with ``/``; every path is made by
this package from checked parts, never from an id as it came.

A local write is a temporary file in the same folder, fsync, rename, fsync of the folder. An object store's
put is atomic by itself. Every OSError but a file that is not there becomes a StoreError, and moves nothing.
"""

import errno
import os
import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from bench_pipeline.errors import StoreError

_CHUNK = 1 << 20
_SHARED, _PRIVATE = 0o666, 0o600
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


@dataclass(frozen=True, order=True)
class FileInfo:
    """A file: its path, size in bytes, and when it was written (seconds since 1970, None if unknown)."""

    path: str
    size: int
    modified: float | None


class Files(ABC):
    """Whole files under one location."""

    location: str

    @abstractmethod
    def read(self, path: str) -> bytes:
        """The whole file; raises FileNotFoundError where there is none, StoreError when reading fails."""

    @abstractmethod
    def tail(self, path: str, size: int) -> bytes:
        """The last ``size`` bytes of a file, all of a smaller one; raises as ``read`` does."""

    @abstractmethod
    def write(self, path: str, data: bytes, *, private: bool = False) -> None:
        """Put a whole file in place, durable when this returns; an earlier one is replaced.

        ``private``: on this machine nobody but its owner may read it; an object store has rules of its own.
        """

    @abstractmethod
    def create(self, path: str, data: bytes, *, private: bool = False) -> bool:
        """Put a whole file in place unless there is another; whether it was put. ``private`` as for ``write``."""

    @abstractmethod
    def adopt(self, path: str, source: Path) -> None:
        """As ``write``, from a local file, without holding it in memory."""

    @abstractmethod
    def list(self, folder: str, *, unfinished: bool = False) -> list[FileInfo]:
        """The files below a folder, by path; none if it is absent. ``unfinished``: temporary ones alone."""

    @abstractmethod
    def info(self, path: str) -> FileInfo | None:
        """One file, or None where there is none."""

    @abstractmethod
    def one_of(self, stem: str, suffixes: Sequence[str]) -> str | None:
        """The first of the files ``stem`` + suffix that is there, or None."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove a file; one that is not there is fine."""

    @abstractmethod
    def move(self, source: str, target: str) -> None:
        """Move a file to a path that is free; raises FileNotFoundError where there is none."""

    @abstractmethod
    def touch(self, path: str) -> None:
        """Make a file as young as one written now."""

    @abstractmethod
    def local(self, path: str) -> Path | None:
        """The file's path on this machine, or None on an object store."""

    def url(self, path: str) -> str:
        """What DuckDB, pandas or pyarrow open the file by."""
        return f"{self.location}/{path}"


def open_files(location: str | Path) -> Files:
    """The files at a local path, a ``file://`` URL or another fsspec URL; touches nothing."""
    text = str(location)
    scheme, separator, _ = text.partition("://")
    if not separator:
        return LocalFiles(Path(text))
    if scheme == "file":
        return LocalFiles(Path(unquote(urlsplit(text).path)))
    return RemoteFiles(text)


class LocalFiles(Files):
    """Files in a folder of this machine."""

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().absolute()
        self.location = str(self.root)

    def local(self, path: str) -> Path:
        """The file's path on this machine."""
        return self.root / path

    def read(self, path: str) -> bytes:
        """See Files."""
        with _failures(f"reading {path}", missing=True):
            return (self.root / path).read_bytes()

    def tail(self, path: str, size: int) -> bytes:
        """See Files."""
        with _failures(f"reading {path}", missing=True), (self.root / path).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - size))
            return file.read(size)

    def write(self, path: str, data: bytes, *, private: bool = False) -> None:
        """See Files."""
        with _failures(f"writing {path}"):
            self._install(path, lambda out: out.write(data), os.replace, _PRIVATE if private else _SHARED)

    def create(self, path: str, data: bytes, *, private: bool = False) -> bool:
        """See Files."""
        with _failures(f"writing {path}"):
            try:
                self._install(path, lambda out: out.write(data), _link, _PRIVATE if private else _SHARED)
            except FileExistsError:
                return False
        return True

    def adopt(self, path: str, source: Path) -> None:
        """See Files."""

        def copy(out: IO[bytes]) -> None:
            with source.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    out.write(chunk)

        with _failures(f"writing {path}"):
            self._install(path, copy, os.replace)

    def list(self, folder: str, *, unfinished: bool = False) -> list[FileInfo]:
        """See Files."""
        with _failures(f"listing {folder}"):
            return sorted(self._walk(folder, unfinished))

    def info(self, path: str) -> FileInfo | None:
        """See Files."""
        with _failures(f"reading {path}"):
            try:
                found = (self.root / path).stat()
            except FileNotFoundError:
                return None
        return FileInfo(path, found.st_size, found.st_mtime)

    def one_of(self, stem: str, suffixes: Sequence[str]) -> str | None:
        """See Files."""
        return next((stem + suffix for suffix in suffixes if self.info(stem + suffix) is not None), None)

    def delete(self, path: str) -> None:
        """See Files."""
        with _failures(f"deleting {path}"):
            (self.root / path).unlink(missing_ok=True)

    def move(self, source: str, target: str) -> None:
        """See Files."""
        with _failures(f"moving {source} to {target}", missing=True):
            place = self.root / target
            self._make_folder(place.parent)
            (self.root / source).rename(place)
            _sync_folder(place.parent)

    def touch(self, path: str) -> None:
        """See Files."""
        with _failures(f"touching {path}", missing=True):
            os.utime(self.root / path)

    def _walk(self, folder: str, unfinished: bool) -> Iterator[FileInfo]:
        try:
            with os.scandir(self.root / folder) as entries:
                found = list(entries)
        except FileNotFoundError:
            return
        for entry in found:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from self._walk(path, unfinished)
            elif _is_temporary(entry.name) == unfinished:
                try:
                    stat = entry.stat()
                except FileNotFoundError:
                    continue
                yield FileInfo(path, stat.st_size, stat.st_mtime)

    def _install(
        self,
        path: str,
        fill: Callable[[IO[bytes]], object],
        place: Callable[[Path, Path], None],
        mode: int = _SHARED,
    ) -> None:
        target = self.root / path
        self._make_folder(target.parent)
        temporary = target.parent / f".{secrets.token_hex(8)}.tmp"
        try:
            with os.fdopen(os.open(temporary, _NEW, mode), "wb") as out:
                fill(out)
                out.flush()
                os.fsync(out.fileno())
            place(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_folder(target.parent)

    def _make_folder(self, folder: Path) -> None:
        missing = []
        while not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        for new in reversed(missing):
            new.mkdir(exist_ok=True)
            _sync_folder(new.parent)


class RemoteFiles(Files):
    """Files behind an fsspec URL; the file system is opened when first used."""

    # An object store's own put-if-absent decides between machines; the in-memory one checks, then writes.
    _creating = threading.Lock()

    def __init__(self, location: str) -> None:
        self.location = location.rstrip("/")
        self._opened: tuple[Any, str] | None = None

    def _at(self, path: str) -> tuple[Any, str]:
        if self._opened is None:
            import fsspec.core

            try:
                fs, base = fsspec.core.url_to_fs(self.location, use_listings_cache=False)
            except (ImportError, ValueError) as error:
                remedy = (
                    "install what it needs (for s3:// the extra bench-pipeline[s3]) or name another location"
                )
                raise StoreError(f"opening the store {self.location}", str(error), remedy) from error
            self._opened = (fs, base.rstrip("/"))
        fs, base = self._opened
        return fs, f"{base}/{path}" if path else base

    def local(self, path: str) -> None:
        """See Files."""

    def read(self, path: str) -> bytes:
        """See Files."""
        fs, place = self._at(path)
        with _failures(f"reading {path}", missing=True):
            data: bytes = fs.cat_file(place)
        return data

    def tail(self, path: str, size: int) -> bytes:
        """See Files."""
        fs, place = self._at(path)
        with _failures(f"reading {path}", missing=True):
            data: bytes = fs.cat_file(place, start=-size)
        return data

    def write(self, path: str, data: bytes, *, private: bool = False) -> None:  # noqa: ARG002
        """See Files."""
        fs, place = self._at(path)
        with _failures(f"writing {path}"):
            fs.pipe_file(place, data)

    def create(self, path: str, data: bytes, *, private: bool = False) -> bool:  # noqa: ARG002
        """See Files."""
        fs, place = self._at(path)
        with _failures(f"writing {path}"), self._creating:
            try:
                fs.pipe_file(place, data, mode="create")
            except OSError:
                # Stores name a conflict in ways of their own, and a put whose answer was lost conflicts with itself.
                found = self._content(path)
                if found is None:
                    raise
                return found == data
        return True

    def _content(self, path: str) -> bytes | None:
        try:
            return self.read(path)
        except FileNotFoundError:
            return None

    def adopt(self, path: str, source: Path) -> None:
        """See Files."""
        fs, place = self._at(path)
        with _failures(f"writing {path}"):
            fs.put_file(str(source), place)

    def list(self, folder: str, *, unfinished: bool = False) -> list[FileInfo]:
        """See Files."""
        if unfinished:
            return []
        fs, place = self._at(folder)
        _, base = self._at("")
        with _failures(f"listing {folder}"):
            try:
                found = fs.find(place, detail=True)
            except FileNotFoundError:
                found = {}
        return sorted(_file_info(name[len(base) + 1 :], entry) for name, entry in found.items())

    def info(self, path: str) -> FileInfo | None:
        """See Files."""
        fs, place = self._at(path)
        with _failures(f"reading {path}"):
            try:
                return _file_info(path, fs.info(place))
            except FileNotFoundError:
                return None

    def one_of(self, stem: str, suffixes: Sequence[str]) -> str | None:
        """See Files; one request, where asking for a file that is not there takes two."""
        folder, _, name = stem.rpartition("/")
        fs, place = self._at(folder)
        with _failures(f"listing {folder}"):
            try:
                found = fs.find(place, prefix=name)
            except FileNotFoundError:
                found = []
        there = {path[len(place) + 1 :] for path in found}
        return next((stem + suffix for suffix in suffixes if name + suffix in there), None)

    def delete(self, path: str) -> None:
        """See Files."""
        fs, place = self._at(path)
        with _failures(f"deleting {path}"):
            try:
                fs.rm_file(place)
            except FileNotFoundError:
                return

    def move(self, source: str, target: str) -> None:
        """See Files."""
        self.write(target, self.read(source))
        self.delete(source)

    def touch(self, path: str) -> None:
        """See Files."""
        self.write(path, self.read(path))


@contextmanager
def _failures(tried: str, *, missing: bool = False) -> Iterator[None]:
    """Turn a failure of the disk or the object store into a StoreError.

    ``missing`` lets FileNotFoundError through, where the caller decides what an absent file means. Remote
    file systems raise errors of their own clients, so whatever comes from below counts as a failure of the
    store.
    """
    try:
        yield
    except StoreError:
        raise
    except FileNotFoundError as error:
        if missing:
            raise
        raise StoreError(
            tried, _reason(error), "the store's folder went away; look at its location"
        ) from error
    except Exception as error:
        raise StoreError(tried, _reason(error), _remedy(error)) from error


def _reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"{type(error).__name__}: {text}"


def _remedy(error: Exception) -> str:
    number = error.errno if isinstance(error, OSError) else None
    if number in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return "free some space and run again; nothing was half-written"
    if number in {errno.EMFILE, errno.ENFILE}:
        return "raise the limit of open files (ulimit -n) or lower the concurrency; nothing was set aside"
    if number in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return "check who owns the store and whether it can be written"
    return "look at the disk or the object store and run again; nothing was set aside"


def _file_info(path: str, entry: dict[str, Any]) -> FileInfo:
    written = next(
        (entry[key] for key in ("LastModified", "mtime", "modified", "created") if entry.get(key)), None
    )
    if isinstance(written, datetime):
        written = written.timestamp()
    return FileInfo(
        path, int(entry.get("size") or 0), float(written) if isinstance(written, (int, float)) else None
    )


def _is_temporary(name: str) -> bool:
    return name.startswith(".") and name.endswith(".tmp")


def _link(temporary: Path, target: Path) -> None:
    """Give a file its name unless the name is taken, in one step."""
    os.link(temporary, target)
    temporary.unlink()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems know no fsync of a folder: their rename is durable or nothing is.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(handle)
