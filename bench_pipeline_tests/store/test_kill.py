"""kill -9 at any moment: no torn part is ever read, and everything reported as done is there."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench_pipeline.store import Store

WRITER = """
import sys
from datetime import UTC, datetime
from bench_pipeline.store import Store
from bench_pipeline.store.schemas import CANDIDATE_PARTS, VERDICT_PARTS

store = Store.open(sys.argv[1])
number = int(sys.argv[2])
while True:
    number += 1
    key = number.to_bytes(32, "big")
    now = datetime.now(UTC)
    patch = store.artifacts.put(b"patch of " + key, "text/x-diff")
    candidate = {"run_key": key, "overlay": patch, "empty": False, "measured_at": now}
    store.candidates.append(CANDIDATE_PARTS.from_rows([candidate]))
    verdict = {
        "identity": key, "run_key": key, "verify_key": key, "outcome": "passed", "outcome_class": "verdict",
        "passed": True, "tool_ran": True, "measured_at": now, "artifacts": {"patch": patch},
    }
    store.verdicts.append(VERDICT_PARTS.from_rows([verdict]))
    print(number, flush=True)
"""


def killed_writer(location: Path, first: int, lines: int, delay_s: float) -> int:
    """Run a writer until it has reported ``lines`` and a little longer; the last number it reported as done."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(location), str(first)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    done = first
    for _ in range(lines):
        done = int(writer.stdout.readline())
    time.sleep(delay_s)
    writer.send_signal(signal.SIGKILL)
    rest, _ = writer.communicate()
    return max([done, *map(int, rest.split())])


@pytest.mark.parametrize("seed", [1, 2])
def test_everything_reported_before_a_kill_is_there_and_nothing_is_torn(tmp_path: Path, seed: int) -> None:
    moments = random.Random(seed)
    reported = 0
    for _ in range(4):
        started = reported
        reported = killed_writer(tmp_path, started, moments.randint(1, 30), moments.uniform(0, 0.05))
        store = Store.open(tmp_path)
        keys = [number.to_bytes(32, "big") for number in range(1, reported + 1)]
        found = store.verdicts.newest(keys)
        assert found["identity"].to_pylist() == keys
        assert set(found["verdict_count"].to_pylist()) <= {1, 2}
        overlays = store.candidates.newest(keys)["overlay"].to_pylist()
        assert len(overlays) == len(keys)
        for key, digest in list(zip(keys, overlays, strict=True))[started:]:
            assert store.artifacts.get(digest) == b"patch of " + key
        assert store.quarantined == []
