"""Whole ledgers: compressed, cut off, with lines of any length, in one piece or in ranges; and what they add up to."""

import gzip
import json
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.documents.jsonl import MAX_LINE_BYTES
from bench_pipeline.errors import BenchError, DocumentError
from bench_pipeline.ledgers import blocks as cutting
from bench_pipeline.ledgers.reading import summarize
from bench_pipeline.ledgers.routes import KINDS, Routes
from bench_pipeline.ledgers.summary import Summary
from bench_pipeline_tests.ledgers.scanners import plain_scanning
from bench_pipeline_tests.ledgers.writing import line, write_ledger

LINES = [
    line(partial=0.1, f2p=None, passed=False),
    line(partial=0.2, f2p=0.5, input_tokens=None),
    line(valid=False, partial=0.9, peak_context=99),
    line(route="baseline", input_tokens=None, partial=None, f2p=None),
    line(route="router-passthrough"),
    line(route=None),
    '{"route": ',
    line(route="npc-agent-local-v2", steps=3, peak_context=7),
]


def summary_of(path: Path, *, threads: int = 1) -> Summary:
    return summarize(path, Routes(), threads=threads, scanning=plain_scanning())


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return write_ledger(tmp_path / "ledger.jsonl", *LINES)


def test_each_route_has_its_own_sums_in_the_order_of_kinds_and_nothing_is_summed_across_them(
    ledger: Path,
) -> None:
    document = summary_of(ledger).document()
    assert [(row["route"], row["kind"]) for row in document["routes"]] == [
        ("npc-agent-local", "FairLocalNpcAgent"),
        ("npc-agent-local-v2", "FairLocalNpcAgent"),
        ("router-passthrough", "RouterOnly"),
        ("baseline", "Baseline"),
        (None, "Other"),
    ]
    assert document["routes"][0] == {
        "route": "npc-agent-local",
        "kind": "FairLocalNpcAgent",
        "rows": 3,
        "valid": 2,
        "passes": 1,
        "avg_partial": pytest.approx(0.15),
        "partial_n": 2,
        "avg_f2p": 0.5,
        "f2p_n": 1,
        "input_tokens": 100,
        "output_tokens": None,
        "steps": None,
        "peak_context": None,
    }
    assert {key: document[key] for key in document if key != "routes"} == {
        "total_rows": 7,
        "valid_rows": 6,
        "invalid_rows": 1,
        "fair_agent_rows": 4,
        "valid_fair_agent_rows": 3,
        "router_only_rows": 1,
        "unparsable_lines": 1,
        "unparsable_line_numbers": [7],
        "incomplete_tail": False,
    }


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_a_compressed_ledger_sums_up_alike_also_in_several_members_and_under_any_name(
    ledger: Path, tmp_path: Path, name: str
) -> None:
    halves = ledger.read_bytes().partition(b"\n")
    packed = b"".join(pa.compress(part, codec=name, asbytes=True) for part in (halves[0] + b"\n", halves[2]))
    (tmp_path / "packed").write_bytes(packed)
    assert summary_of(tmp_path / "packed") == summary_of(ledger)


