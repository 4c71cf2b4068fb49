"""Looking up 100,000 identities among 10,000,000 verdict rows, and 1,000 small parts against one."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from bench_pipeline.store import Store, parquet
from bench_pipeline.store.schemas import VERDICT_PARTS
from bench_pipeline_tests.benchmarks import Row, best_of

ROWS = 10_000_000
ROWS_PER_PART = 500_000
WANTED = 100_000
# What a plan asks of the store.
COLUMNS = ["identity", "outcome", "outcome_class", "passed", "measured_at"]
MEMORY_MIB = 400.0

# In a process of its own, for its memory; by turns with its peer, since a machine's load comes and goes.
_LOOK_UP = """
import json, sys, time
from pathlib import Path
import duckdb, numpy as np, pyarrow as pa
from bench_pipeline.store import Store

folder, columns = Path(sys.argv[1]), json.loads(sys.argv[2])
wanted = pa.array(np.load(folder / "wanted.npy").view("V32").ravel().tolist(), pa.binary(32))
files = [str(path) for path in sorted((folder / "verdicts").glob("*.parquet"))]

def ours():
    found = Store.open(folder).verdicts.newest(wanted, columns=columns)
    assert found.num_rows == len(wanted), found.num_rows

def peer():
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.register("wanted", pa.table({"identity": wanted.cast(pa.binary())}))
        picked = ", ".join(f"part.{name}" for name in columns)
        query = f"SELECT {picked} FROM read_parquet({files}) part JOIN wanted USING (identity)"
        assert connection.sql(query).to_arrow_table().num_rows == len(wanted)

def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start

ours()
ours()
# Not ru_maxrss, which a child inherits from the process that started it.
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
turns = [(seconds(ours), seconds(peer)) for _ in range(5)]
print(json.dumps([*map(min, zip(*turns)), int(peak.split()[1]) / 1024]))
"""


def measure() -> list[Row]:
    """Four rows: time against DuckDB and pandas, memory against 400 MiB, small parts against one."""
    with tempfile.TemporaryDirectory(prefix="bench-store-") as folder:
        return [*_large(Path(folder) / "large"), *_small(Path(folder) / "small")]


def _large(folder: Path) -> list[Row]:
    wanted = _fill(folder)
    np.save(folder / "wanted.npy", wanted)
    arguments = [str(folder), json.dumps(COLUMNS)]
    done = subprocess.run(
        [sys.executable, "-c", _LOOK_UP, *arguments], check=True, capture_output=True, text=True
    )
    ours, duck, memory = json.loads(done.stdout)
    keys = pd.DataFrame({"identity": _keys(wanted).to_pylist()})
    files = sorted((folder / "verdicts").glob("*.parquet"))

    def pandas() -> int:
        parts = pd.concat([pd.read_parquet(file, columns=COLUMNS) for file in files[:2]], ignore_index=True)
        return len(parts.merge(keys, on="identity"))

    return [
        Row("store: 100,000 of 10,000,000 identities / bare DuckDB join", ours, duck, 1.5),
        # Ten times faster: all of the rows while pandas reads and merges a tenth of them.
        Row(
            "store: 100,000 of 10,000,000 identities / pandas merge of 1,000,000",
            ours,
            best_of(1, pandas),
            1.0,
        ),
        Row("store: its memory in MiB / allowed", memory, MEMORY_MIB, 1.0),
    ]


def _small(folder: Path) -> list[Row]:
    """A thousand appends of one row, as cells make them, before and after compaction."""
    store = Store.open(folder)
    keys = [number.to_bytes(32, "big") for number in range(1000)]
    for key in keys:
        row = {
            "identity": key,
            "run_key": key,
            "verify_key": bytes(32),
            "outcome": "passed",
            "outcome_class": "verdict",
            "passed": True,
            "tool_ran": True,
            "measured_at": datetime.now(UTC),
            "artifacts": {"patch": "ab" * 32},
        }
        store.verdicts.append(VERDICT_PARTS.from_rows([row]))

    def look_up() -> None:
        # A store of its own, which remembers nothing.
        assert Store.open(folder).verdicts.newest(keys).num_rows == len(keys)

    small = best_of(20, look_up)
    store.compact()
    return [Row("store: look-up after 1,000 appends / after compaction", small, best_of(20, look_up), 3.0)]


def _fill(folder: Path) -> np.ndarray:
    """Write 10,000,000 rows in sorted parts; 100,000 of their identities, as rows of 32 bytes."""
    random = np.random.default_rng(8785)
    store = Store.open(folder)
    samples = []
    for number, table in enumerate(_tables(random)):
        data = parquet.encode(table, VERDICT_PARTS, sorted_by=("identity", "sequence"))
        store.files.write(f"verdicts/{number:020d}-m-{number:012x}.parquet", data)
        picked = random.choice(table.num_rows, WANTED * ROWS_PER_PART // ROWS, replace=False)
        identities = np.frombuffer(table["identity"].chunk(0).buffers()[1], dtype=np.uint8).reshape(-1, 32)
        samples.append(identities[picked])
    return np.concatenate(samples)


def _tables(random: np.random.Generator) -> Iterator[pa.Table]:
    checks = random.integers(0, 256, (1000, 32), dtype=np.uint8)
    outcomes = np.array(["passed", "failed", "no_changes"])
    count = ROWS_PER_PART
    for first in range(0, ROWS, count):
        identities = random.integers(0, 256, (count, 32), dtype=np.uint8)
        identities = identities[np.argsort(np.ascontiguousarray(identities[:, :8]).view(">u8").ravel())]
        columns = {
            "identity": _keys(identities),
            "run_key": _keys(random.integers(0, 256, (count, 32), dtype=np.uint8)),
            "verify_key": _keys(checks[random.integers(0, len(checks), count)]),
            "outcome": pa.array(outcomes[random.integers(0, 3, count)]),
            "outcome_class": pa.array(["verdict"] * count),
            "passed": pa.array(random.random(count) < 0.5),
            "duration_s": pa.array(random.random(count) * 1000),
            "tokens_input": pa.array(random.integers(0, 1_000_000, count)),
            "measured_at": pa.array(random.integers(1_700_000_000_000_000, 1_800_000_000_000_000, count)),
            "tool_ran": pa.array(np.ones(count, dtype=bool)),
            "sequence": pa.array(random.permutation(count) + first),
        }
        absent = {
            field.name: pa.nulls(count, field.type)
            for field in VERDICT_PARTS.schema
            if field.name not in columns
        }
        yield parquet.fit(pa.table(columns | absent), VERDICT_PARTS.schema)


def _keys(rows: np.ndarray) -> pa.Array:
    """Rows of 32 bytes as keys."""
    data = pa.py_buffer(np.ascontiguousarray(rows).tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(32), len(rows), [None, data])
