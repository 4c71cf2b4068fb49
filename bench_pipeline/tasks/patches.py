"""Patches as data: which files one touches, and what it makes of a tree.

What belongs here: reading Git-format and plain unified patches, applying them exactly. What does not:
splitting a commit (``splitting``), and overlays of a candidate (``execution``).

A patch is applied to a private index that holds only the files it names, in a Git folder of its own: no file
of the tree is read by Git or written by it, and no attribute applies. What comes out is checked path by path
before anything is written.
"""

import hashlib
import os
import re
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench_pipeline.errors import BenchError
from bench_pipeline.tasks.git import GitError, Repository, run_git
from bench_pipeline.tasks.paths import MAX_PATH_BYTES, link_problem, path_problem
from bench_pipeline.tasks.trees import EXECUTABLE, LINK, PLAIN, TreeFile, TreeWriter, read_file, walk_tree

MAX_PATCH_BYTES = 64 * 1024 * 1024
MAX_RESULT_BYTES = 512 * 1024 * 1024  # a compressed binary patch can claim to grow a thousandfold
SUBMODULE = "160000"
# Git allocates what a binary patch claims to hold before it looks at it.
_MEMORY_BYTES = 4 * MAX_RESULT_BYTES
_MODES = {PLAIN, EXECUTABLE, LINK}
_TRIED = "applying a patch"


class PatchError(BenchError):
    """A patch cannot be read, does not fit the tree, or would leave it."""


@dataclass(frozen=True)
class TouchedFile:
    """One file section of a patch.

    ``old`` and ``new`` are the paths before and after, None where the file is made or removed; modes are
    None where the patch does not say; ``added`` are its added lines without line ends.
    """

    old: str | None
    new: str | None
    old_mode: str | None
    new_mode: str | None
    binary: bool
    added: tuple[bytes, ...]
    removed: int
    section: bytes

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths before and after, without repetition."""
        return tuple(dict.fromkeys(path for path in (self.old, self.new) if path is not None))


@dataclass(frozen=True)
class PatchedTree:
    """What a patch makes of a tree: files and links written, and paths removed, each in order of path."""

    written: tuple[TreeFile, ...]
    deleted: tuple[str, ...]


def is_blank(patch: bytes) -> bool:
    """Whether a patch is empty, which changes nothing."""
    return not patch.strip()


_GIT_HEADER = b"diff --git "
_HUNK = re.compile(rb"@@ -\d{1,10}(?:,(\d{1,10}))? \+\d{1,10}(?:,(\d{1,10}))? @@")
_ESCAPES = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13}
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)


class _Section:
    """The lines of one file's part of a patch while they are read."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.header: list[bytes] = []
        self.added: list[bytes] = []
        self.removed = 0
        self.named = False  # its --- and +++ lines were seen
        self.old_left = self.new_left = 0
        self.hunks = 0
        self.beyond: bytes | None = None  # an added line that no hunk counts

    @property
    def in_hunk(self) -> bool:
        return self.old_left > 0 or self.new_left > 0

    def take(self, line: bytes) -> None:
        self.lines.append(line)
        if self.in_hunk:
            self._take_content(line)
            return
        hunk = _HUNK.match(line)
        if hunk:
            self.old_left, self.new_left = (1 if count is None else int(count) for count in hunk.groups())
            self.hunks += 1
        elif self.hunks and line.startswith(b"+"):
            self.beyond = self.beyond or line
        elif not self.added and not self.removed:
            self.header.append(line)

    def _take_content(self, line: bytes) -> None:
        mark = line[:1]
        if mark == b"\\":
            return
        self.old_left -= mark != b"+"
        self.new_left -= mark != b"-"
        if mark == b"+":
            self.added.append(line[1:])
        self.removed += mark == b"-"

    def value(self, prefix: bytes) -> bytes | None:
        for line in self.header:
            if line.startswith(prefix):
                return line[len(prefix) :]
        return None


def read_patch(patch: bytes) -> tuple[TouchedFile, ...]:
    """The file sections of a Git-format or plain unified patch, in order; text around them is passed over.

    Raises:
        PatchError: a section names no file.
    """
    return tuple(_touched(section) for section in _sections(patch))


def _sections(patch: bytes) -> Iterator[_Section]:
    lines = patch.removesuffix(b"\n").split(b"\n")
    current: _Section | None = None
    for line, following in zip(lines, [*lines[1:], b""], strict=True):
        if current is None or not current.in_hunk:
            names = line.startswith(b"--- ") and following.startswith(b"+++ ")
            if line.startswith(_GIT_HEADER) or (names and (current is None or current.named)):
                if current is not None:
                    yield current
                current = _Section()
            if current is not None:
                current.named = current.named or names
        if current is not None:
            current.take(line)
    if current is not None:
        yield current


