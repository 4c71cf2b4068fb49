"""Fresh folders for a cell to work in: a copy of its base tree, an empty HOME, a temporary folder.

What belongs here: a pool of such folders that are put back in order after each cell. What does not: base
trees (``base_trees``) and running anything.

Making and deleting thousands of files for each cell stalls a disk. A folder is therefore kept and only what a
cell changed is written again. Whether a file was touched is told by its ctime, which nobody inside a sandbox
can set; where the file system does not keep that promise every file is read and compared.
"""

import contextlib
import hashlib
import os
import stat
import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from bench_pipeline.errors import SandboxError
from bench_pipeline.execution.base_trees import base_manifest, is_kept, whole_manifest
from bench_pipeline.execution.leases import LOCK, Lease, lease_folder, sweep_folders
from bench_pipeline.execution.manifest import (
    Manifest,
    Stamp,
    Times,
    file_digest,
    honest_times,
)
from bench_pipeline.execution.sandbox import Place
from bench_pipeline.execution.treewalk import Found, open_file, read_link, remove, walk
from bench_pipeline.tasks.trees import EXECUTABLE, LINK

_PREFIX = "workspace-"
_FRESH = ("home", "tmp", "handover", "logs")
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20
# Every file of a base has one age, so that build tools find the same order of ages in every cell.
_BORN_NS = 1_000_000_000 * 10**9
_COARSE_CLOCK = 5


@dataclass
class Workspace:
    """One cell's folders. ``manifest`` is that of the fresh tree; ``logs`` is for what is captured."""

    place: Place
    logs: Path
    manifest: Manifest

    def renew_home(self) -> None:
        """Empty HOME and the temporary folder, as between two steps of a workflow.

        Raises:
            SandboxError: something could not be removed.
        """
        with _told("emptying HOME"):
            for folder in (self.place.home, self.place.tmp):
                _clear(folder)


@dataclass
class _Slot:
    """A folder of the pool, and what its tree is known to hold."""

    lease: Lease
    base: Path | None = None
    known: Manifest = field(default_factory=lambda: Manifest({}))

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self.lease.folder


class Workspaces:
    """A pool of workspaces below ``root``, for the threads of one process; others have their own.

    As a context manager, or when it is garbage, it removes its folders.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._guard = threading.Lock()
        self._idle: list[_Slot] = []
        self._bases: dict[Path, Manifest] = {}
        self._finalizer = weakref.finalize(self, _discard_all, self._idle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folders that are not in use."""
        with self._guard:
            _discard_all(self._idle)

    @contextlib.contextmanager
    def open(self, base: Path) -> Iterator[Workspace]:
        """A workspace whose tree is a copy of ``base``; when the block ends, nothing of it is left.

        Raises:
            SandboxError: it could not be made.
        """
        with _told("making a workspace"):
            wanted = self._base(base)
            slot = self._take(base)
            try:
                if slot.base != base or slot.known.entries != wanted.entries:
                    self._refresh(slot, base, wanted)
                workspace = Workspace(_place(slot.folder), slot.folder / "logs", slot.known)
            except BaseException:
                slot.lease.release()
                raise
        try:
            yield workspace
        finally:
            self._give_back(slot, base, wanted)

    def sweep(self) -> int:
        """Remove what processes that were killed have left; returns how many workspaces that were."""
        with _told("sweeping workspaces"):
            return sweep_folders(self._root, _PREFIX)

    def _take(self, base: Path) -> _Slot:
        """An idle slot, best one that has this base, else a new one."""
        with self._guard:
            for slot in self._idle:
                if slot.base == base:
                    self._idle.remove(slot)
                    return slot
            if self._idle:
                return self._idle.pop(0)
        self._root.mkdir(parents=True, exist_ok=True)
        slot = _Slot(lease_folder(self._root, _PREFIX))
        (slot.folder / "tree").mkdir()
        return slot

    def _refresh(self, slot: _Slot, base: Path, wanted: Manifest) -> None:
        """Put a slot in the state of ``base``, whose manifest is ``wanted``; nothing runs in it."""
        slot.known = _reset(slot.folder / "tree", slot.known, base, wanted)
        slot.base = base
        above = os.open(slot.folder, _FOLDER_FLAGS)
        try:
            for place in list(slot.folder.iterdir()):
                if place.name not in {"tree", LOCK, *_FRESH}:
                    remove(above, place.name)
        finally:
            os.close(above)
        for name in _FRESH:
            _clear(slot.folder / name)

    def _base(self, base: Path) -> Manifest:
        """The manifest of a base; one that is not kept may have changed since it was last taken."""
        with self._guard:
            known = self._bases.get(base)
        if known is None:
            known = base_manifest(base)
        elif not is_kept(base):
            known = whole_manifest(base, known)
        with self._guard:
            self._bases[base] = known
        return known

    def _give_back(self, slot: _Slot, base: Path, wanted: Manifest) -> None:
        """Clean up after a cell at once, so that nothing of it waits on the disk for the next one."""
        try:
            with _told("cleaning a workspace"):
                self._refresh(slot, base, wanted)
        except BaseException:
            slot.lease.release()
            raise
        with self._guard:
            self._idle.append(slot)


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SandboxError(what, str(error), "look at the disk that holds the workspaces") from error


def _place(folder: Path) -> Place:
    return Place(folder / "tree", folder / "home", folder / "tmp", handover=folder / "handover")


def _discard_all(slots: list[_Slot]) -> None:
    while slots:
        slots.pop().lease.release()


