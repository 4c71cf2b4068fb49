"""Tables and SQL over a store: what comes back, and what a hostile query cannot do."""

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pyarrow as pa
import pytest

from bench_pipeline.errors import NotFoundError, UsageError
from bench_pipeline.pipeline.querying import json_rows, query_store, read_table, run_sql
from bench_pipeline.tables import TABLES, table_schema


def store_of(**tables: pa.Table) -> SimpleNamespace:
    return SimpleNamespace(tables=SimpleNamespace(read=lambda name: tables.get(name, TABLES[name].empty())))


def run_rows(count: int) -> pa.Table:
    rows = [
        {
            "run_id": "r",
            "identity": f"{place:064x}",
            "action": "executed" if place % 2 else "reused",
            "evaluation": "e",
            "tier": "smoke",
            "attempt": 1,
            "cost_usd": place / 4,
            "started_at": datetime(2025, 1, 1, tzinfo=UTC),
        }
        for place in range(count)
    ]
    return table_schema("run_cells").from_rows(rows)


RUNS = store_of(run_cells=run_rows(6))


def as_json(table: pa.Table) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = json.loads(json.dumps(list(json_rows(table)), allow_nan=False))
    return rows


def test_a_table_is_read_whole_filtered_narrowed_and_cut() -> None:
    assert read_table(RUNS, "run_cells").num_rows == 6
    chosen = read_table(
        RUNS, "run_cells", where="action = 'reused' and cost_usd > 0", columns=["cost_usd"], limit=1
    )
    assert chosen.to_pylist() == [{"cost_usd": 0.5}]
    assert read_table(RUNS, "run_cells", where="true -- everything").equals(run_rows(6))


def test_a_table_that_was_never_written_is_empty_with_its_columns() -> None:
    table = read_table(store_of(), "verdicts")
    assert (table.num_rows, table.schema) == (0, table_schema("verdicts").schema)


def test_an_unknown_table_or_column_names_the_known_ones() -> None:
    with pytest.raises(NotFoundError, match="known: evaluation_cells, verdicts"):
        read_table(RUNS, "verdict")
    with pytest.raises(NotFoundError, match="known: run_id, identity"):
        read_table(RUNS, "run_cells", columns=["run"])


@pytest.mark.parametrize(
    "where", ["1=1) or (1=1", "true; drop view run_cells", "nonsense = 1", "", "action ="]
)
def test_a_condition_that_is_none_is_refused(where: str) -> None:
    with pytest.raises(UsageError, match="filtering run_cells"):
        read_table(RUNS, "run_cells", where=where)


def test_sql_sees_every_table_under_its_name() -> None:
    result = query_store(
        RUNS, "select action, count(*) as n, sum(cost_usd) as usd from run_cells group by 1 order by 1"
    )
    assert as_json(result) == [
        {"action": "executed", "n": 3, "usd": 2.25},
        {"action": "reused", "n": 3, "usd": 1.5},
    ]
    names = {row["name"] for row in as_json(query_store(RUNS, "show tables"))}
    assert names == set(TABLES)


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) as n from RUN_CELLS",
        'from "run_cells" select count(*) as n',
        "select count(*) as n from query_table('run_' || 'cells')",
    ],
)
def test_a_table_is_found_however_the_query_names_it(query: str) -> None:
    assert as_json(query_store(RUNS, query)) == [{"n": 6}]


HOSTILE = [
    "select * from read_text('{file}')",
    "select * from read_csv('{file}')",
    "select * from read_blob('{file}')",
    "select * from '{file}'",
    "select * from glob('{folder}/*')",
    "select * from query('select * from read_text(''{file}'')')",
    "select * from json_execute_serialized_sql(json_serialize_sql('select * from read_text(''{file}'')'))",
    "select * from read_parquet('{folder}/x.parquet')",
    "copy run_cells to '{folder}/out.csv'",
    "attach '{folder}/out.db'",
    "export database '{folder}/out'",
    "install httpfs",
    "load httpfs",
    "set enable_external_access = true",
    "reset lock_configuration",
    "pragma enable_profiling",
    "select * from enable_logging(storage='file', storage_path='{folder}/out')",
    "select * from enable_profiling(save_location='{folder}/out.json')",
    "create table x as select 1",
    "drop view run_cells",
    "insert into run_cells select * from run_cells",
    "call force_checkpoint()",
    "select 1; select 2",
    "select 1; drop view run_cells",
    "",
    ";",
    "select",
]