def test_a_compressed_ledger_that_is_cut_off_is_still_being_written(tmp_path: Path) -> None:
    rows = "".join(line(input_tokens=number) + "\n" for number in range(20_000))
    packed = gzip.compress(rows.encode())
    (tmp_path / "ledger.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    summary = summary_of(tmp_path / "ledger.jsonl.gz")
    assert summary.incomplete_tail
    assert summary.unparsable_lines == 0
    assert 0 < summary.document()["total_rows"] < 20_000


def test_a_compressed_ledger_that_is_damaged_is_an_error(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress("".join(line(steps=n) + "\n" for n in range(5000)).encode()))
    packed[200:220] = bytes(20)
    (tmp_path / "ledger.jsonl.gz").write_bytes(packed)
    with pytest.raises(BenchError, match="gzip"):
        summary_of(tmp_path / "ledger.jsonl.gz")


def test_a_ledger_that_is_not_there_or_is_a_folder_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(DocumentError):
            summary_of(path)


@pytest.mark.parametrize(
    ("tail", "incomplete", "rows"),
    [('{"route": "npc', True, 7), (line(route="baseline"), False, 8), ("", False, 7)],
)
def test_a_last_line_without_a_line_feed_is_a_row_or_is_still_being_written(
    tmp_path: Path, tail: str, incomplete: bool, rows: int
) -> None:
    document = summary_of(write_ledger(tmp_path / "ledger.jsonl", *LINES, tail, end="")).document()
    assert (document["incomplete_tail"], document["total_rows"]) == (incomplete, rows)
    assert document["unparsable_line_numbers"] == [7]


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff"])
def test_a_ledger_without_rows_sums_up_to_nothing(tmp_path: Path, content: str) -> None:
    summary = summary_of(write_ledger(tmp_path / "ledger.jsonl", content, end=""))
    assert summary.document()["routes"] == []
    (row,) = summary.table_rows("empty", "0")
    assert (row["rows"], row["avg_partial"], row["input_tokens"]) == (0, None, None)


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    summary = summary_of(write_ledger(tmp_path / "ledger.jsonl", "\ufeff" + line()))
    assert (summary.unparsable_lines, summary.document()["valid_rows"]) == (0, 1)


def test_a_line_that_is_too_long_is_counted_and_not_kept(tmp_path: Path) -> None:
    note = "x" * MAX_LINE_BYTES
    path = write_ledger(tmp_path / "ledger.jsonl", LINES[0], line(note=note * 3), LINES[1], line(note=note))
    document = summary_of(path).document()
    assert document["unparsable_line_numbers"] == [2, 4]
    assert document["total_rows"] == 2
    tail = write_ledger(tmp_path / "tail.jsonl", LINES[0], line(note=note), end="")
    assert summary_of(tail).incomplete_tail


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_blocks_of_any_size_give_one_summary(
    ledger: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    whole = summary_of(ledger)
    monkeypatch.setattr(cutting, "BLOCK_BYTES", size)
    assert summary_of(ledger) == whole


def test_several_threads_give_the_summary_and_the_line_numbers_of_one(tmp_path: Path) -> None:
    lines = [line(partial=number / 7 % 1, steps=number) for number in range(3000)]
    for at in (0, 5, 1499, 1500, 1501, 2999):
        lines[at] = "?"
    path = write_ledger(tmp_path / "ledger.jsonl", *lines, '{"cut": ', end="")
    assert summary_of(path, threads=3) == summary_of(path) == summarize(path, Routes())


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 2**53 - 1)), min_size=1), st.integers(0, 100))
def test_sums_are_exact_in_any_pieces_and_survive_their_state(
    values: list[tuple[float, int]], cut: int
) -> None:
    from bench_pipeline.ledgers.blocks import Block
    from bench_pipeline.ledgers.reading import Reader

    rows = [json.dumps({"route": "x", "partial": share, "n_input_tokens": count}) for share, count in values]
    parts = []
    for part in (rows[:cut], rows[cut:]):
        reader = Reader(Routes())
        reader.add(Block("".join(row + "\n" for row in part).encode()))
        parts.append(Summary.from_state(json.loads(json.dumps(reader.summary.state()))))
    parts[0].append(parts[1])
    (route,) = parts[0].document()["routes"]
    assert route["input_tokens"] == sum(count for _, count in values)
    exact = sum((Fraction(share) for share, _ in values), Fraction()) / len(values)
    assert abs(Fraction(route["avg_partial"]) - exact) < Fraction(1, 2**52)


def test_the_sample_ledger_has_every_kind_invalid_rows_and_a_bad_line() -> None:
    document = summary_of(Path(__file__).parents[2] / "data/ledgers/north-lab.jsonl").document()
    assert {row["kind"] for row in document["routes"]} == set(KINDS)
    assert (document["total_rows"], document["invalid_rows"], document["unparsable_line_numbers"]) == (
        15,
        5,
        [10],
    )
