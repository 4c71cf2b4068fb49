"""The tables that people and Dagster read: one Parquet file per partition, replaced whole.

What belongs here: writing a partition that fits its schema, reading partitions back. What does not: how rows
come about. ``tables/<table>/<column>=<value>/.../part.parquet``; the columns are in the file too, path parts
only prune.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.errors import CorruptPartError, StoreError
from bench_pipeline.store import parquet
from bench_pipeline.store.content import content_digest
from bench_pipeline.store.parts import Surroundings
from bench_pipeline.store.schemas import table_layout
from bench_pipeline.tables import TableSchema, table_schema

# Neither "." nor ".." nor anything hidden, and nothing that a file system or Dagster reads as more than a
# name.
_VALUE: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}")

Value = str | int


@dataclass(frozen=True)
class TableWrite:
    """What a write came to: the file, its rows, their content's digest, and whether it was written anew."""

    path: str
    rows: int
    digest: str
    changed: bool


class Tables:
    """The tables of a store."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._around = surroundings
        self._files = surroundings.files

    def write(self, name: str, table: pa.Table, **partition: Value) -> TableWrite:
        """Replace one partition of a table by ``table``, or leave it when its content is the same.

        ``partition`` gives every partition column of the table's schema. The digest depends on the rows
        alone. Raises StoreError naming every fault of the rows (columns, types, nulls, NaN, a repeated key, a
        row of another partition), ValueError for a partition that the schema does not have.
        """
        schema = table_schema(name)
        path = _path(schema, partition)
        self._around.refuse_read_only(f"writing {path}")
        table = parquet.check_rows(table, schema.schema, schema.key, f"the table {name}")
        _check_partition(table, schema, partition)
        digest = content_digest(table, schema.key)
        with self._around.locks.hold(lock_name(path)):
            changed = self._stored_digest(path, schema) != digest
            if changed:
                rows = (
                    table.sort_by([(column, "ascending") for column in schema.key]) if schema.key else table
                )
                self._files.write(path, parquet.encode(rows, table_layout(schema), digest=digest))
        return TableWrite(self._files.url(path), table.num_rows, digest, changed)

    def read(self, name: str, columns: Sequence[str] | None = None, **partition: Value) -> pa.Table:
        """The rows of a table, or of the partitions that fit ``partition``; empty where nothing was written.

        Rows stand by partition, then by key. A corrupt partition is put aside and counted; the others are
        read.
        """
        schema = table_schema(name)
        parts = []
        for path in self._paths(schema, partition):
            table = self._read(path, schema)
            if table is not None:
                parts.append(table if columns is None else table.select(list(columns)))
        empty = schema.empty() if columns is None else schema.empty().select(list(columns))
        return pa.concat_tables([empty, *parts])

    def digest(self, name: str, **partition: Value) -> str | None:
        """The content digest of one partition as stored; None where it is absent or corrupt."""
        schema = table_schema(name)
        return self._stored_digest(_path(schema, partition), schema)

    def digests(self, name: str) -> list[tuple[dict[str, str], str | None]]:
        """Every stored partition of a table with its content digest, read from the end of its file alone.

        None for a file whose end is not that of the Parquet that was written: whoever reads it all puts it aside.
        """
        return [(_values(path), self._noted_digest(path)) for path in self._paths(table_schema(name), {})]

    def partitions(self, name: str) -> list[dict[str, str]]:
        """The stored partitions of a table, as text, in order; ``[{}]`` for the file of one without any."""
        schema = table_schema(name)
        return [_values(path) for path in self._paths(schema, {})]

    def paths(self, name: str) -> list[str]:
        """The files of a table, as DuckDB, pandas or pyarrow open them."""
        return [self._files.url(path) for path in self._paths(table_schema(name), {})]

    def delete(self, name: str, **partition: Value) -> bool:
        """Remove one partition; whether it was there."""
        schema = table_schema(name)
        path = _path(schema, partition)
        self._around.refuse_read_only(f"deleting {path}")
        with self._around.locks.hold(lock_name(path)):
            there = self._files.info(path) is not None
            self._files.delete(path)
        return there

    def _paths(self, schema: TableSchema, partition: dict[str, Value]) -> list[str]:
        _check_values(schema, partition)
        wanted = {column: str(value) for column, value in partition.items()}
        found = [
            info.path for info in self._files.list(f"tables/{schema.name}") if info.path.endswith(".parquet")
        ]
        fitting = [path for path in found if wanted.items() <= _values(path).items()]
        return sorted(
            fitting, key=lambda path: [_numbers_as_numbers(value) for value in _values(path).values()]
        )

    def _read(self, path: str, schema: TableSchema) -> pa.Table | None:
        stored = self._decode(path, schema)
        return None if stored is None else stored[0]

    def _stored_digest(self, path: str, schema: TableSchema) -> str | None:
        stored = self._decode(path, schema)
        return None if stored is None else stored[1]

    def _noted_digest(self, path: str) -> str | None:
        try:
            return parquet.noted_digest(lambda size: self._files.tail(path, size))
        except FileNotFoundError:
            return None

    def _decode(self, path: str, schema: TableSchema) -> tuple[pa.Table, str | None] | None:
        try:
            data = self._files.read(path)
        except FileNotFoundError:
            return None
        try:
            return parquet.decode(data, table_layout(schema), path)
        except CorruptPartError as error:
            self._around.quarantine.put(path, error, data)
            return None


def _path(schema: TableSchema, partition: dict[str, Value]) -> str:
    _check_values(schema, partition)
    absent = [column for column in schema.partitions if column not in partition]
    if absent:
        raise ValueError(
            f"the table {schema.name} is kept by {', '.join(schema.partitions)}; {absent[0]} is not given"
        )
    folders = [f"{column}={partition[column]}" for column in schema.partitions]
    return "/".join(["tables", schema.name, *folders, "part.parquet"])


def _check_values(schema: TableSchema, partition: dict[str, Value]) -> None:
    for column, value in partition.items():
        if column not in schema.partitions:
            raise ValueError(f"the table {schema.name} is not kept by {column}")
        if isinstance(value, bool) or not _VALUE.fullmatch(str(value)):
            raise ValueError(
                f"{column}={value!r} cannot name a partition: letters, digits, dot, hyphen, underscore"
            )


def _check_partition(table: pa.Table, schema: TableSchema, partition: dict[str, Value]) -> None:
    for column in schema.partitions:
        if table.num_rows and [str(value) for value in pc.unique(table[column]).to_pylist()] != [
            str(partition[column])
        ]:
            wrong = f"it holds rows whose {column} is not {partition[column]!r}"
            raise StoreError(f"writing the table {schema.name}", wrong, "write each partition by itself")


def lock_name(path: str) -> str:
    """The lock under which a table's file is replaced."""
    return "-".join(["table", path.split("/")[1], *_values(path).values()])


def _values(path: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in path.split("/")[2:-1])


def _numbers_as_numbers(value: str) -> tuple[int, str]:
    return (int(value), "") if value.isdecimal() else (-1, value)