def _touched(section: _Section) -> TouchedFile:
    value = section.value
    old, new = _names(section)
    created, deleted = value(b"new file mode "), value(b"deleted file mode ")
    if created is not None:
        old = None
    if deleted is not None:
        new = None
    if old is None and new is None:
        raise PatchError("reading a patch", "a section names no file", "give a Git-format patch")
    if section.beyond is not None:
        shown = section.beyond[:60].decode("utf-8", "replace")
        raise PatchError(
            "reading a patch",
            f"the added line {shown!r} of {new or old} is beyond what its hunk counts, and would be ignored",
            "correct the @@ line, or make the patch again with git diff",
        )
    same = (value(b"index ") or b"").partition(b" ")[2] or None
    return TouchedFile(
        old=old,
        new=new,
        old_mode=_mode(value(b"old mode ") or deleted or same),
        new_mode=_mode(value(b"new mode ") or created or same),
        binary=value(b"GIT binary patch") is not None or value(b"Binary files ") is not None,
        added=tuple(section.added),
        removed=section.removed,
        section=b"\n".join(section.lines) + b"\n",
    )


def _mode(raw: bytes | None) -> str | None:
    return None if raw is None else raw.strip().decode("ascii", "replace")


def _names(section: _Section) -> tuple[str | None, str | None]:
    """The paths before and after; ``--- ``/``+++ `` lines and renames say more than the first line."""
    old = new = None
    first = section.header[0] if section.header else b""
    if first.startswith(_GIT_HEADER):
        old = new = _name_of_header(first[len(_GIT_HEADER) :].rstrip(b"\r"))
    before, after = section.value(b"--- "), section.value(b"+++ ")
    if section.named and before is not None and after is not None:
        old, new = _stripped(before), _stripped(after)
    source = section.value(b"rename from ") or section.value(b"copy from ")
    target = section.value(b"rename to ") or section.value(b"copy to ")
    if source is not None and target is not None:
        old, new = _unquoted(source), _unquoted(target)
    return old, new


def _name_of_header(rest: bytes) -> str | None:
    """The name in ``a/name b/name``; only a change that keeps the name has nothing else to tell it by."""
    if len(rest) > 2 * MAX_PATH_BYTES + len("a/ b/"):
        return None
    for index, byte in enumerate(rest):
        if byte == 0x20:
            left, right = _stripped(rest[:index]), _stripped(rest[index + 1 :])
            if left is not None and left == right:
                return left
    return None


def _stripped(raw: bytes) -> str | None:
    """A path without its first component, as ``-p1``; None for /dev/null or where there is none."""
    name = _unquoted(raw if raw.startswith(b'"') else raw.partition(b"\t")[0].rstrip(b"\r"))
    if name == "/dev/null":
        return None
    _, slash, rest = name.partition("/")
    return rest if slash else None


def _unquoted(raw: bytes) -> str:
    """A name as Git writes it: C-style in double quotes when it has unusual bytes."""
    if raw.startswith(b'"'):
        raw = _ESCAPE.sub(_unescaped, raw[1:].rpartition(b'"')[0])
    return os.fsdecode(raw)


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if len(code) == 3:
        return bytes([int(code, 8) & 0xFF])
    return bytes([_ESCAPES[code]]) if code in _ESCAPES else code


def patched_files(folder: Path, patch: bytes) -> PatchedTree:
    """What a patch makes of the tree in ``folder``, which is read and left alone.

    The patch is Git-format (binary, renames, mode changes) or plain unified, with one leading path
    component; an empty one changes nothing. Context may have moved, but has to match exactly.

    Raises:
        PatchError: it does not apply, holds no change, or would write a path, link or submodule that may
            not be in a tree.
    """
    if is_blank(patch):
        return PatchedTree((), ())
    if len(patch) > MAX_PATCH_BYTES:
        raise PatchError(_TRIED, f"it is larger than {MAX_PATCH_BYTES >> 20} MiB")
    touched = read_patch(patch)
    if not touched:
        raise PatchError(_TRIED, "no file section was found in it", "give a unified diff")
    before = _load(folder, touched)
    after = _apply(before, len(touched), patch if patch.endswith(b"\n") else patch + b"\n")
    written = tuple(file for path, file in sorted(after.items()) if before.get(path) != file)
    deleted = tuple(sorted(path for path in before if path not in after))
    _check_places(folder, written, {*before}, {*deleted})
    return PatchedTree(written, deleted)


def apply_patch(folder: Path, patch: bytes) -> PatchedTree:
    """Apply a patch to the tree in ``folder``, wholly or not at all; see :func:`patched_files`.

    Raises:
        PatchError: as for :func:`patched_files`; nothing was written.
    """
    result = patched_files(folder, patch)
    with TreeWriter(folder) as writer:
        for path in result.deleted:
            writer.delete(path)
        for file in result.written:
            writer.write(file.path, file.mode, file.content)
    return result


def _load(folder: Path, touched: tuple[TouchedFile, ...]) -> dict[str, TreeFile]:
    found: dict[str, TreeFile] = {}
    for part in touched:
        if SUBMODULE in {part.old_mode, part.new_mode}:
            raise PatchError(_TRIED, f"{part.paths[0]} is a submodule")
        for path in part.paths:
            problem = path_problem(path)
            if problem:
                raise PatchError(_TRIED, f"{path} is {problem}")
            try:
                file = read_file(folder, path)
            except ValueError as error:
                raise PatchError(_TRIED, str(error)) from error
            if file is not None:
                found[path] = file
    return found


