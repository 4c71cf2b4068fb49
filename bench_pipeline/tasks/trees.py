"""Folders of plain files: reading, writing, copying and digesting them without ever following a link.

What belongs here: a tree as (path, mode, content), modes as Git writes them. What does not: Git objects
(``git``), patches (``patches``) and what a tool left behind (``execution``).

Empty folders are no part of a tree, as in Git; ``.git`` in any spelling is never read or written. Nor are the
caches of interpreters: they come and go with whatever ran, and would change every key that a tree is part of.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from bench_pipeline.tasks.paths import in_cache, is_cache, is_git_name, link_problem, path_problem

PLAIN, EXECUTABLE, LINK = "100644", "100755", "120000"
_FOLDER_MODE = 0o755  # whatever the umask is: the sandbox may run as another user
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_IN_THE_WAY = {errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST}
_NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class TreeFile:
    """One file or link of a tree: ``content`` is a link's target when ``mode`` is that of a link."""

    path: str
    mode: str
    content: bytes


@dataclass(frozen=True)
class Dropped:
    """One entry of a source that did not become a file of the tree, and why."""

    path: str
    why: str


class TreeWriter:
    """Writes files below ``root``; parents are made as needed, and a link among them is an OSError."""

    def __init__(self, root: Path) -> None:
        self._root = os.open(root, _FOLDER_FLAGS & ~os.O_NOFOLLOW)
        self._open: tuple[str, int] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close_parent()
        os.close(self._root)

    def write(self, path: str, mode: str, content: bytes) -> None:
        """Put a file or link at ``path``, replacing a file or link that is there.

        Raises:
            ValueError: the path may not be written.
            OSError: a parent is no folder, or a folder with files is in the way.
        """
        folder, name = self._parent(path, make=True)
        self._clear(folder, name)
        if mode == LINK:
            os.symlink(os.fsdecode(content), name, dir_fd=folder)
            return
        file = os.open(name, _NEW_FILE_FLAGS, 0o600, dir_fd=folder)
        with os.fdopen(file, "wb") as stream:
            stream.write(content)
            os.fchmod(stream.fileno(), 0o755 if mode == EXECUTABLE else 0o644)

    def delete(self, path: str) -> None:
        """Remove the file or link at ``path`` and the folders that this leaves empty.

        Raises:
            OSError: nothing is there, or a parent is a link.
        """
        folder, name = self._parent(path, make=False)
        os.unlink(name, dir_fd=folder)
        self._close_parent()
        parts = path.split("/")[:-1]
        while parts:
            above, last = self._parent("/".join(parts), make=False)
            try:
                os.rmdir(last, dir_fd=above)
            except OSError:
                return
            self._close_parent()
            parts.pop()

    def _parent(self, path: str, *, make: bool) -> tuple[int, str]:
        problem = path_problem(path)
        if problem:
            raise ValueError(problem)
        parent, _, name = path.rpartition("/")
        if self._open is None or self._open[0] != parent:
            self._close_parent()
            self._open = (parent, self._walk(parent, make=make))
        return self._open[1], name

    def _walk(self, parent: str, *, make: bool) -> int:
        folder = os.dup(self._root)
        try:
            for part in parent.split("/") if parent else ():
                if make:
                    self._make_folder(folder, part)
                below = os.open(part, _FOLDER_FLAGS, dir_fd=folder)
                os.close(folder)
                folder = below
        except BaseException:
            os.close(folder)
            raise
        return folder

    @staticmethod
    def _make_folder(above: int, name: str) -> None:
        try:
            os.mkdir(name, dir_fd=above)
        except FileExistsError:
            return
        os.chmod(name, _FOLDER_MODE, dir_fd=above)

    def _close_parent(self) -> None:
        if self._open is not None:
            os.close(self._open[1])
            self._open = None

    @staticmethod
    def _clear(folder: int, name: str) -> None:
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return
        if stat.S_ISDIR(found.st_mode):
            os.rmdir(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)


