"""Walking a folder that somebody hostile filled, without following a link or being led out of it.

What belongs here: visiting entries by folder descriptors, opening and removing them. What does not: which
entries count (``manifest``) and putting a folder back in order (``workspace``).

Paths are relative, with ``/``; names that are not UTF-8 travel as ``surrogateescape`` text.
"""

import contextlib
import itertools
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench_pipeline.tasks.paths import MAX_DEPTH

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(slots=True)
class Found:
    """One entry of a walk. Set ``enter`` to False to leave a folder's content out.

    ``folder`` is a descriptor of the folder that holds it, valid until the walk goes on.
    """

    path: str
    name: str
    folder: int
    stat: os.stat_result
    enter: bool = True

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder and no link to one."""
        return stat.S_ISDIR(self.stat.st_mode)

    @property
    def is_file(self) -> bool:
        """Whether it is a plain file."""
        return stat.S_ISREG(self.stat.st_mode)

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return stat.S_ISLNK(self.stat.st_mode)


def walk(root: Path) -> Iterator[Found]:
    """Every entry below ``root``, a folder before its content, in no particular order.

    A folder that cannot be opened, or lies too deep, is yielded with ``enter`` False. The entry may be
    removed or replaced while the walk stands on it.

    Raises:
        OSError: ``root`` itself is no folder, or is a link.
    """
    top = os.open(root, _FOLDER_FLAGS)
    stack = [(top, "", _names(top))]
    try:
        while stack:
            folder, prefix, names = stack[-1]
            if not names:
                os.close(stack.pop()[0])
                continue
            name = names.pop()
            try:
                found = Found(
                    prefix + name, name, folder, os.stat(name, dir_fd=folder, follow_symlinks=False)
                )
            except FileNotFoundError:
                continue
            below = _open_below(found) if found.is_folder and len(stack) < MAX_DEPTH else None
            found.enter = below is not None
            if below is not None:
                stack.append((below, found.path + "/", []))
            yield found
            if below is not None:
                if found.enter:
                    stack[-1][2].extend(_names(below))
                else:
                    os.close(stack.pop()[0])
    finally:
        for folder, _, _ in stack:
            os.close(folder)


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def _open_below(found: Found) -> int | None:
    try:
        return os.open(found.name, _FOLDER_FLAGS, dir_fd=found.folder)
    except PermissionError:
        _make_readable(found, 0o700)
    except OSError:
        return None
    with contextlib.suppress(OSError):
        return os.open(found.name, _FOLDER_FLAGS, dir_fd=found.folder)
    return None


def open_file(found: Found) -> int | None:
    """A descriptor for reading a plain file; None when it cannot be read or is something else by now.

    A file that its owner, who we are, made unreadable is made readable first.
    """
    try:
        file = os.open(found.name, _FILE_FLAGS, dir_fd=found.folder)
    except PermissionError:
        _make_readable(found, 0o600)
        try:
            file = os.open(found.name, _FILE_FLAGS, dir_fd=found.folder)
        except OSError:
            return None
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    return None


def _make_readable(found: Found, bits: int) -> None:
    """Add permission bits to exactly the entry that was found, by a descriptor that follows no link."""
    with contextlib.suppress(OSError):
        handle = os.open(found.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=found.folder)
        try:
            Path(f"/proc/self/fd/{handle}").chmod(stat.S_IMODE(found.stat.st_mode) | bits)
        finally:
            os.close(handle)


def read_link(found: Found) -> str:
    """The target of a symbolic link, as it is written."""
    return os.readlink(found.name, dir_fd=found.folder)


def remove(folder: int, name: str) -> None:
    """Remove an entry of the folder ``folder`` with everything below it, however deep it is.

    Raises:
        OSError: something could not be removed.
    """
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except (IsADirectoryError, PermissionError):
        try:
            shutil.rmtree(name, dir_fd=folder)
        except (OSError, RecursionError):
            # Closed folders, or more levels than descriptors.
            _remove_level_by_level(folder, name)


def _remove_level_by_level(folder: int, name: str) -> None:
    """Empty folders one by one after moving them up to ``folder``: no long paths, one descriptor at a time."""
    ahead = [name]
    serial = itertools.count()
    token = secrets.token_hex(8)
    while ahead:
        current = ahead[-1]
        _open_up(folder, current)
        handle = os.open(current, _FOLDER_FLAGS, dir_fd=folder)
        try:
            for child in _emptied(handle):
                lifted = f".removed-{token}-{next(serial)}"
                os.rename(child, lifted, src_dir_fd=handle, dst_dir_fd=folder)
                ahead.insert(0, lifted)
        finally:
            os.close(handle)
        os.rmdir(current, dir_fd=folder)
        ahead.pop()


def _emptied(handle: int) -> list[str]:
    """Unlink what is no folder; returns the folders that are left, made ready to be moved."""
    folders = []
    for name in _names(handle):
        try:
            os.unlink(name, dir_fd=handle)
        except (IsADirectoryError, PermissionError):
            _open_up(handle, name)
            folders.append(name)
    return folders


def _open_up(folder: int, name: str) -> None:
    facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISDIR(facts.st_mode) and facts.st_mode & 0o700 != 0o700:
        _make_readable(Found(name, name, folder, facts), 0o700)