def _clear(folder: Path) -> None:
    """Make ``folder`` an empty folder of ours with usual rights, whatever it is now."""
    try:
        folder.mkdir()
    except FileExistsError:
        facts = folder.lstat()
        if facts.st_mode == stat.S_IFDIR | 0o755 and not any(folder.iterdir()):
            return
        above = os.open(folder.parent, _FOLDER_FLAGS)
        try:
            remove(above, folder.name)
        finally:
            os.close(above)
        folder.mkdir()
    folder.chmod(0o755)


def _reset(tree: Path, known: Manifest, base: Path, wanted: Manifest) -> Manifest:
    """Make ``tree`` hold exactly ``wanted``; returns what it then holds, with the times of its files.

    Args:
        tree: a folder in any state.
        known: what was written there by us, with times; a file that looks otherwise is written again.
        base: where the content comes from.
        wanted: the manifest of ``base``.
    """
    honest = honest_times(tree)
    folders = _folders(wanted)
    times: dict[str, Times] = {}
    present: set[str] = set()
    changed = False
    _usable(tree)
    for found in walk(tree):
        stamp = wanted.entries.get(found.path)
        if found.is_folder and found.path in folders and found.enter:
            times[found.path] = Times.of(found.stat)
            if known.times.get(found.path) != times[found.path]:
                _put_right(found)
                changed = True
        elif stamp is not None and _is_unchanged(found, stamp, known, honest=honest):
            present.add(found.path)
            if found.is_file:
                times[found.path] = Times.of(found.stat)
        else:
            found.enter = False
            remove(found.folder, found.name)
            changed = True
    missing = sorted(path for path in wanted.entries if path not in present)
    _write(tree, base, missing, wanted, times)
    if changed or missing:
        for path in folders:
            # The umask of whoever runs us must not show in a cell.
            (tree / path).chmod(0o755)
            times[path] = Times.of((tree / path).lstat())
        _let_clock_pass()
    return Manifest(wanted.entries, (), times)


def _folders(manifest: Manifest) -> set[str]:
    """Every folder that holds something of a manifest."""
    found: set[str] = set()
    for path in manifest.entries:
        parent = path.rpartition("/")[0]
        while parent and parent not in found:
            found.add(parent)
            parent = parent.rpartition("/")[0]
    return found


def _usable(tree: Path) -> None:
    """Make sure that the top of the tree is a folder of ours, with usual rights."""
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(tree.lstat().st_mode):
            tree.chmod(0o755)
            _forget_attributes(tree)
            return
    _clear(tree)


def _put_right(found: Found) -> None:
    """Give a folder its usual rights, and take away access lists and attributes that a cell gave it."""
    handle = os.open(found.name, _FOLDER_FLAGS, dir_fd=found.folder)
    try:
        if stat.S_IMODE(os.fstat(handle).st_mode) != 0o755:
            os.fchmod(handle, 0o755)
        _forget_attributes(handle)
    finally:
        os.close(handle)


def _forget_attributes(place: int | Path) -> None:
    with contextlib.suppress(OSError):
        for name in os.listxattr(place):
            if name.startswith(("user.", "system.posix_acl")):
                os.removexattr(place, name)


def _is_unchanged(found: Found, stamp: Stamp, known: Manifest, *, honest: bool) -> bool:
    """Whether an entry is still what we wrote and what is wanted now."""
    if found.is_link:
        target = os.fsencode(read_link(found))
        return stamp == Stamp(LINK, hashlib.sha256(target).hexdigest())
    if known.entries.get(found.path) != stamp or known.times.get(found.path) != Times.of(found.stat):
        return False
    if honest:
        return True
    file = open_file(found)
    if file is None:
        return False
    try:
        return file_digest(file) == stamp.digest
    finally:
        os.close(file)


def _write(tree: Path, base: Path, paths: list[str], wanted: Manifest, times: dict[str, Times]) -> None:
    """Copy files and links of a base into a tree that has nothing at their paths; notes their times."""
    parent, source, target = None, -1, -1
    try:
        for path in paths:
            above, _, name = path.rpartition("/")
            if above != parent:
                _close(source, target)
                (tree / above).mkdir(parents=True, exist_ok=True)
                source = os.open(base / above, _FOLDER_FLAGS)
                target = os.open(tree / above, _FOLDER_FLAGS)
                parent = above
            if wanted.entries[path].mode == LINK:
                os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
            else:
                times[path] = _copy(name, source, target, wanted.entries[path].mode)
    finally:
        _close(source, target)


def _close(*handles: int) -> None:
    for handle in handles:
        if handle >= 0:
            os.close(handle)


def _copy(name: str, source: int, target: int, mode: str) -> Times:
    reader = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=source)
    writer = -1
    try:
        writer = os.open(name, _NEW_FILE, 0o600, dir_fd=target)
        while chunk := os.read(reader, _CHUNK):
            while chunk:
                chunk = chunk[os.write(writer, chunk) :]
        os.fchmod(writer, 0o755 if mode == EXECUTABLE else 0o644)
        os.utime(writer, ns=(_BORN_NS, _BORN_NS))
        return Times.of(os.fstat(writer))
    finally:
        _close(reader, writer)


def _let_clock_pass() -> None:
    """Wait until a change of a file that was written last would show in its ctime; some milliseconds."""
    began = time.clock_gettime_ns(_COARSE_CLOCK)
    while time.clock_gettime_ns(_COARSE_CLOCK) == began:
        time.sleep(0.0005)
