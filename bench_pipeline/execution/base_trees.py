"""Base trees, each built once and then shared by every cell of every process that starts from it.

What belongs here: an immutable cache of folders by key. What does not: how a tree is built (``tasks``) and
the copies that cells work in (``workspace``).
"""

import json
import os
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from filelock import FileLock

from bench_pipeline.errors import SandboxError
from bench_pipeline.execution.manifest import Exclusions, Manifest, Stamp, take_manifest
from bench_pipeline.execution.treewalk import remove, walk

_TREE = "tree"
_MANIFEST = "manifest.json"
_VERSION = 1


class BaseTrees:
    """A cache of trees below ``root``, safe between threads and processes.

    A tree is there whole or not at all, and read-only from then on.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def get(self, key: str, build: Callable[[Path], None]) -> Path:
        """The tree of ``key``; ``build`` fills an empty folder with it when it is not there yet.

        ``key`` says everything that decides the content, such as a commit or a digest.

        Raises:
            SandboxError: it could not be kept. Another error of ``build`` goes on; either leaves nothing behind.
        """
        # Hashed, so that keys that differ only in case or in Unicode form have places of their own.
        place = self._root / sha256(os.fsencode(key)).hexdigest()[:40]
        tree = place / _TREE
        if tree.is_dir():
            return tree
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{place}.lock"):
                if not tree.is_dir():
                    self._build(place, build)
        except OSError as error:
            raise SandboxError(f"keeping the base tree in {self._root}", str(error)) from error
        return tree

    def _build(self, place: Path, build: Callable[[Path], None]) -> None:
        # Under the lock, what is there of an earlier try was left by a process that was killed.
        for stale in self._root.glob(f"{place.name}.*/"):
            _remove(stale)
        folder = Path(tempfile.mkdtemp(prefix=f"{place.name}.", dir=self._root))
        try:
            tree = folder / _TREE
            tree.mkdir()
            build(tree)
            _close(tree)
            _write_manifest(folder / _MANIFEST, whole_manifest(tree))
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


def _write_manifest(file: Path, manifest: Manifest) -> None:
    entries = {path: list(stamp) for path, stamp in manifest.entries.items()}
    file.write_text(json.dumps({"version": _VERSION, "entries": entries}), encoding="ascii")


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
    try:
        kept = json.loads((tree.parent / _MANIFEST).read_text(encoding="ascii"))
        if kept["version"] == _VERSION and tree.name == _TREE:
            return Manifest({path: Stamp(*stamp) for path, stamp in kept["entries"].items()})
    except (OSError, ValueError, KeyError, TypeError):
        # Not a tree of this cache, or kept by another version: what the tree holds is the truth.
        return whole_manifest(tree)
    return whole_manifest(tree)


def is_kept(tree: Path) -> bool:
    """Whether a tree is one of this cache, and therefore never changes."""
    return tree.name == _TREE and (tree.parent / _MANIFEST).is_file()
