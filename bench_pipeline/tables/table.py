"""What a table is: a name, a version, columns, a key; and the types that columns have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

TEXT, INT, FLOAT, BOOL = pa.string(), pa.int64(), pa.float64(), pa.bool_()
TIME = pa.timestamp("us", tz="UTC")
TEXT_MAP = pa.map_(pa.string(), pa.string())
TEXTS = pa.list_(pa.string())
BY_COUNT = pa.map_(pa.int64(), pa.float64())


@dataclass(frozen=True)
class TableSchema:
    """A table's name, schema version, columns and the columns that identify a row.

    ``partitions`` names the columns that appear in the path (they are in the file too); ``required`` the
    columns that are never null.
    """

    name: str
    version: int
    schema: pa.Schema
    key: tuple[str, ...]
    partitions: tuple[str, ...] = ()
    required: tuple[str, ...] = ()

    def empty(self) -> pa.Table:
        """A table of this schema without rows."""
        return self.schema.empty_table()

    def from_rows(self, rows: Sequence[Mapping[str, object]]) -> pa.Table:
        """Rows as a table of this schema; a key that is no column is an error, a missing one is null."""
        unknown = {key for row in rows for key in row} - set(self.schema.names)
        if unknown:
            raise KeyError(f"{self.name} has no columns {sorted(unknown)}")
        return pa.Table.from_pylist([dict(row) for row in rows], schema=self.schema)


def table(
    name: str,
    columns: Mapping[str, pa.DataType],
    *,
    key: tuple[str, ...],
    partitions: tuple[str, ...] = (),
    required: tuple[str, ...] = (),
) -> TableSchema:
    """A schema of version 1; key, partition and ``required`` columns are never null."""
    never_null = {*key, *partitions, *required}
    schema = pa.schema([pa.field(n, t, nullable=n not in never_null) for n, t in columns.items()])
    return TableSchema(name, 1, schema, key, partitions, tuple(n for n in columns if n in never_null))
