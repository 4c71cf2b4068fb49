"""The pass over a ledger's bytes as it is used: compiled. All that compiles is in this file, to be done once."""

import random
from pathlib import Path

import pytest

from bench_pipeline.ledgers import reading
from bench_pipeline.ledgers.parsing import compiled
from bench_pipeline.ledgers.routes import Routes
from bench_pipeline_tests.ledgers.test_parsing import DAMAGE, GOOD, MALFORMED, assert_read_exactly
from bench_pipeline_tests.ledgers.writing import line, write_ledger


def test_compiled_it_reads_every_line_as_the_exact_decoder_does() -> None:
    chance = random.Random(8259)
    rows = [line(partial=number / 997, note="\U0001f600\\", inner={"a": [number]}) for number in range(998)]
    lines = [*MALFORMED.values(), *map(str.encode, rows)]
    for data in [GOOD, *map(str.encode, rows)]:
        at = chance.randrange(len(data))
        lines.append(data[:at] + chance.choice(DAMAGE) + data[at + chance.randrange(2) :])
    chance.shuffle(lines)
    for keep in (False, True):
        assert_read_exactly(
            [part for data in lines for part in data.split(b"\n")], keep=keep, scanning=compiled()
        )


def test_a_large_ledger_is_read_by_it_in_several_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [line(partial=number / 7 % 1, steps=number) if number % 1000 else "?" for number in range(5000)]
    path = write_ledger(tmp_path / "ledger.jsonl", *lines, '{"cut": ', end="")
    exact = reading.summarize(path, Routes())
    monkeypatch.setattr(reading, "_BYTES_TO_COMPILE", 1)
    assert reading.scanning_for(path.stat().st_size, b"") is compiled()
    assert reading.summarize(path, Routes(), threads=3) == exact
    assert exact.unparsable_lines == 5
