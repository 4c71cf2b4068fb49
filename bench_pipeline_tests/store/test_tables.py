"""Tables: whole partitions that fit their schema, with a digest of the rows alone."""

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.errors import NewerSchemaError, NotFoundError, StoreError
from bench_pipeline.store import Store
from bench_pipeline.store.content import content_digest
from bench_pipeline.tables import table_schema


def cell(task: str = "t1", **changes: Any) -> dict[str, Any]:
    return {
        "identity": f"{task}-identity",
        "run_key": "r",
        "verify_key": "v",
        "evaluation": "e",
        "tier": "smoke",
        "attempt": 1,
        "task_id": task,
        "setup": "s",
        "setup_digest": "d",
        "outcome": "passed",
        "outcome_class": "verdict",
        "passed": True,
        "tries": 1,
        **changes,
    }


def table(*rows: dict[str, Any]) -> pa.Table:
    return table_schema("verdicts").from_rows(rows)


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store" if request.param == "local" else f"memory://tables-{tmp_path.name}")


def test_a_partition_is_written_and_read_back(store: Store) -> None:
    rows = table(
        cell("b", artifacts={"patch": "ab"}, measured_at=datetime(2026, 1, 1, tzinfo=UTC)), cell("a")
    )
    written = store.tables.write("verdicts", rows, tier="smoke", attempt=1)
    assert (written.rows, written.changed) == (2, True)
    found = store.tables.read("verdicts", tier="smoke", attempt=1)
    assert found.schema.equals(table_schema("verdicts").schema)
    assert found["task_id"].to_pylist() == ["a", "b"]
    assert store.tables.digest("verdicts", tier="smoke", attempt=1) == written.digest


def test_what_was_never_written_is_an_empty_table(store: Store) -> None:
    assert store.tables.read("verdicts").equals(table_schema("verdicts").empty())
    assert store.tables.read("verdicts", columns=["task_id"]).schema.names == ["task_id"]
    assert store.tables.partitions("verdicts") == []
    assert store.tables.paths("verdicts") == []
    assert store.tables.digest("verdicts", tier="smoke", attempt=1) is None


@pytest.mark.parametrize("end", [32 << 10, 64])
def test_digests_of_all_partitions_are_read_from_the_ends_of_their_files(
    store: Store, monkeypatch: pytest.MonkeyPatch, end: int
) -> None:
    monkeypatch.setattr("bench_pipeline.store.parquet._TAIL", end)
    for attempt in (1, 2, 10):
        rows = table(*(cell(f"t{number}", attempt=attempt) for number in range(attempt)))
        store.tables.write("verdicts", rows, tier="smoke", attempt=attempt)
    assert store.tables.digests("verdicts") == [
        (
            {"tier": "smoke", "attempt": str(attempt)},
            store.tables.digest("verdicts", tier="smoke", attempt=attempt),
        )
        for attempt in (1, 2, 10)
    ]
    assert store.tables.digests("evaluation_rankings") == []
    (_, second, _) = (info.path for info in store.files.list("tables"))
    for damage in (b"", b"PAR1", b"x" * 99, b"PAR1" + b"\0" * 40 + b"\xff\xff\0\0PAR1"):
        store.files.write(second, damage)
        assert [content is None for _, content in store.tables.digests("verdicts")].count(True) == 1
    assert store.quarantined == []


def test_partitions_are_pruned_and_ordered_by_number(store: Store) -> None:
    for tier, attempt in [("smoke", 10), ("smoke", 2), ("adversarial", 1)]:
        rows = table(cell(tier=tier, attempt=attempt))
        store.tables.write("verdicts", rows, tier=tier, attempt=attempt)
    assert store.tables.partitions("verdicts") == [
        {"tier": "adversarial", "attempt": "1"},
        {"tier": "smoke", "attempt": "2"},
        {"tier": "smoke", "attempt": "10"},
    ]
    assert store.tables.read("verdicts", tier="smoke")["attempt"].to_pylist() == [2, 10]
    assert store.tables.read("verdicts", columns=["tier"], attempt=1)["tier"].to_pylist() == ["adversarial"]
    assert store.tables.delete("verdicts", tier="smoke", attempt=2)
    assert not store.tables.delete("verdicts", tier="smoke", attempt=2)
    assert store.tables.read("verdicts").num_rows == 2


