"""A candidate as data: what differs from a baseline, ready to be put over another copy of the base.

What belongs here: capturing, encoding, applying an overlay, and overlays from and to patches. What does not:
what counts in a tree (``manifest``), and how a patch is written (``rendering``) and read (``tasks.patches``).

An overlay is made by whoever worked in the tree and is trusted with nothing: paths are checked when it is
made, when it is read and when it is applied.
"""

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bench_pipeline.errors import SandboxError, StoreError
from bench_pipeline.execution.manifest import Exclusions, Manifest, Stamp, take_manifest
from bench_pipeline.execution.rendering import patch_stats, render
from bench_pipeline.execution.treewalk import remove
from bench_pipeline.tasks.patches import patched_files
from bench_pipeline.tasks.paths import link_problem, path_problem
from bench_pipeline.tasks.trees import EXECUTABLE, LINK, PLAIN, Dropped, TreeFile, TreeWriter, read_file

__all__ = [
    "Overlay",
    "capture",
    "files_of_patch",
    "overlay_from_patch",
    "patch_stats",
    "render_patch",
]

FORMAT = b"bench overlay/1\n"
# A candidate is a change of source text; more is a build, and would be bought a place in memory and the store.
MAX_TOTAL_BYTES = 256 << 20
MAX_ENTRIES = 50_000
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Overlay:
    """Files and links to write and paths to remove, each in byte order of the paths, no path twice.

    ``dropped`` names what was there and could not be kept, and why; it has no effect.
    """

    entries: tuple[TreeFile, ...] = ()
    deletions: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether it changes nothing."""
        return not self.entries and not self.deletions

    def touched_paths(self) -> tuple[str, ...]:
        """Every path that is written or removed, in byte order."""
        return tuple(_ordered({*(entry.path for entry in self.entries), *self.deletions}))

    def encode(self) -> bytes:
        """This overlay as bytes: equal overlays give equal bytes, on every machine."""
        index = {
            "deletions": [_portable(path) for path in self.deletions],
            "dropped": [[_portable(item.path), item.why] for item in self.dropped],
            "entries": [[_portable(entry.path), entry.mode, len(entry.content)] for entry in self.entries],
        }
        words = json.dumps(index, sort_keys=True, separators=(",", ":")).encode("ascii")
        return b"".join([FORMAT, b"%d\n" % len(words), words, *(entry.content for entry in self.entries)])

    @classmethod
    def decode(cls, data: bytes) -> "Overlay":
        """The overlay that ``encode`` wrote.

        Raises:
            StoreError: the bytes are something else, or hold a path that may not be written.
        """
        try:
            return _decoded(data)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise StoreError("reading a stored candidate", f"it is damaged: {error}") from error

    def apply(self, tree: Path) -> None:
        """Write and remove what this overlay says in ``tree``; other entries in the way are removed.

        No link is followed and nothing outside of ``tree`` is written.

        Raises:
            SandboxError: the tree could not be written.
        """
        try:
            with _Way(tree) as way:
                for path in self.deletions:
                    way.clear(path)
                for entry in self.entries:
                    way.open_up(entry.path)
            with TreeWriter(tree) as writer:
                for entry in self.entries:
                    writer.write(entry.path, entry.mode, entry.content)
        except (OSError, ValueError) as error:
            raise SandboxError("applying a candidate", str(error)) from error


def _portable(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "surrogateescape")


def _local(path: str) -> str:
    return os.fsdecode(path.encode("utf-8", "surrogateescape"))


def _decoded(data: bytes) -> Overlay:
    if not data.startswith(FORMAT):
        raise ValueError("another format")
    length, _, rest = data[len(FORMAT) :].partition(b"\n")
    index = json.loads(rest[: int(length)])
    position = int(length)
    entries = []
    for path, mode, size in index["entries"]:
        entries.append(_checked(TreeFile(_local(path), mode, rest[position : position + size]), size))
        position += size
    if position != len(rest):
        raise ValueError("its length is wrong")
    if len({entry.path for entry in entries} | {*index["deletions"]}) < len(entries) + len(
        index["deletions"]
    ):
        raise ValueError("a path is there twice")
    deletions = tuple(_checked_path(_local(path)) for path in index["deletions"])
    dropped = tuple(Dropped(_local(path), why) for path, why in index["dropped"])
    return Overlay(tuple(entries), deletions, dropped)


def _checked(entry: TreeFile, size: int) -> TreeFile:
    _checked_path(entry.path)
    why = link_problem(entry.path, os.fsdecode(entry.content)) if entry.mode == LINK else None
    if why is None and (entry.mode not in {PLAIN, EXECUTABLE, LINK} or len(entry.content) != size):
        why = "of an unknown mode or cut"
    if why is not None:
        raise ValueError(f"{entry.path!r} is {why}")
    return entry


def _checked_path(path: str) -> str:
    why = path_problem(path)
    if why is not None:
        raise ValueError(f"{path!r} is {why}")
    return path


class _Way:
    """Clears the way for an overlay in one tree, by folder descriptors."""

    def __init__(self, tree: Path) -> None:
        self._root = os.open(tree, _FOLDER_FLAGS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._root)

    def clear(self, path: str) -> None:
        """Remove the entry at ``path``, and the folders that this leaves empty."""
        parts = _checked_path(path).split("/")
        folders = self._descend(parts, make_way=False)
        try:
            if len(folders) < len(parts):
                return
            remove(folders[-1], parts[-1])
            # The first folder that holds something else ends the clearing.
            with contextlib.suppress(OSError):
                while len(folders) > 1:
                    os.rmdir(parts[len(folders) - 2], dir_fd=folders[-2])
                    os.close(folders.pop())
        finally:
            _close(folders)

    def open_up(self, path: str) -> None:
        """Remove what stands on the way to ``path`` and is no folder, and what stands at it."""
        parts = _checked_path(path).split("/")
        folders = self._descend(parts, make_way=True)
        try:
            if len(folders) == len(parts):
                remove(folders[-1], parts[-1])
        finally:
            _close(folders)

    def _descend(self, parts: list[str], *, make_way: bool) -> list[int]:
        """Descriptors of the folders that lead to the last part, as far as there are any."""
        folders = [os.dup(self._root)]
        try:
            for part in parts[:-1]:
                try:
                    folders.append(os.open(part, _FOLDER_FLAGS, dir_fd=folders[-1]))
                except FileNotFoundError:
                    return folders
                except OSError:
                    if make_way:
                        remove(folders[-1], part)
                    return folders
        except BaseException:
            _close(folders)
            raise
        return folders


def _close(folders: Iterable[int]) -> None:
    for folder in folders:
        os.close(folder)


def capture(tree: Path, before: Manifest, exclude: Exclusions | None = None) -> Overlay:
    """What a tree in which nothing runs any more has gained over, and lost of, the manifest ``before``.

    Args:
        tree: the working tree.
        before: its manifest before the work, taken with the same ``exclude``.
        exclude: what is left out.

    Raises:
        SandboxError: the tree cannot be read.
    """
    after = take_manifest(tree, exclude, known=before)
    changed = (path for path, stamp in after.entries.items() if before.entries.get(path) != stamp)
    unkept = {item.path for item in after.dropped}
    try:
        entries, dropped = _read(tree, _ordered(changed), after)
        deletions = _ordered(
            path
            for path in before.entries
            if path not in after.entries and not (path in unkept and _is_file(tree / path))
        )
    except OSError as error:
        raise SandboxError(f"reading the working tree {tree}", str(error)) from error
    already = set(before.dropped)
    dropped += [item for item in after.dropped if item not in already]
    dropped.sort(key=lambda item: os.fsencode(item.path))
    return Overlay(tuple(entries), tuple(deletions), tuple(dropped))


def _ordered(paths: Iterable[str]) -> list[str]:
    return sorted(paths, key=os.fsencode)


def _is_file(place: Path) -> bool:
    return stat.S_ISREG(place.lstat().st_mode)


def _read(tree: Path, paths: list[str], manifest: Manifest) -> tuple[list[TreeFile], list[Dropped]]:
    entries: list[TreeFile] = []
    dropped: list[Dropped] = []
    room = MAX_TOTAL_BYTES
    for path in paths:
        stamp = manifest.entries[path]
        content = _content(tree, path, stamp)
        if len(entries) == MAX_ENTRIES or len(content) > room:
            dropped.append(Dropped(path, "more than a candidate may hold"))
            continue
        room -= len(content)
        entries.append(TreeFile(path, stamp.mode, content))
    return entries, dropped


def _content(tree: Path, path: str, stamp: Stamp) -> bytes:
    place = tree / path
    if stamp.mode == LINK:
        content = os.fsencode(place.readlink())
    else:
        with os.fdopen(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as stream:
            content = stream.read()
    if hashlib.sha256(content).hexdigest() != stamp.digest:
        raise OSError(f"{path} changed while it was read")
    return content


def overlay_from_patch(base_tree: Path, patch: bytes) -> Overlay:
    """What a patch makes of a base, which is read and left alone.

    Raises:
        PatchError: it does not apply, or would write outside the tree.
    """
    made = patched_files(base_tree, patch)
    return Overlay(
        tuple(sorted(made.written, key=lambda entry: os.fsencode(entry.path))), tuple(_ordered(made.deleted))
    )


def files_of_patch(base_tree: Path, patch: bytes) -> Overlay:
    """The files that a patch of hidden tests brings, whole, to be put over whatever a candidate has there.

    Raises:
        PatchError: it does not apply to the base.
    """
    return overlay_from_patch(base_tree, patch)


def render_patch(base_tree: Path, overlay: Overlay) -> bytes:
    """The overlay as a patch against ``base_tree`` in Git's format, binary files included.

    It is exact: applied to the base it gives what the overlay gives. Files that the overlay leaves as the
    base has them do not show.

    Raises:
        RefusedError: there is more to render than anybody reads.
        BenchError: Git could not be run, or took too long.
    """
    before = {path: file for path in overlay.touched_paths() if (file := _base_file(base_tree, path))}
    return render(before, {entry.path: entry for entry in overlay.entries})


def _base_file(base_tree: Path, path: str) -> TreeFile | None:
    try:
        return read_file(base_tree, path)
    except ValueError:
        return None