def read_file(root: Path, path: str, *, largest: int | None = None) -> TreeFile | None:
    """The file or link at ``path``, or None when none is there or it lies behind a link.

    Raises:
        ValueError: something that is neither a file, a link nor a folder is there, or has more than ``largest``
            bytes, of which none is read then.
    """
    place = root
    *parents, name = path.split("/")
    for part in parents:
        place /= part
        if not _is_kind(place, stat.S_ISDIR):
            return None
    place /= name
    try:
        found = place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISDIR(found.st_mode):
        return None
    mode = _mode_of(found)
    if mode is None:
        raise ValueError(f"{path} is neither a file nor a link")
    if largest is not None and found.st_size > largest:
        raise ValueError(f"{path} has {found.st_size} bytes, more than {largest >> 20} MiB")
    return TreeFile(path, mode, _content(place, mode))


def _content(place: Path, mode: str) -> bytes:
    if mode == LINK:
        return os.fsencode(place.readlink())
    file = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(file, "rb") as stream:
        return stream.read()


def _is_kind(place: Path, test: Callable[[int], bool]) -> bool:
    try:
        return test(place.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _mode_of(found: os.stat_result) -> str | None:
    if stat.S_ISLNK(found.st_mode):
        return LINK
    if stat.S_ISREG(found.st_mode):
        return EXECUTABLE if found.st_mode & stat.S_IXUSR else PLAIN
    return None


def walk_tree(root: Path) -> Iterator[tuple[str, str | None]]:
    """Every (path, mode) below ``root`` in byte order of the paths; a socket or device has mode None."""
    yield from sorted(_walk_folder(os.fspath(root), ""), key=lambda item: os.fsencode(item[0]))


def _walk_folder(folder: str, prefix: str) -> Iterator[tuple[str, str | None]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            inner = entry.is_dir(follow_symlinks=False)
            if is_git_name(entry.name) or is_cache(entry.name, folder=inner):
                continue
            path = prefix + entry.name
            if inner:
                yield from _walk_folder(entry.path, path + "/")
            else:
                yield path, _mode_of(entry.stat(follow_symlinks=False))


def tree_files(root: Path) -> Iterator[TreeFile | Dropped]:
    """Every file and link of a folder with its content, in byte order; what cannot stay as Dropped."""
    for path, mode in walk_tree(root):
        if mode is None:
            yield Dropped(path, "neither a file nor a link")
        else:
            yield _checked(TreeFile(path, mode, _content(root / path, mode)))


def _checked(file: TreeFile) -> TreeFile | Dropped:
    why = path_problem(file.path)
    if why is None and file.mode == LINK:
        why = link_problem(file.path, os.fsdecode(file.content))
    if why is None and in_cache(file.path):
        why = "an interpreter's cache"
    return file if why is None else Dropped(file.path, why)


def tree_digest(root: Path) -> str:
    """The SHA-256 (hex) over path, mode and content of every file and link of a tree.

    Each entry adds its path's length, its mode, the SHA-256 of its content and its path's bytes, in byte
    order of the paths; what :func:`copy_tree` would drop does not count.
    """
    whole = hashlib.sha256(b"tree/1\n")
    for file in tree_files(root):
        if isinstance(file, TreeFile):
            raw = os.fsencode(file.path)
            content = hashlib.sha256(file.content).hexdigest()
            whole.update(b"%d %s %s %s\n" % (len(raw), file.mode.encode(), content.encode(), raw))
    return whole.hexdigest()


def copy_tree(source: Path, into: Path) -> tuple[Dropped, ...]:
    """Copy the files and links of a folder into an empty one; what cannot be part of a tree is returned.

    ``.git``, caches of interpreters, links that leave the folder, and sockets, devices and pipes are dropped.
    """
    return write_tree(tree_files(source), into)


def write_tree(entries: Iterable[TreeFile | Dropped], into: Path) -> tuple[Dropped, ...]:
    """Write entries into an empty folder; returns what was dropped, bad paths and leaving links included."""
    dropped = []
    with TreeWriter(into) as writer:
        for entry in entries:
            file = _checked(entry) if isinstance(entry, TreeFile) else entry
            if isinstance(file, Dropped):
                dropped.append(file)
                continue
            try:
                writer.write(file.path, file.mode, file.content)
            except OSError as error:
                if error.errno not in _IN_THE_WAY:
                    raise
                dropped.append(Dropped(file.path, "another entry of the tree is in the way"))
    return tuple(dropped)
