"""Folders that belong to a living process, and finding those whose process is gone.

What belongs here: making, sweeping and removing such folders. What does not: what is in them.
"""

import fcntl
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from bench_pipeline.execution.treewalk import remove

LOCK = "lock"


@dataclass
class Lease:
    """A folder that is ours until it is released or our process ends."""

    folder: Path
    handle: int
    owner: int = field(default_factory=os.getpid)

    def release(self) -> None:
        """Remove the folder with everything in it; not in a process that was forked off the owner."""
        if os.getpid() != self.owner:
            return
        above = os.open(self.folder.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            remove(above, self.folder.name)
        finally:
            os.close(above)
            os.close(self.handle)


def lease_folder(parent: Path, prefix: str) -> Lease:
    """A new folder below ``parent`` that only its owner can enter, with nothing in it but the lock.

    Raises:
        OSError: it could not be made.
    """
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    handle = _lock(folder)
    assert handle is not None
    return Lease(folder, handle)


def sweep_folders(parent: Path, prefix: str) -> int:
    """Remove our own folders with that prefix whose processes are gone; returns how many these were.

    Raises:
        OSError: one could not be removed.
    """
    swept = 0
    for folder in sorted(parent.glob(f"{prefix}*/")):
        handle = _lock(folder) if _is_ours(folder) else None
        if handle is not None:
            Lease(folder, handle).release()
            swept += 1
    return swept


def _is_ours(folder: Path) -> bool:
    return not folder.is_symlink() and folder.stat().st_uid == os.geteuid()


def _lock(folder: Path) -> int | None:
    """The lock of a folder, held as long as the descriptor is open; None when another process holds it."""
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle
