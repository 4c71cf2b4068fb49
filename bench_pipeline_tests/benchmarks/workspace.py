"""A fresh workspace for a cell, against the Git worktree that others make and remove."""

import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench_pipeline.execution.base_trees import BaseTrees
from bench_pipeline.execution.manifest import Exclusions, take_manifest
from bench_pipeline.execution.overlay import capture
from bench_pipeline.execution.workspace import Workspaces
from bench_pipeline_tests.benchmarks import Row, best_of

FILES = 3000
CELLS = 100


def fill(tree: Path) -> None:
    """A repository of a usual shape: 3,000 files of 0.2 to 8 KB in some hundred folders."""
    draw = random.Random(0)
    for number in range(FILES):
        place = tree / f"d{number % 60}" / f"e{number % 7}" / f"f{number}.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(draw.randbytes(draw.randint(200, 8000)))


def git(folder: Path, *words: str) -> None:
    subprocess.run(
        ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e", *words],
        check=True,
        capture_output=True,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"},
    )


def cell(pool: Workspaces, base: Path) -> None:
    """What a tool does to a tree: change two files, add one, leave something in HOME."""
    with pool.open(base) as workspace:
        tree = workspace.place.tree
        (tree / "d1" / "e1" / "f1.py").write_text("changed\n")
        (tree / "d2" / "e2" / "f2.py").unlink()
        (tree / "new.py").write_text("new\n")
        (workspace.place.home / "history").write_text("x\n")


def timed(call: Callable[[], None]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure() -> list[Row]:
    """Workspaces against worktrees, the last cells against the first, and the capture of a small change."""
    with tempfile.TemporaryDirectory(prefix="bench-workspace-") as name:
        root = Path(name)
        repository = root / "repository"
        repository.mkdir()
        fill(repository)
        for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "base")):
            git(repository, *words)

        def worktree() -> None:
            git(repository, "worktree", "add", "-q", "--detach", str(root / "worktree"))
            git(repository, "worktree", "remove", "--force", str(root / "worktree"))

        base = BaseTrees(root / "trees").get("base", fill)
        with Workspaces(root / "pool") as pool:
            cell(pool, base)
            # In turn, so that both meet the same disk.
            pairs = [(timed(lambda: cell(pool, base)), timed(worktree)) for _ in range(7)]
            times = [timed(lambda: cell(pool, base)) for _ in range(CELLS)]
            with pool.open(base) as workspace:
                exclude = Exclusions(base=base)
                before = take_manifest(workspace.place.tree, exclude, known=workspace.manifest)
                (workspace.place.tree / "new.py").write_text("new\n")
                captured = best_of(5, lambda: capture(workspace.place.tree, before, exclude))
            status = best_of(5, lambda: git(repository, "status", "--porcelain"))
    return [
        Row("workspace made and removed, 3,000 files, against git worktree",
            statistics.median(ours for ours, _ in pairs), statistics.median(peer for _, peer in pairs), 1.3),
        Row("workspace: the last 20 of 100 cells against the first 20",
            min(times[-20:]), min(times[:20]), 1.3),
        Row("capture of one changed file among 3,000 against git status", captured, status, 10.0),
    ]  # fmt: skip