@pytest.mark.parametrize("query", HOSTILE)
def test_a_query_reads_no_file_and_writes_none(query: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\nSECRET\n")
    with pytest.raises(UsageError) as caught:
        query_store(RUNS, query.format(file=secret, folder=tmp_path))
    assert "SECRET" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


def test_a_condition_reads_no_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\nSECRET\n")
    with pytest.raises(UsageError, match="disabled"):
        read_table(RUNS, "run_cells", where=f"action in (select a from read_csv('{secret}'))")


def test_a_query_does_not_see_the_variables_of_this_program() -> None:
    hidden = pa.table({"token": ["s3cret"]})
    with pytest.raises(UsageError, match="does not exist"):
        run_sql({}, "select * from hidden")
    assert hidden.num_rows == 1


def test_every_value_has_a_json_form() -> None:
    result = run_sql(
        {},
        "select 'nan'::double as nan, '-inf'::float as inf, 1.5::decimal(5,2) as half, 10::hugeint as big,"
        " 'ab'::blob as bytes, map {1: 'x'} as m, [map {'k': 'nan'::double}] as nested, {'a': null} as s,"
        " timestamptz '2024-01-01 00:00:00+02' as ts, date '2024-02-29' as d, interval 1 month as i,"
        " uuid '00000000-0000-0000-0000-000000000001' as u, true as yes, null as nothing",
    )
    assert as_json(result) == [
        {
            "nan": None,
            "inf": None,
            "half": 1.5,
            "big": 10,
            "bytes": "6162",
            "m": {"1": "x"},
            "nested": [{"k": None}],
            "s": {"a": None},
            "ts": "2023-12-31T22:00:00+00:00",
            "d": "2024-02-29",
            "i": "P1M0DT0S",
            "u": "00000000-0000-0000-0000-000000000001",
            "yes": True,
            "nothing": None,
        }
    ]


def test_the_maps_and_times_of_the_tables_become_objects_and_iso_text() -> None:
    rows = [
        {
            "evaluation": "e",
            "ranked": True,
            "setup": "s",
            "setup_digest": "d",
            "shared_tasks": 1,
            "total": 1,
            "attempted": 1,
            "measured": 1,
            "passed": 1,
            "pass_at_k": {1: 0.5, 2: None},
            "missing": [],
        }
    ]
    (row,) = as_json(table_schema("evaluation_rankings").from_rows(rows))
    assert (row["pass_at_k"], row["missing"], row["rank"]) == ({"1": 0.5, "2": None}, [], None)
    assert as_json(run_rows(1))[0]["started_at"] == "2025-01-01T00:00:00+00:00"


def test_result_columns_of_one_name_are_all_kept() -> None:
    assert as_json(run_sql({}, "select 1 as a, 2 as a, 3 as a_1, 4 as a")) == [
        {"a": 1, "a_2": 2, "a_1": 3, "a_3": 4}
    ]


def test_more_rows_than_one_batch_come_in_order() -> None:
    rows = list(json_rows(run_sql({}, "select range as n from range(25000)")))
    assert [row["n"] for row in rows] == list(range(25_000))


def test_a_long_decimal_stays_a_number() -> None:
    (row,) = as_json(run_sql({}, "select 0.1::decimal(38,20) as d"))
    assert math.isclose(row["d"], 0.1)


def test_the_engine_is_the_one_that_was_sealed() -> None:
    """A newer engine with new doors must be looked at before it is used."""
    assert duckdb.__version__.split(".")[0] in {"1", "2"}
