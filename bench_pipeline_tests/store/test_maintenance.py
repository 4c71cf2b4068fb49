"""Verify, compact, migrate: everything is read, nothing is lost."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench_pipeline.errors import NewerSchemaError, StoreError
from bench_pipeline.store import Store, parts
from bench_pipeline.store.maintenance import Finding
from bench_pipeline.store.schemas import CANDIDATE_PARTS, VERDICT_PARTS
from bench_pipeline.tables import table_schema

SAMPLES = Path(__file__).parent / "samples"


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def verdict(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "identity": key(number),
        "run_key": key(number + 1000),
        "verify_key": key(7),
        "outcome": "passed",
        "outcome_class": "verdict",
        "passed": True,
        "tool_ran": True,
        "measured_at": datetime(2026, 1, 1, tzinfo=UTC),
        **changes,
    }


def fill(store: Store, count: int) -> str:
    """Verdicts 0 to ``count`` - 1 with a candidate, a table and an artifact each refers to; the artifact's digest."""
    patch = store.artifacts.put(b"the patch", "text/x-diff")
    for number in range(count):
        candidate = {
            "run_key": key(number + 1000),
            "overlay": patch,
            "empty": False,
            "measured_at": datetime.now(UTC),
        }
        store.candidates.append(CANDIDATE_PARTS.from_rows([candidate]))
        store.verdicts.append(VERDICT_PARTS.from_rows([verdict(number, artifacts={"patch": patch})]))
    cell = {
        "run_id": "r1",
        "evaluation": "e",
        "identity": key(0).hex(),
        "action": "executed",
        "tier": "smoke",
    }
    rows = table_schema("run_cells").from_rows([{**cell, "attempt": 1}])
    store.tables.write("run_cells", rows, run_id="r1")
    planned = dict.fromkeys(table_schema("evaluation_cells").required, "x") | {
        "tier": "smoke",
        "attempt": 1,
    }
    planned |= {"reusable": True, "options": {"b": "2", "a": "1"}}
    store.tables.write(
        "evaluation_cells", table_schema("evaluation_cells").from_rows([planned]), tier="smoke", attempt=1
    )
    return patch


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store" if request.param == "local" else f"memory://keep-{tmp_path.name}")


def test_a_whole_store_has_no_findings_and_says_what_was_read(store: Store) -> None:
    assert store.verify().findings == []
    fill(store, 20)
    report = store.verify()
    assert report.findings == []
    assert (report.verdict_rows, report.candidate_rows, report.table_rows) == (20, 20, 2)
    assert (report.artifacts, report.table_files) == (1, 2)
    assert report.bytes > 0


