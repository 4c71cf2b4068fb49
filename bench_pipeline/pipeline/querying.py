"""Reading tables: whole, filtered, or through SQL that can do nothing but read them.

What belongs here: the sealed SQL engine, and rows as JSON values. What does not: where tables are kept
(``store``) and how rows are printed (``cli``). A query is hostile input: it gets the tables, no files, no
network, no settings, and one statement.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bench_pipeline.errors import NotFoundError, UsageError
from bench_pipeline.tables import TABLES, table_schema

if TYPE_CHECKING:
    import duckdb

    from bench_pipeline.store import Store

# Rows turned into Python objects at once while they are written out.
_BATCH_ROWS = 10_000
# The number of a row while a condition is applied.
_ROW = "bench_row"
# Set at the start, because without them the engine could fetch and load code or spill to disk.
_CONFIG = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "temp_directory": "",
}
# In this order: the lock makes the others final. Replacements would let a query name Python variables.
_SEALS = (
    "SET TimeZone = 'UTC'",
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


def read_table(
    store: "Store",
    name: str,
    *,
    where: str | None = None,
    columns: Sequence[str] = (),
    limit: int | None = None,
) -> pa.Table:
    """A table of the store, all partitions; empty, with its columns, before anything was written.

    Args:
        store: the project's store.
        name: a table's name.
        where: an SQL condition over the table's columns.
        columns: only these, in this order.
        limit: at most so many rows.

    Raises:
        NotFoundError: no such table or column; names the known ones.
        UsageError: a condition that the engine does not take.
    """
    known = table_schema(name).schema.names
    strange = [column for column in columns if column not in known]
    if strange:
        raise NotFoundError(
            f"reading {name}", f"there is no column {strange[0]!r}", f"known: {', '.join(known)}"
        )
    table = store.tables.read(name)
    if where is not None:
        table = _filtered(name, table, where)
    if columns:
        table = table.select(list(columns))
    return table if limit is None else table.slice(0, limit)


def query_store(store: "Store", query: str) -> pa.Table:
    """The result of one SELECT over the store's tables, each a view of its name; errors as in ``run_sql``."""
    wanted = _named_tables(query)
    return run_sql(
        {name: store.tables.read(name) if name in wanted else TABLES[name].empty() for name in TABLES}, query
    )


def run_sql(tables: Mapping[str, pa.Table], query: str) -> pa.Table:
    """The result of one SELECT over ``tables``; two result columns of one name get ``_1``, ``_2`` appended.

    Raises:
        UsageError: not exactly one SELECT, or the engine does not take it; says why.
    """
    import duckdb

    with _sealed(tables) as connection:
        try:
            statements = connection.extract_statements(query)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise UsageError(
                    "querying the tables", "this is not one SELECT statement", "only reading is possible"
                )
            result = connection.sql(query).to_arrow_table()
        except duckdb.Error as error:
            raise UsageError(
                "querying the tables", str(error).strip(), f"tables: {', '.join(tables)}"
            ) from None
    return result.rename_columns(_distinct(result.column_names))


def run_queries(tables: Mapping[str, pa.Table], queries: Mapping[str, str]) -> dict[str, pa.Table]:
    """The results of several SELECTs of ours over ``tables``, by the names of the queries."""
    with _sealed(tables) as connection:
        return {name: connection.sql(query).to_arrow_table() for name, query in queries.items()}


@contextmanager
def _sealed(tables: Mapping[str, pa.Table]) -> Iterator["duckdb.DuckDBPyConnection"]:
    """An engine in memory that holds these tables as views and can reach nothing else."""
    import duckdb

    with duckdb.connect(":memory:", config=dict(_CONFIG)) as connection:
        for name, table in tables.items():
            connection.register(name, table)
        for seal in _SEALS:
            connection.execute(seal)
        yield connection


def json_rows(table: pa.Table) -> Iterator[dict[str, object]]:
    """The rows as JSON objects, a batch at a time; see ``json_value``."""
    for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
        columns = [
            [json_value(value, column.type) for value in column.to_pylist()] for column in batch.columns
        ]
        for values in zip(*columns, strict=True):
            yield dict(zip(table.column_names, values, strict=True))


def json_value(value: Any, kind: pa.DataType) -> object:
    """A Python value of an Arrow type as JSON knows it.

    NaN and infinities become null, times ISO 8601, bytes hex digits, exact decimals numbers, maps and structs
    objects with text keys (of a repeated key the last value); what JSON has no form for becomes text.
    """
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {str(key): json_value(item, kind.item_type) for key, item in _pairs(value)}
    if pa.types.is_struct(kind):
        return {name: json_value(item, kind.field(name).type) for name, item in _pairs(value)}
    if _is_list(kind):
        return [json_value(item, kind.value_type) for item in value]
    return _scalar(value)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _pairs(value: Any) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, Mapping) else value


def _scalar(value: object) -> object:
    if isinstance(value, (bool, int, str)):
        return value
    form = next((form for kinds, form in _FORMS if isinstance(value, kinds)), str)
    return form(value)


def _interval(value: Any) -> str:
    months, days, nanoseconds = value
    return f"P{months}M{days}DT{nanoseconds / 1e9:g}S"


def _number(value: Decimal) -> int | float | None:
    if not value.is_finite():
        return None
    return int(value) if value == value.to_integral_value() else float(value)


# How Arrow's Python values that JSON does not know are written.
_FORMS: tuple[tuple[type | tuple[type, ...], Callable[[Any], object]], ...] = (
    (float, lambda value: value if math.isfinite(value) else None),
    ((datetime, date, time), lambda value: value.isoformat()),
    (timedelta, timedelta.total_seconds),
    (Decimal, _number),
    (bytes, bytes.hex),
    (pa.MonthDayNano, _interval),
)


def _named_tables(query: str) -> set[str]:
    """The tables that a query may need: those it names, or all when it can compose a name while it runs."""
    lowered = query.lower()
    if "query" in lowered or "serialized" in lowered:
        return set(TABLES)
    return {name for name in TABLES if name in lowered}


def _filtered(name: str, table: pa.Table, where: str) -> pa.Table:
    """The rows for which the condition holds, in the table's own order and types."""
    import duckdb

    numbered = table.append_column(_ROW, pa.array(range(table.num_rows), pa.int64()))
    with _sealed({name: numbered}) as connection:
        try:
            rows = connection.table(name).filter(where).project(_ROW).to_arrow_table()
        except duckdb.Error as error:
            columns = ", ".join(table.column_names)
            raise UsageError(f"filtering {name}", str(error).strip(), f"columns: {columns}") from None
    return table.take(np.sort(rows[_ROW].to_numpy()))


def _distinct(names: Sequence[str]) -> list[str]:
    """The names in order, a repeated one with a number appended."""
    taken = set(names)
    result: list[str] = []
    for name in names:
        chosen, number = name, 0
        while chosen in result or (number and chosen in taken):
            number += 1
            chosen = f"{name}_{number}"
        result.append(chosen)
    return result
