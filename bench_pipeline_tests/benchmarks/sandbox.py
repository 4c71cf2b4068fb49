"""Starting a sandbox against bare bubblewrap, and two workers against one."""

import shutil
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench_pipeline.execution.sandbox import Command, Limits, Place, open_sandbox
from bench_pipeline.execution.workspace import Workspaces
from bench_pipeline_tests.benchmarks import Row, best_of

# The least that gives the same namespaces over the same system.
BARE = (
    "bwrap", "--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000", "--disable-userns", "--cap-drop",
    "ALL", "--die-with-parent", "--new-session", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
    "--tmpfs", "/tmp", "true",
)  # fmt: skip
STARTS = 100
CELLS = 12
# A cell of a real tool takes minutes and mostly waits for a model.
WAIT_S = "0.25"


def measure() -> list[Row]:
    """Rows for this machine; none without bubblewrap."""
    if shutil.which("bwrap") is None:
        return []
    sandbox = open_sandbox("bubblewrap", allow_process=False)
    with tempfile.TemporaryDirectory(prefix="bench-sandbox-") as name:
        root = Path(name)
        place = Place(root / "tree", root / "home", root / "tmp")
        base = root / "base"
        for folder in (place.tree, place.home, place.tmp, base):
            folder.mkdir()
        (base / "file").write_text("x\n")

        def start() -> None:
            sandbox.run(Command(("true",)), place, Limits(60), stdout=root / "stdout", stderr=root / "stderr")

        def bare() -> None:
            subprocess.run(BARE, check=True, capture_output=True)

        # In turn, so that both meet the same machine.
        pairs = [(best_of(1, start), best_of(1, bare)) for _ in range(STARTS)]
        with Workspaces(root / "pool") as pool:

            def cell(_: int) -> None:
                with pool.open(base) as workspace:
                    sandbox.run(
                        Command(("sh", "-c", f"sleep {WAIT_S}; echo x > file")),
                        workspace.place,
                        Limits(60),
                        stdout=workspace.logs / "stdout",
                        stderr=workspace.logs / "stderr",
                    )

            def workers(count: int) -> float:
                began = time.perf_counter()
                with ThreadPoolExecutor(count) as executor:
                    list(executor.map(cell, range(CELLS)))
                return time.perf_counter() - began

            workers(2)
            one, two = workers(1), workers(2)
    return [
        Row("sandbox start to end against bare bubblewrap",
            statistics.median(ours for ours, _ in pairs), statistics.median(peer for _, peer in pairs), 2.0),
        Row("two workers against one", two, one, 1 / 1.7),
    ]  # fmt: skip
