"""Base trees, each built once and then shared by every cell of every process that starts from it.

What belongs here: an immutable cache of folders by key. What does not: how a tree is built (``tasks``) and
the copies that cells work in (``workspace``).

A tree that somebody edited is not what its key says. Before its first use in a process every file's size and times
are compared with those noted when it was built, its content where they differ; an edited tree is built again.
"""

import json
import os
import secrets
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from filelock import FileLock

from bench_pipeline.errors import SandboxError
from bench_pipeline.execution.manifest import (
    Exclusions,
    Manifest,
    Stamp,
    file_digest,
    git_mode,
    take_manifest,
)
from bench_pipeline.execution.treewalk import Found, open_file, read_link, remove, walk
from bench_pipeline.tasks.paths import in_cache
from bench_pipeline.tasks.trees import LINK

_TREE = "tree"
_MANIFEST = "manifest.json"
_VERSION = 2


class BaseTrees:
    """A cache of trees below ``root``, safe between threads and processes.

    A tree is there whole or not at all, and read-only from then on.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._sound: set[Path] = set()

    def get(self, key: str, build: Callable[[Path], None]) -> Path:
        """The tree of ``key``; ``build`` fills an empty folder with it when it is not there as it was built.

        ``key`` says everything that decides the content, such as a commit or a digest.

        Raises:
            SandboxError: it could not be kept. Another error of ``build`` goes on; either leaves nothing behind.
        """
        # Hashed, so that keys that differ only in case or in Unicode form have places of their own.
        place = self._root / sha256(os.fsencode(key)).hexdigest()[:40]
        tree = place / _TREE
        if tree in self._sound and tree.is_dir():
            return tree
        try:
            if not _is_as_built(tree):
                self._root.mkdir(parents=True, exist_ok=True)
                with FileLock(f"{place}.lock"):
                    if not _is_as_built(tree):
                        self._build(place, build)
        except OSError as error:
            raise SandboxError(f"keeping the base tree in {self._root}", str(error)) from error
        self._sound.add(tree)
        return tree

    def _build(self, place: Path, build: Callable[[Path], None]) -> None:
        if place.is_dir():
            place.rename(f"{place}.{secrets.token_hex(4)}")
        # Under the lock, what is there of an earlier try was left by a process that was killed, or is edited.
        for stale in self._root.glob(f"{place.name}.*/"):
            _remove(stale)
        folder = Path(tempfile.mkdtemp(prefix=f"{place.name}.", dir=self._root))
        try:
            tree = folder / _TREE
            tree.mkdir()
            build(tree)
            _close(tree)
            _write_manifest(folder / _MANIFEST, tree)
            folder.rename(place)
        except BaseException:
            _remove(folder)
            raise


def _close(tree: Path) -> None:
    """Take away every right to write, the top folder's last."""
    for found in walk(tree):
        if not found.is_link:
            os.chmod(found.name, found.stat.st_mode & 0o555, dir_fd=found.folder)
    tree.chmod(0o555)


def _remove(folder: Path) -> None:
    above = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        remove(above, folder.name)
    finally:
        os.close(above)


def _write_manifest(file: Path, tree: Path) -> None:
    entries = {path: list(stamp) for path, stamp in whole_manifest(tree).entries.items()}
    times = {found.path: _times(found.stat) for found in walk(tree) if not found.is_folder}
    file.write_text(json.dumps({"version": _VERSION, "entries": entries, "times": times}), encoding="ascii")


def _times(facts: os.stat_result) -> list[int]:
    return [facts.st_mode, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns]


def _kept(tree: Path) -> dict[str, Any] | None:
    """What was noted of a tree of this cache; None for another folder, and for one of another version."""
    try:
        kept: dict[str, Any] = json.loads((tree.parent / _MANIFEST).read_text(encoding="ascii"))
        return kept if kept["version"] == _VERSION and tree.name == _TREE else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_as_built(tree: Path) -> bool:
    """Whether a tree is there and every file in it is what it was when it was built.

    Caches that interpreters left there meanwhile do not count: no cell gets them.
    """
    kept = _kept(tree) if tree.is_dir() else None
    if kept is None:
        return False
    missing = dict(kept["times"])
    for found in walk(tree):
        if found.is_folder or (found.path not in missing and in_cache(found.path)):
            continue
        times = missing.pop(found.path, None)
        if times != _times(found.stat) and list(_stamp(found) or ()) != kept["entries"].get(found.path):
            return False
    return not missing


def _stamp(found: Found) -> Stamp | None:
    """Mode and content of a file or link; None when it is neither, or cannot be read."""
    if found.is_link:
        return Stamp(LINK, sha256(os.fsencode(read_link(found))).hexdigest())
    file = open_file(found) if found.is_file else None
    if file is None:
        return None
    try:
        return Stamp(git_mode(found.stat.st_mode), file_digest(file))
    finally:
        os.close(file)


def whole_manifest(tree: Path, known: Manifest | None = None) -> Manifest:
    """The manifest of a base with all its files, those that a candidate could not hold among them.

    Raises:
        SandboxError: the tree cannot be read.
    """
    return take_manifest(tree, Exclusions(caches=False), known=known, largest=None)


def base_manifest(tree: Path) -> Manifest:
    """The manifest of a base: the kept one of a tree in this cache, else taken now.

    Raises:
        SandboxError: the tree cannot be read.
    """
    kept = _kept(tree)
    if kept is None:
        return whole_manifest(tree)
    return Manifest({path: Stamp(*stamp) for path, stamp in kept["entries"].items()})


def is_kept(tree: Path) -> bool:
    """Whether a tree is one of this cache, and therefore never changes."""
    return tree.name == _TREE and (tree.parent / _MANIFEST).is_file()
