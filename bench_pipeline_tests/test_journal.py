"""The journal: every byte counts, nothing that is cut or out of order passes for whole."""

import hashlib
import io
import itertools
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.journal import (
    MAX_LINE_BYTES,
    PIECE_CHARS,
    JournalReader,
    JournalWriter,
    MerkleTree,
    inclusion_proof,
    is_included,
)

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def _write(*rows: tuple[str, dict[str, Any]]) -> bytes:
    stream = io.BytesIO()
    ticks = itertools.count()
    writer = JournalWriter(stream, lambda: START + timedelta(seconds=next(ticks)))
    for kind, payload in rows:
        writer.append(kind, payload)
    return stream.getvalue()


def _read(data: bytes) -> tuple[list[Any], JournalReader]:
    reader = JournalReader(io.BytesIO(data))
    return list(reader), reader


WHOLE = _write(
    ("open", {"scope": {"root": "/workspace"}}),
    ("read", {"path": "/workspace/a.py", "text": "caf\u00e9 \u2028 \x85 \x0c end"}),
    ("message", {"text": "done"}),
    ("close", {"exit_code": 0}),
)


def test_a_journal_reads_back_as_it_was_written() -> None:
    rows, reader = _read(WHOLE)
    assert [row.type for row in rows] == ["open", "read", "message", "close"]
    assert [row.index for row in rows] == [0, 1, 2, 3]
    assert rows[1].payload["text"] == "caf\u00e9 \u2028 \x85 \x0c end"
    assert reader.complete
    assert reader.head.rows == 4
    assert reader.head.last_hash == rows[-1].hash


def test_the_writer_and_the_reader_agree_on_the_head() -> None:
    stream = io.BytesIO()
    writer = JournalWriter(stream)
    for number in range(13):
        writer.append("open" if number == 0 else "message", {"text": str(number)})
    writer.append("close", {})
    assert _read(stream.getvalue())[1].head == writer.head


def test_the_hash_covers_everything_else_of_the_row_index_and_time_included() -> None:
    for line in WHOLE.splitlines():
        row = json.loads(line)
        found = row.pop("hash")
        whole = json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        assert hashlib.sha256(whole).hexdigest() == found


@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_a_change_of_any_byte_is_found(position: int, flip: int) -> None:
    changed = bytearray(WHOLE)
    changed[position] ^= flip
    _, reader = _read(bytes(changed))
    assert not reader.complete or reader.head != _read(WHOLE)[1].head


@pytest.mark.parametrize("name", ["index", "time", "type", "payload", "prev_hash"])
def test_a_row_forged_with_a_hash_of_its_own_breaks_the_chain(name: str) -> None:
    lines = WHOLE.splitlines()
    row = json.loads(lines[1])
    row[name] = {
        "index": 7,
        "time": "2027-01-01T00:00:00.000000Z",
        "type": "write",
        "payload": {},
        "prev_hash": "f" * 64,
    }[name]
    row.pop("hash")
    rest = json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    lines[1] = b'{"hash":"' + hashlib.sha256(rest).hexdigest().encode() + b'",' + rest[1:]
    assert not _read(b"\n".join(lines) + b"\n")[1].complete


def test_a_cut_prefix_is_incomplete_and_has_another_head() -> None:
    lines = WHOLE.splitlines(keepends=True)
    for kept in range(len(lines)):
        _, reader = _read(b"".join(lines[:kept]))
        assert not reader.complete
        assert reader.head != _read(WHOLE)[1].head


def test_a_half_last_line_makes_the_journal_incomplete() -> None:
    rows, reader = _read(WHOLE[:-1])
    assert len(rows) == 3
    assert reader.head.rows == 4
    assert not reader.complete


def test_a_line_that_does_not_parse_counts_as_a_row_and_makes_the_journal_incomplete() -> None:
    lines = WHOLE.splitlines(keepends=True)
    rows, reader = _read(b"".join([lines[0], b"\xff not json\n", *lines[2:]]))
    assert len(rows) == 3
    assert reader.head.rows == 4
    assert reader.problems == ["line 2 is no row"]


