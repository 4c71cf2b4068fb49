"""Which commits make tasks, and the four files of a task made from one.

What belongs here: judging commits, drafting a task's files. What does not: choosing the repository and
putting the folder into a project (``pipeline.harvesting``).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bench_pipeline.errors import RefusedError
from bench_pipeline.tasks.git import COMMIT_ID, Repository
from bench_pipeline.tasks.patches import SUBMODULE
from bench_pipeline.tasks.splitting import Patterns, Split, change_of, split_change

_MOMENT = re.compile(r" (\d{1,15}) [+-]\d{4}$")


@dataclass(frozen=True)
class Commit:
    """What a commit says of itself; ``at`` is the committer's time, None when it cannot be read."""

    id: str
    parents: tuple[str, ...]
    at: datetime | None
    message: str

    @property
    def subject(self) -> str:
        """The first line of the message."""
        return self.message.strip().partition("\n")[0].strip()


@dataclass(frozen=True)
class Change:
    """One changed path; modes are empty text where the file is not there."""

    path: str
    old_mode: str
    new_mode: str


@dataclass(frozen=True)
class Scanned:
    """A commit, how many files of each kind it changes, and why it makes no task (None: it does)."""

    commit: Commit
    tests: int
    source: int
    noise: int
    why_not: str | None


@dataclass(frozen=True)
class Harvest:
    """A commit that makes a task: its base, its change by kind, and patterns that its tests' names have."""

    commit: Commit
    base: str
    split: Split
    test_names: tuple[str, ...] = ()


def read_commits(repository: Repository, ids: Iterable[str]) -> Iterator[Commit]:
    """The commits of these ids, in order."""
    names = list(ids)
    for name, raw in zip(names, repository.contents(names, "commit"), strict=True):
        yield _parsed(name, raw)


def _parsed(name: str, raw: bytes) -> Commit:
    head, _, body = raw.partition(b"\n\n")
    parents: list[str] = []
    at = None
    encoding = "utf-8"
    for line in head.decode("utf-8", "replace").split("\n"):
        key, _, value = line.partition(" ")
        if key == "parent":
            parents.append(value)
        elif key == "committer" and (found := _MOMENT.search(line)):
            at = _moment(int(found[1]))
        elif key == "encoding":
            encoding = value
    try:
        message = body.decode(encoding, "replace")
    except (LookupError, UnicodeError):
        message = body.decode("utf-8", "replace")
    return Commit(name, tuple(parents), at, message)


def _moment(seconds: int) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def scan(
    repository: Repository, start: str, patterns: Patterns, *, limit: int, since: str | None = None
) -> Iterator[Scanned]:
    """Judge up to ``limit`` commits from ``start`` back; ``since`` is a date as Git reads it."""
    words = ["rev-list", f"--max-count={limit}", *([f"--since={since}"] if since else []), start, "--"]
    ids = repository.run(words).decode().split()
    commits = list(read_commits(repository, ids))
    changes = _changes(repository, [commit.id for commit in commits if len(commit.parents) == 1])
    for commit in commits:
        found = changes.get(commit.id, ())
        kinds = [patterns.kind(change.path) for change in found]
        yield Scanned(
            commit,
            kinds.count("test"),
            kinds.count("source"),
            kinds.count("noise"),
            refusal(commit, found, patterns),
        )


def _changes(repository: Repository, ids: Sequence[str]) -> dict[str, list[Change]]:
    asked = "".join(f"{name}\n" for name in ids).encode()
    words = [
        "diff-tree",
        "--stdin",
        "-r",
        "-z",
        "--raw",
        "--no-renames",
        "--no-ext-diff",
        "--ignore-submodules=none",
    ]
    fields = iter(repository.run(words, stdin=asked).decode("utf-8", "surrogateescape").split("\0"))
    found: dict[str, list[Change]] = {}
    current: list[Change] = []
    for field in fields:
        if field.startswith(":"):
            old, new, *_ = field[1:].split(" ")
            current.append(Change(next(fields), _there(old), _there(new)))
        elif field:
            current = found.setdefault(field, [])
    return found


def _there(mode: str) -> str:
    return "" if mode == "000000" else mode


def refusal(commit: Commit, changes: Iterable[Change], patterns: Patterns) -> str | None:
    """Why a commit makes no task, as a sentence; None when it makes one."""
    if not commit.parents:
        return "it is the first commit: there is no base to work from"
    if len(commit.parents) > 1:
        return "it is a merge: harvest the commits that it merges"
    by_kind: dict[str, list[Change]] = {"test": [], "source": [], "noise": []}
    for change in changes:
        by_kind[patterns.kind(change.path)].append(change)
    kept = [*by_kind["test"], *by_kind["source"]]
    submodules = [change.path for change in kept if SUBMODULE in {change.old_mode, change.new_mode}]
    rules = (
        (not kept, "it changes neither tests nor source"),
        (not by_kind["test"], "it changes no tests: nothing would check a candidate"),
        (not by_kind["source"], "it changes nothing but tests: there is nothing to do"),
        (not any(change.new_mode for change in by_kind["test"]), "it only removes tests"),
        (bool(submodules), f"it changes the submodule {submodules[0] if submodules else ''}"),
    )
    return next((why for broken, why in rules if broken), None)


def harvest(repository: Repository, name: str, patterns: Patterns) -> Harvest:
    """The commit that ``name`` means, split.

    Raises:
        NotFoundError: it names no commit.
        RefusedError: the commit makes no task; the error says why.
    """
    (commit,) = read_commits(repository, [repository.commit(name)])
    tried = f"making a task of the commit {commit.id[:12]}"
    if not COMMIT_ID.fullmatch(commit.id):
        raise RefusedError(tried, "the repository names its objects by SHA-256", "use one that uses SHA-1")
    if len(commit.parents) == 1:
        repository.commit(commit.parents[0])
    changes = _changes(repository, [commit.id] if len(commit.parents) == 1 else []).get(commit.id, [])
    why = refusal(commit, changes, patterns)
    if why:
        raise RefusedError(tried, why, "bench task scan lists the commits that make tasks")
    base = commit.parents[0]
    split = split_change(change_of(repository, base, commit.id), patterns)
    names = patterns.describing(path for part in split.tests for path in part.paths)
    return Harvest(commit, base, split, names)