def _apply(before: dict[str, TreeFile], sections: int, patch: bytes) -> dict[str, TreeFile]:
    """The named files after the patch of so many sections, by an index in a Git folder of its own."""
    with tempfile.TemporaryDirectory(prefix="bench-patch-") as name:
        scratch = Path(name)
        git_dir, nothing = scratch / "git", scratch / "empty"
        nothing.mkdir()
        for part in ("objects", "refs", "info"):
            (git_dir / part).mkdir(parents=True)
        (git_dir / "HEAD").write_bytes(b"ref: refs/heads/none\n")
        (git_dir / "info" / "attributes").write_bytes(
            b"* -text -filter -ident -whitespace -working-tree-encoding\n"
        )
        index = b"".join(
            b"%s %s\t%s\0" % (file.mode.encode(), _add_blob(git_dir, file.content), os.fsencode(path))
            for path, file in before.items()
        )
        (scratch / "patch").write_bytes(patch)
        try:
            run_git(["update-index", "-z", "--index-info"], cwd=nothing, git_dir=git_dir, stdin=index)
            _check_whole(scratch / "patch", sections, patch, cwd=nothing, git_dir=git_dir)
            run_git(
                ["apply", "--cached", "--whitespace=nowarn", "-p1", scratch / "patch"],
                cwd=nothing,
                git_dir=git_dir,
                memory_bytes=_MEMORY_BYTES,
            )
            return _index_files(git_dir, nothing)
        except GitError as error:
            raise PatchError(_TRIED, error.wrong) from error


def _check_whole(path: Path, sections: int, patch: bytes, *, cwd: Path, git_dir: Path) -> None:
    """Refuse a damaged binary section: Git leaves it and all that follow out, and calls that a success."""
    if b"GIT binary patch" not in patch:
        return
    understood = run_git(["apply", "--numstat", "-z", path], cwd=cwd, git_dir=git_dir).count(b"\0")
    if understood != sections:
        wrong = f"only {understood} of its {sections} file sections can be read; a binary one is damaged"
        raise PatchError(_TRIED, wrong, "make the patch again with git diff --binary")


def _add_blob(git_dir: Path, content: bytes) -> bytes:
    whole = b"blob %d\0" % len(content) + content
    name = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    folder = git_dir / "objects" / name[:2]
    folder.mkdir(exist_ok=True)
    (folder / name[2:]).write_bytes(zlib.compress(whole, 1))
    return name.encode()


def _index_files(git_dir: Path, cwd: Path) -> dict[str, TreeFile]:
    listing = run_git(["ls-files", "--stage", "-z"], cwd=cwd, git_dir=git_dir).split(b"\0")[:-1]
    entries = []
    for record in listing:
        facts, _, raw = record.partition(b"\t")
        mode, name, _ = facts.decode().split(" ")
        entries.append((os.fsdecode(raw), mode, name))
    asked = "".join(f"{name}\n" for _, _, name in entries).encode()
    sizes = run_git(
        ["cat-file", "--batch-check=%(objectsize)"], cwd=cwd, git_dir=git_dir, stdin=asked
    ).split()
    if sum(int(size) for size in sizes if size.isdigit()) > MAX_RESULT_BYTES:
        raise PatchError(_TRIED, f"its files would be larger than {MAX_RESULT_BYTES >> 20} MiB")
    contents = Repository(git_dir).contents(name for _, _, name in entries)
    return {
        path: TreeFile(path, mode, content)
        for (path, mode, _), content in zip(entries, contents, strict=True)
    }


def _check_places(folder: Path, written: tuple[TreeFile, ...], known: set[str], deleted: set[str]) -> None:
    """Refuse what the private index could not see: other files of the tree in the way, and unsafe results."""
    made = {file.path for file in written}
    for file in written:
        problem = path_problem(file.path)
        if problem is None and file.mode == LINK:
            problem = link_problem(file.path, os.fsdecode(file.content))
        if problem is None and file.mode not in _MODES:
            problem = "a submodule or of an unknown mode"
        if problem is None and file.path not in known and read_file(folder, file.path) is not None:
            problem = "there already"
        if problem:
            raise PatchError(_TRIED, f"{file.path} is {problem}")
        _check_way(folder, file.path, made, deleted)


def _check_way(folder: Path, path: str, made: set[str], deleted: set[str]) -> None:
    place = folder
    parts = path.split("/")
    for depth, part in enumerate(parts[:-1], start=1):
        place /= part
        above = "/".join(parts[:depth])
        if above in made or (above not in deleted and os.path.lexists(place) and not _is_folder(place)):
            raise PatchError(_TRIED, f"{path} would be written through {above}, which is no folder")
        if not _is_folder(place):
            return
    place /= parts[-1]
    if _is_folder(place):
        left = [found for found, _ in walk_tree(place) if f"{path}/{found}" not in deleted]
        if left:
            raise PatchError(_TRIED, f"{path} is a folder with files")


def _is_folder(place: Path) -> bool:
    return place.is_dir() and not place.is_symlink()