@pytest.mark.parametrize(
    ("order", "problem"),
    [
        ((0, 2, 3), "line 2 has the index 2, expected 1"),
        ((0, 1, 3), "line 3 does not follow from the row before"),
        ((1, 2, 3), "it does not begin with an open"),
        ((0, 1, 2, 3, 2), "line 5 comes after the close"),
        ((0, 1, 2), "there is no close"),
    ],
)
def test_a_gap_or_a_wrong_frame_is_named(order: tuple[int, ...], problem: str) -> None:
    lines = WHOLE.splitlines(keepends=True)
    assert problem in _read(b"".join(lines[each] for each in order))[1].problems


def test_a_second_open_is_named() -> None:
    assert "there is a second open" in _read(_write(("open", {}), ("open", {}), ("close", {})))[1].problems


def test_an_empty_file_is_no_complete_journal() -> None:
    assert _read(b"")[1].problems == ["there is no close"]


def test_problems_quote_nothing_and_are_bounded() -> None:
    _, reader = _read(b"needle in a broken line\n" * 5000)
    assert len(reader.problems) <= 21
    assert "needle" not in " ".join(reader.problems)


def test_a_line_of_100_megabytes_is_passed_over_in_pieces() -> None:
    class Endless(io.RawIOBase):
        left = 100 << 20
        largest = 0

        def readline(self, size: int | None = -1, /) -> bytes:
            assert size is not None
            self.largest = max(self.largest, size)
            taken = min(size, self.left)
            self.left -= taken
            return b"x" * taken

    stream = Endless()
    reader = JournalReader(stream)  # type: ignore[arg-type]
    assert list(reader) == []
    assert stream.left == 0
    assert stream.largest <= MAX_LINE_BYTES + 1


@pytest.mark.parametrize(
    "text", ["\ud800 lone", "\x00\x01", "\U0001f600" * 10, "\x1b[31m", "\u202e", "\u2028\u0085"]
)
def test_any_text_of_an_agent_can_be_written(text: str) -> None:
    rows, reader = _read(_write(("open", {}), ("read", {"path": text, "text": text}), ("close", {})))
    assert reader.complete
    assert rows[1].payload["text"] == text.encode("utf-8", "replace").decode()


def test_payloads_without_bounds_are_bounded() -> None:
    deep: Any = "bottom"
    for _ in range(5000):
        deep = [deep]
    data = _write(("open", {"deep": deep, "big": 10**400, "nan": float("nan")}), ("close", {}))
    assert _read(data)[1].complete
    assert len(data) < 2000


def test_a_long_text_goes_on_in_more_rows_that_fit_a_line() -> None:
    text = "\x01" * (2 * PIECE_CHARS + 5)
    data = _write(("open", {}), ("result", {"of": "Bash", "text": text}), ("close", {}))
    rows, reader = _read(data)
    assert reader.complete
    assert [row.payload.get("part") for row in rows] == [None, 0, 1, 2, None]
    assert "".join(str(row.payload["text"]) for row in rows[1:-1]) == text
    assert max(map(len, data.splitlines())) <= MAX_LINE_BYTES


def test_an_unknown_type_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="no type"):
        _write(("glance", {}))


@given(st.lists(st.binary(min_size=1, max_size=4), min_size=1, max_size=40), st.data())
def test_a_proof_of_inclusion_holds_for_its_leaf_alone(leaves: list[bytes], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(leaves) - 1))
    tree = MerkleTree()
    for leaf in leaves:
        tree.add(leaf)
    proof = inclusion_proof(leaves, index)
    assert is_included(leaves[index], index, len(leaves), proof, tree.root())
    assert not is_included(leaves[index] + b"x", index, len(leaves), proof, tree.root())
    assert not is_included(leaves[index], index, len(leaves), [*proof, b"x" * 32], tree.root())
    assert not is_included(leaves[index], len(leaves), len(leaves), proof, tree.root())
    other = data.draw(st.integers(0, len(leaves) - 1))
    if leaves[other] != leaves[index]:
        assert not is_included(leaves[index], other, len(leaves), proof, tree.root())


def test_the_root_is_that_of_rfc_6962() -> None:
    leaves = [
        bytes.fromhex(text) for text in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657")
    ]
    tree = MerkleTree()
    for leaf in leaves:
        tree.add(leaf)
    assert tree.root().hex() == "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"
    assert MerkleTree().root() == hashlib.sha256(b"").digest()
