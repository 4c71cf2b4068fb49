"""Append-only parts: merged without loss, read once, put aside only when proven corrupt."""

import errno
import json
import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench_pipeline.errors import NewerSchemaError, StoreError
from bench_pipeline.store import Store, parts
from bench_pipeline.store.schemas import VERDICT_PARTS

SAMPLES = Path(__file__).parent / "samples"


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def rows(*identities: int, **changes: Any) -> pa.Table:
    return VERDICT_PARTS.from_rows(
        [
            {
                "identity": key(identity),
                "run_key": key(identity + 1000),
                "verify_key": key(7),
                "outcome": "passed",
                "outcome_class": "verdict",
                "passed": True,
                "tool_ran": True,
                "measured_at": datetime(2026, 1, 1, tzinfo=UTC),
                **changes,
            }
            for identity in identities
        ]
    )


def stored(store: Store, count: int) -> list[int]:
    """Which of the identities 0 to ``count`` - 1 the store knows."""
    found = store.verdicts.newest([key(identity) for identity in range(count)], columns=["identity"])
    return [int.from_bytes(identity, "big") for identity in found["identity"].to_pylist()]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def part_files(store: Store) -> list[Path]:
    assert store.root is not None
    return sorted((store.root / "verdicts").glob("*.parquet"))


def test_many_appends_leave_few_parts_and_lose_nothing(store: Store) -> None:
    for identity in range(150):
        store.verdicts.append(rows(identity))
    assert len(part_files(store)) < 3 * 16
    assert stored(store, 150) == list(range(150))
    assert store.verdicts.newest([key(3)])["tries"].to_pylist() == [1]


def test_appending_no_rows_writes_nothing(store: Store) -> None:
    store.verdicts.append(rows())
    assert part_files(store) == []


def test_a_crash_between_writing_a_merged_part_and_removing_the_old_ones_counts_rows_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for identity in (1, 1, 2):
        store.verdicts.append(rows(identity))
    monkeypatch.setattr(store.files, "delete", lambda _: None)
    store.verdicts.log.compact()
    monkeypatch.undo()
    assert len(part_files(store)) == 4
    assert store.verdicts.newest([key(1), key(2)])["tries"].to_pylist() == [2, 1]
    store.verdicts.log.compact()
    assert len(part_files(store)) == 1
    assert store.verdicts.newest([key(1), key(2)])["tries"].to_pylist() == [2, 1]


def test_a_reader_starts_over_when_a_merge_removes_a_part_under_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for identity in range(5):
        store.verdicts.append(rows(identity))
    read, other = store.files.read, Store.open(store.location)

    def merge_first(path: str) -> bytes:
        monkeypatch.setattr(store.files, "read", read)
        other.verdicts.log.compact()
        return read(path)

    monkeypatch.setattr(store.files, "read", merge_first)
    assert stored(store, 5) == list(range(5))
    assert store.quarantined == []