def test_every_broken_file_is_found_and_left_where_it_is(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    patch = fill(store, 3)
    broken = [
        min((tmp_path / "verdicts").glob("*.parquet")),
        sorted((tmp_path / "candidates").glob("*.parquet"))[1],
        Path(store.tables.paths("run_cells")[0]),
        store.artifacts.path(patch),
    ]
    for path in broken:
        assert path is not None
        path.write_bytes(path.read_bytes()[:-1])
    report = store.verify()
    assert {tmp_path / finding.path for finding in report.findings} == set(broken)
    assert all(path is not None and path.exists() for path in broken)
    assert store.quarantined == []
    moved = Store.open(tmp_path).verify(put_aside=True)
    assert [finding.path for finding in moved.findings] == [finding.path for finding in report.findings]
    assert all(finding.moved_to and (tmp_path / finding.moved_to).exists() for finding in moved.findings)
    assert not any(path is not None and path.exists() for path in broken)


def test_a_row_whose_evidence_is_gone_is_found(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    patch = fill(store, 1)
    path = store.artifacts.path(patch)
    assert path is not None
    path.unlink()
    reasons = {finding.reason for finding in store.verify().findings}
    assert reasons == {f"it refers to the artifact {patch}, which is absent"}


def test_a_table_whose_rows_are_not_those_of_its_digest_is_found(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    fill(store, 1)
    path = store.tables.paths("run_cells")[0]
    table = pq.read_table(path, partitioning=None)
    forged = table.set_column(3, table.schema.field(3), pa.array(["reused"]))
    assert table.schema.names[3] == "reason" or forged.num_rows
    pq.write_table(forged.replace_schema_metadata(table.schema.metadata), path)
    [finding] = store.verify().findings
    assert "digest" in finding.reason


def test_verifying_a_newer_store_stops(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    fill(store, 1)
    path = next((tmp_path / "verdicts").glob("*.parquet"))
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"bench.version": b"9"}), path)
    with pytest.raises(NewerSchemaError):
        store.verify(put_aside=True)
    assert path.exists()


def test_compaction_keeps_every_answer_and_every_row(store: Store) -> None:
    fill(store, 44)
    store.verdicts.append(VERDICT_PARTS.from_rows([verdict(3, outcome="failed", passed=False)]))
    keys = [key(number) for number in range(45)]
    before = store.verdicts.newest(keys), store.verdicts.history(keys[3]), store.candidates.newest(keys)
    report = store.compact()
    assert report.verdict_parts == report.candidate_parts == 1
    assert report.verdict_parts_before > 1
    after = store.verdicts.newest(keys), store.verdicts.history(keys[3]), store.candidates.newest(keys)
    assert all(a.equals(b) for a, b in zip(before, after, strict=True))
    assert store.compact().verdict_parts == 1
    assert store.verify().findings == []


def test_a_compacted_part_is_sorted_and_of_bounded_size(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store, 5)
    size = store.verdicts.log.parts()[0].size
    monkeypatch.setattr(parts, "MERGE_BYTES", size * 2 + 100)
    store.compact()
    groups = store.verdicts.log.parts()
    assert len(groups) > 1
    for info in groups:
        rows = store.verdicts.log.read(info)
        assert rows is not None
        assert rows["identity"].to_pylist() == sorted(rows["identity"].to_pylist())


def test_old_files_are_rewritten_in_the_current_version_once(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    for folder in ("verdict", "candidate"):
        (tmp_path / f"{folder}s").mkdir()
        sample = (SAMPLES / f"{folder}-part-v0.parquet").read_bytes()
        (tmp_path / f"{folder}s" / "old.parquet").write_bytes(sample)
    before = store.verdicts.newest([key(1), key(2)])
    report = store.migrate()
    assert (report.parts, report.table_files) == (2, 0)
    assert store.verdicts.newest([key(1), key(2)]).equals(before)
    assert store.migrate().parts == 0
    assert not (tmp_path / "verdicts" / "old.parquet").exists()


def test_an_old_table_is_rewritten_in_the_current_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.open(tmp_path)
    fill(store, 1)
    path = Path(store.tables.paths("run_cells")[0])
    table = pq.read_table(path, partitioning=None).drop_columns(["reason"])
    stamps = {**table.schema.metadata, b"bench.version": b"0"}
    pq.write_table(table.replace_schema_metadata(stamps), path)

    def add_reason(old: pa.Table) -> pa.Table:
        return old.append_column("reason", pa.nulls(old.num_rows, pa.string()))

    monkeypatch.setattr("bench_pipeline.store.parquet.MIGRATIONS", {"table-run_cells": {0: add_reason}})
    before = store.tables.read("run_cells")
    assert before.num_rows == 1
    assert store.migrate().table_files == 1
    assert store.tables.read("run_cells").equals(before)
    assert pq.read_schema(path).metadata[b"bench.version"] == b"1"
    assert store.migrate().table_files == 0


def test_a_read_only_store_is_verified_and_not_changed(store: Store) -> None:
    fill(store, 1)
    reader = Store.open(store.location, read_only=True)
    assert reader.verify().findings == []
    for change in (reader.compact, reader.migrate, lambda: reader.forget(key(0).hex())):
        with pytest.raises(StoreError, match="read only"):
            change()
    assert reader.gc(dry_run=True).artifacts == 0
    with pytest.raises(StoreError, match="read only"):
        reader.gc()


def test_findings_are_told_in_order_of_their_paths() -> None:
    assert min([Finding("b", "x"), Finding("a", "y")]).path == "a"
