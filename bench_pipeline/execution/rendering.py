"""A candidate as a patch, for people and for other tools.

What belongs here: rendering an overlay and counting a patch. What does not: applying patches (``tasks``).

Git compares two trees of objects that we wrote into a repository of its own; it sees neither the base nor
the candidate's tree, so nothing in them can steer it.
"""

import hashlib
import os
import tempfile
import zlib
from pathlib import Path

from bench_pipeline.execution.overlay import Overlay
from bench_pipeline.tasks.git import run_git
from bench_pipeline.tasks.patches import read_patch
from bench_pipeline.tasks.trees import TreeFile, read_file

_TREE_MODE = b"40000"


def render_patch(base_tree: Path, overlay: Overlay) -> bytes:
    """The overlay as a patch against ``base_tree`` in Git's format, binary files included.

    It is exact: applied to the base it gives what the overlay gives. Files that the overlay leaves as the
    base has them do not show.

    Raises:
        BenchError: Git could not be run.
    """
    before = {path: file for path in overlay.touched_paths() if (file := _base_file(base_tree, path))}
    after = {entry.path: entry for entry in overlay.entries}
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
        )  # fmt: skip


def _base_file(base_tree: Path, path: str) -> TreeFile | None:
    try:
        return read_file(base_tree, path)
    except ValueError:
        return None


def _add_tree(git_dir: Path, files: dict[str, TreeFile]) -> str:
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