def test_threads_and_readers_at_once_lose_and_repeat_nothing(store: Store) -> None:
    def append(first: int) -> None:
        for identity in range(first, first + 40):
            store.verdicts.append(rows(identity))

    writers = [threading.Thread(target=append, args=(first,)) for first in (0, 40, 80)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        seen = stored(store, 120)
        assert len(seen) == len(set(seen))
    for writer in writers:
        writer.join()
    assert stored(store, 120) == list(range(120))
    assert set(store.verdicts.newest([key(i) for i in range(120)])["tries"].to_pylist()) == {1}


def spoil(path: Path, how: str) -> None:
    data = path.read_bytes()
    middle = len(data) // 2
    flipped = data[:100] + bytes([data[100] ^ 0xFF]) + data[101:]
    contents = {
        "empty": b"",
        "half": data[:middle],
        "garbage": os.urandom(len(data)),
        "one flipped byte": flipped,
    }
    path.write_bytes(contents[how])


@pytest.mark.parametrize("how", ["empty", "half", "garbage", "one flipped byte"])
def test_a_part_proven_corrupt_is_put_aside_with_a_reason_and_reading_goes_on(store: Store, how: str) -> None:
    for identity in range(3):
        store.verdicts.append(rows(identity))
    broken = part_files(store)[1]
    spoil(broken, how)
    content = broken.read_bytes()
    assert stored(store, 3) == [0, 2]
    assert not broken.exists()
    [found] = store.quarantined
    assert found.path == f"verdicts/{broken.name}"
    assert store.root is not None
    assert found.moved_to is not None
    assert (store.root / found.moved_to).read_bytes() == content
    note = json.loads((store.root / f"{found.moved_to}.json").read_text())
    assert note["path"] == found.path
    assert note["reason"] == found.reason
    assert note["bytes"] == len(content)
    assert stored(store, 3) == [0, 2]
    assert len(store.quarantined) == 1


def test_a_parquet_file_of_something_else_is_put_aside(store: Store) -> None:
    store.verdicts.append(rows(0))
    pq.write_table(pa.table({"identity": [key(1)]}), part_files(store)[0].with_name("stranger.parquet"))
    assert stored(store, 2) == [0]
    assert "verdict-part" in store.quarantined[0].reason


def test_a_store_opened_to_read_only_counts_a_corrupt_part_and_moves_nothing(store: Store) -> None:
    for identity in range(3):
        store.verdicts.append(rows(identity))
    spoil(part_files(store)[1], "half")
    before = sorted(store.files.list(""))
    reader = Store.open(store.location, read_only=True)
    assert stored(reader, 3) == [0, 2]
    assert stored(reader, 3) == [0, 2]
    assert [found.moved_to for found in reader.quarantined] == [None]
    assert sorted(store.files.list("")) == before
    with pytest.raises(StoreError, match="read only"):
        reader.verdicts.append(rows(5))


@pytest.mark.parametrize("large", [False, True])
def test_a_newer_part_stops_the_command_and_is_left_where_it_is(
    store: Store, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_LARGE", 1 if large else 1 << 30)
    store.verdicts.append(rows(0))
    file = part_files(store)[0]
    table = pq.read_table(file)
    stamps = {**table.schema.metadata, b"bench.version": b"99"}
    pq.write_table(table.append_column("brand_new", pa.array([1])).replace_schema_metadata(stamps), file)
    with pytest.raises(NewerSchemaError, match="version 99"):
        stored(store, 1)
    assert file.exists()
    assert store.quarantined == []


@pytest.mark.parametrize(
    "number", [errno.EIO, errno.EMFILE, errno.ENFILE, errno.EACCES, errno.ENOSPC, errno.EBUSY, errno.ESTALE]
)
def test_a_failure_of_the_disk_stops_with_an_error_and_puts_nothing_aside(
    store: Store, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for identity in range(3):
        store.verdicts.append(rows(identity))

    def fail(path: Path) -> bytes:
        raise OSError(number, os.strerror(number), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", fail)
        with pytest.raises(StoreError, match="verdicts/"):
            stored(store, 3)
    assert store.quarantined == []
    assert stored(store, 3) == [0, 1, 2]


def test_an_object_store_that_answers_503_stops_with_an_error_and_puts_nothing_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open(f"memory://{tmp_path.name}-503")
    store.verdicts.append(rows(0))

    class ServerError(Exception):
        """What a client library raises, which need not be an OSError."""

    def fail(*_: Any, **__: Any) -> bytes:
        raise ServerError("503 Slow Down")

    fs, _ = store.files._at("")  # type: ignore[attr-defined]
    with monkeypatch.context() as patch:
        patch.setattr(fs, "cat_file", fail)
        with pytest.raises(StoreError, match="503 Slow Down"):
            stored(store, 1)
    assert store.quarantined == []
    assert stored(store, 1) == [0]


def test_large_parts_are_streamed_with_the_same_answer(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for identity in (1, 1, 2, 3):
        store.verdicts.append(rows(identity, artifacts={"patch": "ab"}, phases={"tool": 1.5}))
    wanted = [key(3), key(1), key(9), key(3)]
    small = store.verdicts.newest(wanted)
    monkeypatch.setattr(parts, "_LARGE", 1)
    assert store.verdicts.newest(wanted).equals(small)
    assert small["tries"].to_pylist() == [1, 2]


@pytest.mark.parametrize("how", ["empty", "half", "garbage", "broken page"])
def test_a_large_corrupt_part_is_put_aside_and_the_others_are_read(
    store: Store, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_LARGE", -1)
    for identity in range(3):
        store.verdicts.append(rows(identity))
    broken = part_files(store)[1]
    if how == "broken page":
        data = broken.read_bytes()
        broken.write_bytes(data[:4] + b"\xff" * 300 + data[304:])
    else:
        spoil(broken, how)
    assert stored(store, 3) == [0, 2]
    assert [found.path for found in store.quarantined] == [f"verdicts/{broken.name}"]


def test_a_scan_that_fails_over_whole_parts_is_an_error_and_puts_nothing_aside(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_LARGE", -1)
    store.verdicts.append(rows(0))

    def fail(*_: Any) -> pa.Table:
        raise parts.scan.ScanError("out of memory")

    monkeypatch.setattr(parts.scan, "matching", fail)
    with pytest.raises(StoreError, match="out of memory"):
        stored(store, 1)
    assert store.quarantined == []


def test_parts_of_the_first_version_are_migrated_when_read(store: Store) -> None:
    assert store.root is not None
    (store.root / "verdicts").mkdir(parents=True)
    (store.root / "candidates").mkdir()
    (store.root / "verdicts" / "old.parquet").write_bytes((SAMPLES / "verdict-part-v0.parquet").read_bytes())
    (store.root / "candidates" / "old.parquet").write_bytes(
        (SAMPLES / "candidate-part-v0.parquet").read_bytes()
    )
    found = store.verdicts.newest([key(1), key(2)])
    assert found["outcome"].to_pylist() == ["passed", "timeout"]
    assert found["tries"].to_pylist() == [2, 1]
    assert found["tool_ran"].to_pylist() == [True, True]
    assert found["cost_is_real"].to_pylist() == [None, None]
    assert store.candidates.newest([key(1001)])["overlay"].to_pylist() == ["ab" * 32]
    assert store.quarantined == []


def test_an_older_version_without_a_way_up_is_an_error_and_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.verdicts.append(rows(0))
    file = part_files(store)[0]
    table = pq.read_table(file)
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"bench.version": b"0"}), file)
    monkeypatch.setattr("bench_pipeline.store.parquet.MIGRATIONS", {})
    with pytest.raises(StoreError, match="older than this bench_pipeline reads"):
        stored(store, 1)
    assert file.exists()
