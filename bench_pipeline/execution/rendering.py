"""Two sets of files as a patch, for people and for other tools.

What belongs here: rendering and counting a patch. What does not: applying one (``tasks.patches``).

Git compares two trees of objects that we wrote into a repository of its own; it sees no working tree, so
nothing in one can steer it.
"""

import hashlib
import os
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from bench_pipeline.errors import RefusedError
from bench_pipeline.tasks.git import run_git
from bench_pipeline.tasks.patches import read_patch
from bench_pipeline.tasks.trees import TreeFile

_TREE_MODE = b"40000"
# A patch is rendered for people and after a cell's time: what nobody reads through costs no minutes.
MAX_FILES = 5_000
MAX_BYTES = 64 << 20
_SECONDS = 60.0


def render(before: Mapping[str, TreeFile], after: Mapping[str, TreeFile]) -> bytes:
    """The patch in Git's format, binary files included, that makes the files ``after`` of those ``before``.

    Raises:
        RefusedError: there is more to render than MAX_FILES or MAX_BYTES; nothing is done then.
        BenchError: Git could not be run, or took too long.
    """
    files = len({*before, *after})
    size = sum(len(file.content) for side in (before, after) for file in side.values())
    if files > MAX_FILES or size > MAX_BYTES:
        wrong = (
            f"{files} files with {size >> 20} MiB are more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB"
        )
        raise RefusedError("rendering the patch", wrong)
    with tempfile.TemporaryDirectory(prefix="bench-render-") as name:
        scratch = Path(name)
        git_dir, nothing = scratch / "git", scratch / "empty"
        nothing.mkdir()
        for part in ("objects", "refs"):
            (git_dir / part).mkdir(parents=True)
        (git_dir / "HEAD").write_bytes(b"ref: refs/heads/none\n")
        trees = [_add_tree(git_dir, files) for files in (before, after)]
        return run_git(
            ["diff-tree", "-r", "-p", "--binary", "--full-index", "-M100%", "-l0", "--no-ext-diff",
             "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/", *trees],
            cwd=nothing,
            git_dir=git_dir,
            seconds=_SECONDS,
        )  # fmt: skip


def _add_tree(git_dir: Path, files: Mapping[str, TreeFile]) -> str:
    """Write a tree object with everything below it; returns its name."""
    entries: dict[bytes, tuple[bytes, str]] = {}
    folders: dict[str, dict[str, TreeFile]] = {}
    for path, file in files.items():
        first, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(first, {})[rest] = file
        else:
            entries[os.fsencode(first)] = (file.mode.encode(), _add_object(git_dir, b"blob", file.content))
    for name, below in folders.items():
        # Git orders a folder as if its name ended in a slash.
        entries[os.fsencode(name) + b"/"] = (_TREE_MODE, _add_tree(git_dir, below))
    content = b"".join(
        b"%s %s\0%s" % (mode, name.rstrip(b"/"), bytes.fromhex(digest))
        for name, (mode, digest) in sorted(entries.items())
    )
    return _add_object(git_dir, b"tree", content)


def _add_object(git_dir: Path, kind: bytes, content: bytes) -> str:
    whole = b"%s %d\0%s" % (kind, len(content), content)
    name = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    folder = git_dir / "objects" / name[:2]
    folder.mkdir(exist_ok=True)
    (folder / name[2:]).write_bytes(zlib.compress(whole, 1))
    return name


def patch_stats(patch: bytes) -> tuple[int, int]:
    """How many files a patch touches, and how many lines it adds and removes; binary files have no lines."""
    touched = read_patch(patch)
    return len(touched), sum(len(file.added) + file.removed for file in touched)