def test_a_partition_with_the_same_content_is_not_written_again(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    first = store.tables.write("verdicts", table(cell("a"), cell("b")), tier="smoke", attempt=1)
    before = Path(first.path).stat().st_mtime_ns
    again = store.tables.write("verdicts", table(cell("b"), cell("a")), tier="smoke", attempt=1)
    assert (again.digest, again.changed) == (first.digest, False)
    assert Path(first.path).stat().st_mtime_ns == before
    other = store.tables.write("verdicts", table(cell("a")), tier="smoke", attempt=1)
    assert other.changed
    assert other.digest != first.digest
    assert store.tables.read("verdicts").num_rows == 1


def test_a_spoilt_partition_is_put_aside_and_written_anew(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    for attempt in (1, 2):
        store.tables.write("verdicts", table(cell(attempt=attempt)), tier="smoke", attempt=attempt)
    spoilt = Path(store.tables.paths("verdicts")[0])
    spoilt.write_bytes(spoilt.read_bytes()[:-20])
    assert store.tables.read("verdicts")["attempt"].to_pylist() == [2]
    assert len(store.quarantined) == 1
    assert store.tables.write("verdicts", table(cell()), tier="smoke", attempt=1).changed
    assert store.tables.read("verdicts")["attempt"].to_pylist() == [1, 2]


def test_a_table_of_a_newer_version_stops_and_stays(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    path = store.tables.write("verdicts", table(cell()), tier="smoke", attempt=1).path
    newer = pq.read_table(path, partitioning=None)
    pq.write_table(newer.replace_schema_metadata({**newer.schema.metadata, b"bench.version": b"7"}), path)
    with pytest.raises(NewerSchemaError):
        store.tables.read("verdicts")
    with pytest.raises(NewerSchemaError):
        store.tables.write("verdicts", table(cell()), tier="smoke", attempt=1)
    assert store.quarantined == []


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (lambda: table(cell(cost_usd=math.nan)), "table verdicts.*'cost_usd'.*NaN"),
        (lambda: table(cell(duration_s=-math.inf)), "'duration_s'.*infinity"),
        (lambda: table(cell(task_id=None)), "'task_id' is never null"),
        (lambda: table(cell("a"), cell("a")), "1 rows repeat the key"),
        (lambda: table(cell()).drop_columns(["setup"]), "no column 'setup'"),
        (lambda: table(cell()).append_column("odd", pa.array([1])), "unknown column 'odd'"),
        (lambda: table(cell(attempt=2)), "attempt is not 1"),
        (lambda: table(cell("a"), cell("b", tier="standard")), "tier is not 'smoke'"),
        (
            lambda: table(cell()).set_column(
                table(cell()).schema.get_field_index("tries"), "tries", pa.array(["many"])
            ),
            "many",
        ),
    ],
)
def test_rows_that_break_the_schema_are_refused_and_nothing_is_written(
    store: Store, rows: Any, says: str
) -> None:
    with pytest.raises(StoreError, match=says):
        store.tables.write("verdicts", rows(), tier="smoke", attempt=1)
    assert store.tables.partitions("verdicts") == []


@pytest.mark.parametrize("tier", ["..", ".", "a/b", "", "a b", "é", "a\n", ".hidden", "x" * 129, "a\x00"])
def test_a_value_that_cannot_name_a_partition_is_refused(store: Store, tier: str) -> None:
    with pytest.raises(ValueError, match="cannot name a partition"):
        store.tables.write("verdicts", table(cell(tier=tier)), tier=tier, attempt=1)


def test_values_that_look_alike_have_files_of_their_own(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    names = ["A_B", "a_b", "A-B", "x.y", "x...y", "_hidden"]
    for name in names:
        store.tables.write("verdicts", table(cell(tier=name)), tier=name, attempt=1)
    assert sorted(store.tables.read("verdicts")["tier"].to_pylist()) == sorted(names)
    for name in names:
        assert store.tables.read("verdicts", tier=name)["tier"].to_pylist() == [name]


def test_a_partition_that_the_table_is_not_kept_by_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="not kept by colour"):
        store.tables.read("verdicts", colour="red")
    with pytest.raises(ValueError, match="attempt is not given"):
        store.tables.write("verdicts", table(cell()), tier="smoke")
    with pytest.raises(NotFoundError, match="no table 'nope'"):
        store.tables.read("nope")


def test_a_read_only_store_writes_no_table(store: Store) -> None:
    reader = Store.open(store.location, read_only=True)
    with pytest.raises(StoreError, match="read only"):
        reader.tables.write("verdicts", table(cell()), tier="smoke", attempt=1)


def test_other_programs_read_the_files_by_their_columns(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    store.tables.write("verdicts", table(cell("a"), cell("b")), tier="smoke", attempt=1)
    [path] = store.tables.paths("verdicts")
    found = duckdb.sql(f"SELECT task_id, tier, attempt FROM '{path}' ORDER BY task_id").fetchall()
    assert found == [("a", "smoke", 1), ("b", "smoke", 1)]


SCHEMA = pa.schema(
    [
        ("key", pa.int64()),
        ("text", pa.string()),
        ("number", pa.float64()),
        ("flag", pa.bool_()),
        ("digest", pa.binary(4)),
        ("time", pa.timestamp("us", tz="UTC")),
        ("map", pa.map_(pa.string(), pa.float64())),
        ("list", pa.list_(pa.string())),
    ]
)
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
cells = st.fixed_dictionaries(
    {
        "text": st.none() | texts,
        "number": st.none() | st.floats(allow_nan=False),
        "flag": st.none() | st.booleans(),
        "digest": st.none() | st.binary(min_size=4, max_size=4),
        "time": st.none() | st.datetimes(timezones=st.just(UTC)),
        "map": st.none() | st.dictionaries(texts, st.none() | st.floats(allow_nan=False), max_size=3),
        "list": st.none() | st.lists(st.none() | texts, max_size=3),
    }
)


def content(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{"key": number, **row} for number, row in enumerate(rows)], schema=SCHEMA)


@given(st.lists(cells, max_size=8), st.randoms())
def test_the_digest_depends_on_rows_alone_not_on_their_order_chunks_or_encoding(
    rows: list[dict[str, Any]], random: Any
) -> None:
    original = content(rows)
    order = list(range(len(rows)))
    random.shuffle(order)
    chunks = [original.slice(number, 1) for number in order] or [original]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.concat_tables(chunks), sink, compression="snappy", row_group_size=2)
    shuffled = pq.read_table(pa.BufferReader(sink.getvalue()))
    assert content_digest(shuffled, ["key"]) == content_digest(original, ["key"])


@given(st.lists(cells, min_size=1, max_size=4), cells, st.data())
def test_another_value_anywhere_gives_another_digest(
    rows: list[dict[str, Any]], other: dict[str, Any], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(rows) - 1))
    column = data.draw(st.sampled_from(sorted(other)))
    changed = [dict(row) for row in rows]
    changed[at][column] = other[column]
    same = content(changed).equals(content(rows))
    assert (content_digest(content(changed), ["key"]) == content_digest(content(rows), ["key"])) == same


def test_null_and_empty_and_a_moved_boundary_between_texts_differ() -> None:
    variants: list[list[str | None]] = [["ab", ""], ["a", "b"], ["", "ab"], [None, "ab"], ["ab", None]]
    tables = [content([{"text": text} for text in texts]) for texts in variants]
    assert len({content_digest(variant, ["key"]) for variant in tables}) == len(variants)
