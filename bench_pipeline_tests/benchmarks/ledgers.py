"""Summing up a large ledger with bad lines: against DuckDB, the standard JSON decoder, and 64 MiB of memory."""

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import duckdb

from bench_pipeline.ledgers.parsing import compiled
from bench_pipeline.ledgers.reading import summarize
from bench_pipeline.ledgers.routes import Routes
from bench_pipeline_tests.benchmarks import Row, best_of

# A gigabyte.
TRIALS = 3_000_000
ROUTES = ("npc-agent-local", "npc-agent-local-v2", "router-passthrough", "baseline", "npc-agent-tuned")
BAD_EVERY = 5000
GROWTH_MIB = 64.0
# What numba and LLVM take beside, once and whatever the size.
COMPILER_MIB = 144.0
# Of the lines that the standard library decodes: all of them would take minutes.
SAMPLE = 100_000

_GROUPS = """
SELECT route, count(*), count(*) FILTER (valid), count(*) FILTER (valid AND passed),
    avg(partial) FILTER (valid), avg(f2p) FILTER (valid), sum(input_tokens) FILTER (valid),
    sum(output_tokens) FILTER (valid), sum(steps) FILTER (valid), max(peak_context) FILTER (valid)
FROM read_json(?, format = 'newline_delimited', ignore_errors = true) GROUP BY route
"""

# In a process of its own: how much is taken before the first line is read, and how much by reading.
_MEMORY = """
import sys
from pathlib import Path
from bench_pipeline.ledgers.parsing import compiled
from bench_pipeline.ledgers.reading import summarize
from bench_pipeline.ledgers.routes import Routes

def mib(name):
    text = Path("/proc/self/status").read_text()
    return int(next(line for line in text.splitlines() if line.startswith(name)).split()[1]) / 1024

started = mib("VmRSS")
compiled()
loaded = mib("VmRSS")
summarize(Path(sys.argv[1]), Routes())
print(loaded - started, mib("VmHWM") - loaded)
"""


def measure() -> list[Row]:
    """Time against DuckDB and the standard library; memory for the compiler, and its growth against 64 MiB."""
    with tempfile.TemporaryDirectory(prefix="bench-ledger-") as folder:
        path = Path(folder) / "ledger.jsonl"
        bad = _write(path)

        def ours() -> None:
            assert summarize(path, Routes()).unparsable_lines == bad

        def duck() -> None:
            with duckdb.connect() as connection:
                assert len(connection.execute(_GROUPS, [str(path)]).fetchall()) >= len(ROUTES)

        compiled()
        seconds, peer = _by_turns(3, ours, duck)
        with path.open("rb") as stream:
            lines = [stream.readline() for _ in range(SAMPLE)]
        standard = best_of(3, lambda: _decode(lines)) * (TRIALS + bad) / SAMPLE
        done = subprocess.run(
            [sys.executable, "-c", _MEMORY, str(path)], check=True, capture_output=True, text=True
        )
        compiler, growth = map(float, done.stdout.split())
        return [
            Row(f"ledgers: {TRIALS:,} trials / DuckDB's groups", seconds, peer, 1.5),
            Row(f"ledgers: {TRIALS:,} trials / the standard JSON decoder", seconds, standard, 1 / 6),
            Row("ledgers: memory of the compiler in MiB / allowed", compiler, COMPILER_MIB, 1.0),
            Row("ledgers: growth of memory in MiB / allowed", growth, GROWTH_MIB, 1.0),
        ]


def _by_turns(rounds: int, *calls: Callable[[], None]) -> list[float]:
    """The shortest time of each call, taken in turns: a machine's load comes and goes."""
    times = [[best_of(1, call) for call in calls] for _ in range(rounds)]
    return [min(column) for column in zip(*times, strict=True)]


def _decode(lines: list[bytes]) -> None:
    for line in lines:
        try:
            json.loads(line)
        except ValueError:
            continue


def _write(path: Path) -> int:
    """A ledger of TRIALS rows; the number of bad lines among them."""
    chance = random.Random(8259)
    bad = 0
    with path.open("w", encoding="utf-8") as out:
        for number in range(TRIALS):
            f2p, p2p = chance.randint(1, 8), chance.randint(0, 40)
            f2p_passed, p2p_passed = chance.randint(0, f2p), p2p - (chance.random() < 0.2 and p2p > 0)
            row = {
                "task_id": f"repository__task-{number % 500}",
                "route": chance.choice(ROUTES),
                "valid": chance.random() < 0.95,
                "passed": f2p_passed == f2p and p2p_passed == p2p,
                "partial": (f2p_passed + p2p_passed) / (f2p + p2p),
                "f2p": f2p_passed / f2p,
                "input_tokens": chance.randint(1000, 200_000),
                "output_tokens": chance.randint(100, 9000),
                "steps": chance.randint(1, 60),
                "peak_context": chance.randint(1000, 120_000),
                "f2p_passed": f2p_passed,
                "f2p_total": f2p,
                "p2p_passed": p2p_passed,
                "p2p_total": p2p,
                "model": "a-model",
                "note": f"finished after {number} turns",
            }
            out.write(json.dumps(row) + "\n")
            if number % BAD_EVERY == BAD_EVERY - 1:
                out.write('{"route": "baseline", "valid": tr\n')
                bad += 1
    return bad
