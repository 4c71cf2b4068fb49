"""How long ``bench --help`` takes, against the interpreter alone."""

import subprocess
import sys
from pathlib import Path

from bench_pipeline_tests.benchmarks import Row, best_of

_RUNS = 15


def measure() -> list[Row]:
    """The installed program as a whole process."""
    program = str(Path(sys.executable).with_name("bench"))
    ours = best_of(_RUNS, lambda: _run(program, "--help"))
    peer = best_of(_RUNS, lambda: _run(sys.executable, "-c", "pass"))
    return [Row("bench --help / python -c pass", ours, peer, 5.0)]


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
