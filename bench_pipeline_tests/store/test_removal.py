"""Clean-up removes what nothing refers to; forgetting removes one cell and only it."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bench_pipeline.errors import NotFoundError
from bench_pipeline.identity import canonical_json
from bench_pipeline.store import Store
from bench_pipeline.store.schemas import CANDIDATE_PARTS, VERDICT_PARTS
from bench_pipeline.tables import table_schema

OLD = 1_000_000.0


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def add(store: Store, identity: bytes, run_key: bytes, artifacts: dict[str, str]) -> None:
    row = {
        "identity": identity,
        "run_key": run_key,
        "verify_key": key(7),
        "outcome": "passed",
        "outcome_class": "verdict",
        "passed": True,
        "tool_ran": True,
        "measured_at": datetime.now(UTC),
        "artifacts": artifacts,
    }
    store.verdicts.append(VERDICT_PARTS.from_rows([row]))


def add_candidate(store: Store, run_key: bytes, overlay: str) -> None:
    row = {"run_key": run_key, "overlay": overlay, "empty": False, "measured_at": datetime.now(UTC)}
    store.candidates.append(CANDIDATE_PARTS.from_rows([row]))


def put_json(store: Store, document: Any) -> str:
    return store.artifacts.put(canonical_json(document), "application/json")


def age(store: Store) -> None:
    assert store.root is not None
    for path in store.root.rglob("*"):
        os.utime(path, (OLD, OLD))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def kept(store: Store) -> set[str]:
    return set(store.artifacts.digests())


def test_only_old_artifacts_that_nothing_refers_to_are_removed(store: Store) -> None:
    patch, overlay, loose = (store.artifacts.put(name) for name in (b"patch", b"overlay", b"loose"))
    add(store, key(1), key(2), {"patch": patch})
    add_candidate(store, key(2), overlay)
    assert store.gc().artifacts == 0
    age(store)
    young = store.artifacts.put(b"just put, its row is still to come")
    dry = store.gc(dry_run=True)
    assert (dry.artifacts, dry.bytes) == (1, len(b"loose"))
    assert kept(store) == {patch, overlay, loose, young}
    assert store.gc().artifacts == 1
    assert kept(store) == {patch, overlay, young}


def test_what_a_referred_document_names_is_kept_through_any_number_of_steps(store: Store) -> None:
    leaf = store.artifacts.put(b"leaf")
    task = put_json(store, {"tree": leaf})
    run = put_json(store, {"task": task})
    identity = put_json(store, {"run_key": run})
    unrelated = put_json(store, {"task": "none"})
    add(store, bytes.fromhex(identity), bytes.fromhex(run), {})
    age(store)
    store.gc()
    assert kept(store) == {leaf, task, run, identity}
    assert unrelated not in kept(store)


def test_what_a_young_document_names_is_kept(store: Store) -> None:
    leaf = store.artifacts.put(b"leaf")
    age(store)
    document = put_json(store, {"leaf": leaf})
    assert store.gc().artifacts == 0
    assert kept(store) == {leaf, document}


def test_what_tables_and_documents_of_other_folders_name_is_kept(store: Store) -> None:
    in_table, in_run, loose = (store.artifacts.put(name) for name in (b"table", b"run", b"loose"))
    row = {
        "run_id": "r",
        "evaluation": "e",
        "identity": "i",
        "action": "executed",
        "tier": "smoke",
        "attempt": 1,
    }
    rows = table_schema("run_cells").from_rows([{**row, "reason": in_table}])
    store.tables.write("run_cells", rows, run_id="r")
    store.files.write("runs/r.json", json.dumps({"log": in_run}).encode())
    age(store)
    assert store.gc().artifacts == 1
    assert kept(store) == {in_table, in_run}
    assert loose not in kept(store)


def test_an_artifact_put_again_while_cleaning_is_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = store.artifacts.put(b"content")
    age(store)
    info = store.files.info

    def put_first(path: str) -> Any:
        monkeypatch.setattr(store.files, "info", info)
        store.artifacts.put(b"content")
        return info(path)

    monkeypatch.setattr(store.files, "info", put_first)
    assert store.gc().artifacts == 0
    assert kept(store) == {digest}


def test_unfinished_files_and_free_locks_go_and_held_locks_stay(store: Store) -> None:
    assert store.root is not None
    store.artifacts.put(b"content")
    unfinished = store.root / "artifacts" / ".0123456789abcdef.tmp"
    unfinished.write_bytes(b"half")
    (store.root / "locks").mkdir()
    left_by_a_kill = store.root / "locks" / "dead.lock"
    left_by_a_kill.touch()
    with store.lock("alive"):
        age(store)
        report = store.gc()
        assert (report.unfinished, report.locks) == (1, 1)
        assert (store.root / "locks" / "alive.lock").exists()
    assert not unfinished.exists()
    assert not left_by_a_kill.exists()


def test_leases_given_back_go_and_held_ones_stay(tmp_path: Path) -> None:
    store = Store.open(f"memory://gc-{tmp_path.name}")
    with store.lock("done"):
        pass
    with store.lock("held"):
        assert store.gc(grace_s=-60).locks >= 1
        assert [info.path for info in store.files.list("locks")] == ["locks/held/000000000001.lease"]


def test_a_forgotten_cell_leaves_nothing_of_its_own_behind(store: Store) -> None:
    shared, mine, overlay = (store.artifacts.put(name) for name in (b"shared", b"secret", b"overlay"))
    run = put_json(store, {"task": shared})
    identity = put_json(store, {"run_key": run})
    for _ in range(3):
        add(store, bytes.fromhex(identity), bytes.fromhex(run), {"stdout": mine})
        add_candidate(store, bytes.fromhex(run), overlay)
    add(store, key(1), key(2), {"stdout": shared})
    cell = {"evaluation": "e", "action": "executed", "tier": "smoke", "attempt": 1, "run_id": "r"}
    rows = [{**cell, "identity": identity}, {**cell, "identity": key(1).hex()}]
    store.tables.write("run_cells", table_schema("run_cells").from_rows(rows), run_id="r")
    report = store.forget(identity)
    assert (report.verdict_rows, report.candidate_rows, report.table_rows) == (3, 3, 1)
    assert report.artifacts == 4
    assert kept(store) == {shared}
    assert store.verdicts.history(identity).num_rows == 0
    assert store.candidates.newest([bytes.fromhex(run)]).num_rows == 0
    assert store.verdicts.newest([key(1)])["tries"].to_pylist() == [1]
    assert store.tables.read("run_cells")["identity"].to_pylist() == [key(1).hex()]
    assert store.verify().findings == []


def test_a_candidate_that_another_cell_was_judged_by_stays(store: Store) -> None:
    overlay = store.artifacts.put(b"overlay")
    add_candidate(store, key(9), overlay)
    add(store, key(1), key(9), {})
    add(store, key(2), key(9), {"overlay": overlay})
    report = store.forget(key(1).hex())
    assert (report.verdict_rows, report.candidate_rows, report.artifacts) == (1, 0, 0)
    assert store.candidates.newest([key(9)]).num_rows == 1
    assert store.artifacts.get(overlay) == b"overlay"


def test_forgetting_in_a_compacted_store_takes_only_that_cell(store: Store) -> None:
    for number in range(30):
        add(store, key(number), key(number + 100), {})
    store.compact()
    store.forget(key(5).hex())
    left = store.verdicts.newest([key(number) for number in range(30)])
    assert left.num_rows == 29
    assert key(5) not in left["identity"].to_pylist()


def test_a_crash_while_forgetting_leaves_rows_that_can_be_forgotten_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        add(store, key(number), key(number + 100), {})
    store.compact()

    def crash(path: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store.files, "delete", crash)
        with pytest.raises(KeyboardInterrupt):
            store.forget(key(5).hex())
    found = store.verdicts.newest([key(number) for number in range(20)])
    assert found["tries"].to_pylist() == [1] * 20
    assert store.forget(key(5).hex()).verdict_rows == 1
    assert store.verdicts.newest([key(5)]).num_rows == 0


def test_an_unknown_identity_is_not_found(store: Store) -> None:
    with pytest.raises(NotFoundError, match="knows nothing"):
        store.forget("ab" * 32)
