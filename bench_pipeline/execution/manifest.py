"""What a working tree holds: path, mode and content digest of everything that counts.

What belongs here: taking a manifest of a tree that somebody hostile worked in, and what is left out of it.
What does not: the difference of two and its content (``overlay``).

Nothing in the tree decides anything: its ``.git``, Git configuration and attributes are never read, its links
are not followed, and only the ignore rules of the base count.
"""

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Self

import pathspec

from bench_pipeline.errors import SandboxError
from bench_pipeline.execution.treewalk import Found, open_file, read_link, walk
from bench_pipeline.tasks.paths import is_git_name, link_problem, path_problem
from bench_pipeline.tasks.trees import EXECUTABLE, LINK, PLAIN, Dropped

# What interpreters and test runners write by themselves; it differs from run to run.
CACHES = (
    "__pycache__/", "*.py[cod]", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".hypothesis/",
    "**/node_modules/.cache/", ".nyc_output/", ".gradle/",
)  # fmt: skip
# A larger file is no source text; it is named and left out, so that a candidate can be kept.
MAX_FILE_BYTES = 64 << 20
_CHUNK = 1 << 20
_IGNORE_FILE = ".gitignore"
_MAX_IGNORE_BYTES = 1 << 20
# File systems on which no change of a file, not even one through a shared mapping, leaves its ctime alone.
_HONEST_TIMES = {"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "overlay"}


# The clock of file times, CLOCK_REALTIME_COARSE, to which Python gives no name.
_COARSE_CLOCK = 5


class Stamp(NamedTuple):
    """A file's or link's mode as Git writes it, and the SHA-256 (hex) of its content or target."""

    mode: str
    digest: str


class Times(NamedTuple):
    """What changes whenever a file does, on a file system with honest times; times in nanoseconds."""

    inode: int
    mode: int
    size: int
    mtime: int
    ctime: int

    @classmethod
    def of(cls, facts: os.stat_result) -> Self:
        """Those of a stat result."""
        return cls(facts.st_ino, facts.st_mode, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)


@dataclass(frozen=True)
class Manifest:
    """The content of a tree, by path. ``dropped`` names entries that count as absent, and why.

    ``times`` remembers files by which a later manifest of the same tree need not read them again.
    """

    entries: Mapping[str, Stamp]
    dropped: tuple[Dropped, ...] = ()
    times: Mapping[str, Times] = field(default_factory=dict, compare=False, repr=False)

    def digest(self) -> str:
        """SHA-256 (hex) over paths, modes and contents in byte order of the paths."""
        whole = hashlib.sha256(b"manifest/1\n")
        for raw, stamp in sorted((os.fsencode(path), stamp) for path, stamp in self.entries.items()):
            whole.update(b"%d %s %s %s\n" % (len(raw), stamp.mode.encode(), stamp.digest.encode(), raw))
        return whole.hexdigest()


class Exclusions:
    """What is left out: ``.git``, caches, what a base ignores, and further patterns.

    Args:
        globs: patterns as in a ``.gitignore`` at the root of the tree, such as a tool's droppings.
        base: the tree whose ``.gitignore`` files count; its own files always do.
        caches: whether CACHES are left out.
    """

    def __init__(self, globs: Iterable[str] = (), base: Path | None = None, *, caches: bool = True) -> None:
        self._always = pathspec.GitIgnoreSpec.from_lines((*(CACHES if caches else ()), *globs))
        self._rules, self._known = (
            _ignore_rules(base, _identity(base)) if base is not None else ({}, frozenset())
        )

    def leaves_out(self, path: str, *, folder: bool, ignored_above: bool) -> tuple[bool, bool]:
        """Whether to leave an entry out, and whether it is ignored: both hold for all that a folder holds.

        A folder that is ignored is not left out when the base has files in it.
        """
        shown = path + "/" if folder else path
        if is_git_name(path.rpartition("/")[2]) or self._always.match_file(shown):
            return True, True
        ignored = ignored_above or self._ignored(path, shown)
        return ignored and path not in self._known, ignored

    def _ignored(self, path: str, shown: str) -> bool:
        """What the deepest ``.gitignore`` of the base says that says anything."""
        parent = path.rpartition("/")[0]
        while self._rules:
            rules = self._rules.get(parent)
            if rules is not None:
                verdict = rules.check_file(shown[len(parent) + 1 if parent else 0 :]).include
                if verdict is not None:
                    return verdict
            if not parent:
                return False
            parent = parent.rpartition("/")[0]
        return False


def _identity(base: Path) -> tuple[int, int, int]:
    facts = base.stat()
    return facts.st_dev, facts.st_ino, facts.st_ctime_ns


@lru_cache(maxsize=16)
def _ignore_rules(
    base: Path, identity: tuple[int, int, int]
) -> tuple[dict[str, pathspec.GitIgnoreSpec], frozenset[str]]:
    """The ignore rules of a base by folder, and every path in it that is a file or holds one."""
    del identity  # only tells apart two bases that had one path
    rules: dict[str, pathspec.GitIgnoreSpec] = {}
    known: set[str] = set()
    for found in walk(base):
        if is_git_name(found.name):
            found.enter = False
        elif not found.is_folder:
            parent = found.path.rpartition("/")[0]
            known.add(found.path)
            while parent and parent not in known:
                known.add(parent)
                parent = parent.rpartition("/")[0]
            if found.name == _IGNORE_FILE and found.is_file and found.stat.st_size <= _MAX_IGNORE_BYTES:
                rules[found.path.rpartition("/")[0]] = pathspec.GitIgnoreSpec.from_lines(_lines(found))
    return rules, frozenset(known)


def _lines(found: Found) -> list[str]:
    file = open_file(found)
    if file is None:
        return []
    with os.fdopen(file, "rb") as stream:
        text = stream.read(_MAX_IGNORE_BYTES).decode("utf-8", "surrogateescape")
    return [line for line in text.split("\n") if _is_pattern(line)]


def _is_pattern(line: str) -> bool:
    """Whether a line can be read as a pattern; Git too passes over the others."""
    try:
        pathspec.GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def take_manifest(
    tree: Path,
    exclude: Exclusions | None = None,
    *,
    known: Manifest | None = None,
    largest: int | None = MAX_FILE_BYTES,
) -> Manifest:
    """The manifest of a tree in which nothing runs any more.

    Files with several names, set-id bits and owners are not told apart. Links that leave the tree, pipes,
    sockets, devices, files that cannot be read or have more than ``largest`` bytes are ``dropped``. Files that
    nobody has touched since ``known`` was taken are not read again where the file system lets us know.

    Raises:
        SandboxError: the tree is no folder any more, or cannot be read.
    """
    taking = _Taking(tree, exclude or Exclusions(), known, largest)
    try:
        taking.walk(tree)
    except OSError as error:
        raise SandboxError(f"reading the working tree {tree}", str(error)) from error
    return Manifest(taking.entries, tuple(taking.dropped), taking.times)


class _Taking:
    """One manifest while it is taken."""

    def __init__(self, tree: Path, exclude: Exclusions, known: Manifest | None, largest: int | None) -> None:
        self.entries: dict[str, Stamp] = {}
        self.dropped: list[Dropped] = []
        self.times: dict[str, Times] = {}
        self._exclude = exclude
        self._largest = largest
        self._known = known if known is not None and honest_times(tree) else None
        self._began = time.clock_gettime_ns(_COARSE_CLOCK)
        self._ignored: set[str] = set()

    def walk(self, tree: Path) -> None:
        for found in walk(tree):
            parent = found.path.rpartition("/")[0]
            out, ignored = self._exclude.leaves_out(
                found.path, folder=found.is_folder, ignored_above=parent in self._ignored
            )
            if ignored and found.is_folder:
                self._ignored.add(found.path)
            if out:
                found.enter = False
            elif found.is_folder:
                if not found.enter:
                    self._drop(found, "a folder that cannot be read or lies too deep")
            else:
                self._take(found)

    def _take(self, found: Found) -> None:
        why = path_problem(found.path)
        if why is not None:
            self._drop(found, why)
        elif found.is_link:
            self._take_link(found)
        elif not found.is_file:
            self._drop(found, "neither a file nor a link")
        elif self._largest is not None and found.stat.st_size > self._largest:
            self._drop(found, f"larger than {self._largest >> 20} MiB")
        else:
            self._take_file(found)

    def _take_link(self, found: Found) -> None:
        target = read_link(found)
        why = link_problem(found.path, target)
        if why is not None:
            self._drop(found, why)
        else:
            self.entries[found.path] = Stamp(LINK, hashlib.sha256(os.fsencode(target)).hexdigest())

    def _take_file(self, found: Found) -> None:
        times = Times.of(found.stat)
        if self._known is not None and self._known.times.get(found.path) == times:
            self.entries[found.path] = self._known.entries[found.path]
            self.times[found.path] = times
            return
        file = open_file(found)
        if file is None:
            self._drop(found, "a file that cannot be read")
            return
        try:
            digest = file_digest(file)
        finally:
            os.close(file)
        self.entries[found.path] = Stamp(git_mode(found.stat.st_mode), digest)
        # A change in the same tick of the clock would leave the times alone.
        if times.ctime < self._began:
            self.times[found.path] = times

    def _drop(self, found: Found, why: str) -> None:
        self.dropped.append(Dropped(found.path, why))


def git_mode(mode: int) -> str:
    """The mode that Git writes for a plain file: only whether its owner may execute it counts."""
    return EXECUTABLE if mode & stat.S_IXUSR else PLAIN


def file_digest(file: int) -> str:
    """The SHA-256 (hex) of an open file, from where it stands."""
    whole = hashlib.sha256()
    while chunk := os.read(file, _CHUNK):
        whole.update(chunk)
    return whole.hexdigest()


def honest_times(folder: Path) -> bool:
    """Whether every change of a file below ``folder`` shows in its ctime.

    Not so on tmpfs: a page that was mapped shared and read first can be written without any trace.
    """
    return _file_system(folder.stat().st_dev) in _HONEST_TIMES


@lru_cache(maxsize=64)
def _file_system(device: int) -> str | None:
    wanted = f"{os.major(device)}:{os.minor(device)}"
    found = None
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            fields = line.split(" ")
            if fields[2] == wanted:
                found = fields[fields.index("-") + 1]
    return found
