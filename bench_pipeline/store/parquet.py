"""Parquet files with a schema name and version in their footer.

What belongs here: bytes to rows and back, the proof that bytes are not what was written, migration on read.
What does not: where files are, and what is done with a corrupt one (``quarantine``).

Decoding works on a file that was read whole into memory, so a failure here is never a failure of the disk.
"""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench_pipeline.errors import CorruptPartError, NewerSchemaError, StoreError
from bench_pipeline.store.schemas import MIGRATIONS, Layout

_NAME: Final = b"bench.schema"
_VERSION: Final = b"bench.version"
_DIGEST: Final = b"bench.digest"

# Small enough that looking up one key in a sorted file reads little, large enough to scan fast.
_ROW_GROUP: Final = 32_768
# Compression, dictionaries and statistics make a file of a few rows slower to write and to read.
_FEW_ROWS: Final = 64
# Bytes of a file below which handing columns to threads takes longer than reading them.
_THREADS_PAY: Final = 1 << 20
# The end of a file in which the footer of most tables fits, and of that the part that says how long it is.
_TAIL: Final = 32 << 10
_MAGIC: Final = 8


def encode(
    table: pa.Table, layout: Layout, *, digest: str | None = None, sorted_by: Sequence[str] = ()
) -> bytes:
    """The Parquet file of ``table``; ``digest`` and the columns its rows are sorted by go into the footer."""
    stamps = {_NAME: layout.name.encode(), _VERSION: str(layout.version).encode()}
    if digest is not None:
        stamps[_DIGEST] = digest.encode()
    worth_it = table.num_rows > _FEW_ROWS
    leaves = {
        leaf: worth_it and field.name not in layout.distinct
        for field in table.schema
        for leaf in _leaves(field)
    }
    out = io.BytesIO()
    pq.write_table(
        table.replace_schema_metadata(stamps),
        out,
        compression={leaf: "zstd" if repeats else "none" for leaf, repeats in leaves.items()},
        row_group_size=_ROW_GROUP,
        use_dictionary=[leaf for leaf, repeats in leaves.items() if repeats],
        write_statistics=[*sorted_by] if sorted_by else worth_it,
        write_page_checksum=True,
        sorting_columns=[pq.SortingColumn(table.schema.get_field_index(name)) for name in sorted_by] or None,
    )
    return out.getvalue()


def _leaves(field: pa.Field) -> list[str]:
    """The names by which Parquet knows the columns that a field is stored in."""
    if pa.types.is_map(field.type):
        return [f"{field.name}.key_value.key", f"{field.name}.key_value.value"]
    if pa.types.is_list(field.type):
        return [f"{field.name}.list.element"]
    return [field.name]


def stamp(metadata: Mapping[bytes, bytes] | None) -> tuple[str, int | None, str | None]:
    """The schema name, version and content digest of a footer; "" and None where it has none."""
    found = metadata or {}
    version = found.get(_VERSION, b"").decode("utf-8", "replace")
    digest = found.get(_DIGEST, b"").decode("utf-8", "replace") or None
    return (
        found.get(_NAME, b"").decode("utf-8", "replace"),
        int(version) if version.isdecimal() else None,
        digest,
    )


def decode(data: bytes, layout: Layout, path: str) -> tuple[pa.Table, str | None]:
    """The rows of a file in the current version of its layout, and the content digest from its footer.

    ``path`` is for messages. Raises CorruptPartError when the bytes are not such a file, NewerSchemaError
    when a newer bench_pipeline wrote it, StoreError when nothing here reads its older version.
    """
    tried = f"reading {path}"
    if not data:
        raise CorruptPartError(tried, "the file is empty")
    try:
        with pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True) as file:
            name, version, digest = stamp(file.metadata.metadata)
            _check_stamp(name, version, layout, tried)
            table = file.read(use_threads=len(data) > _THREADS_PAY)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CorruptPartError(tried, f"not the Parquet that was written: {error}") from error
    assert version is not None
    return _current(table.replace_schema_metadata(None), version, layout, tried), digest


def identify(data: bytes, path: str) -> tuple[str, int | None]:
    """The schema name and version in a file's footer; raises CorruptPartError when it is not Parquet."""
    try:
        with pq.ParquetFile(pa.BufferReader(data)) as file:
            name, version, _ = stamp(file.metadata.metadata)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CorruptPartError(f"reading {path}", f"not the Parquet that was written: {error}") from error
    return name, version


def noted_digest(tail: Callable[[int], bytes]) -> str | None:
    """The content digest in a footer; None without one. ``tail`` gives the last bytes of the file."""
    try:
        end = tail(_TAIL)
        length = int.from_bytes(end[-_MAGIC:-4], "little") + _MAGIC
        if length > len(end) == _TAIL:
            end = tail(length)
        return stamp(pq.read_metadata(pa.BufferReader(end)).metadata)[2]
    except (pa.ArrowException, ValueError):
        return None


def _check_stamp(name: str, version: int | None, layout: Layout, tried: str) -> None:
    if name != layout.name or version is None:
        raise CorruptPartError(tried, f"its footer says {name or 'nothing'!r} where {layout.name!r} is due")
    if version > layout.version:
        raise NewerSchemaError(
            tried,
            f"{name} version {version} is of a newer bench_pipeline; this one reads up to {layout.version}",
            "upgrade bench_pipeline; nothing was changed",
        )


def _current(table: pa.Table, version: int, layout: Layout, tried: str) -> pa.Table:
    steps = MIGRATIONS.get(layout.name, {})
    for older in range(version, layout.version):
        if older not in steps:
            wrong = f"{layout.name} version {older} is older than this bench_pipeline reads"
            raise StoreError(
                tried, wrong, "read it with an earlier release and run bench store migrate there"
            )
        table = steps[older](table)
    if set(table.schema.names) != set(layout.schema.names):
        odd = sorted(set(table.schema.names) ^ set(layout.schema.names))
        raise CorruptPartError(tried, f"its columns are not those of {layout.name}: {odd}")
    try:
        return fit(table, layout.schema)
    except (pa.ArrowException, ValueError) as error:
        raise CorruptPartError(tried, f"its columns are not of {layout.name}'s types: {error}") from error


def fit(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of ``schema`` in its order and types; ArrowInvalid or ValueError if they do not fit."""
    columns = table.select(schema.names)
    return columns if columns.schema.equals(schema) else columns.cast(schema)


def check_rows(table: pa.Table, schema: pa.Schema, key: Sequence[str], what: str) -> pa.Table:
    """``table`` in the order and types of ``schema``, with every rule of it holding.

    Raises StoreError naming every column at fault: absent, unknown, of another type, null where a value is
    due, not a finite number, or a key that two rows share.
    """
    problems = [f"no column {name!r}" for name in schema.names if name not in table.schema.names]
    problems += [f"unknown column {name!r}" for name in table.schema.names if name not in schema.names]
    if not problems:
        try:
            table = fit(table, schema)
        except (pa.ArrowException, ValueError) as error:
            problems.append(str(error))
    if not problems:
        problems = [text for field in schema for text in _column_problems(field, table[field.name])]
    if not problems and key:
        distinct = table.group_by(list(key)).aggregate([]).num_rows
        if distinct != table.num_rows:
            problems.append(f"{table.num_rows - distinct} rows repeat the key {json.dumps(list(key))}")
    if problems:
        raise StoreError(
            f"writing {what}", "; ".join(problems), "the rows were not written; mend what made them"
        )
    return table


def _column_problems(field: pa.Field, column: pa.ChunkedArray) -> list[str]:
    problems = []
    if not field.nullable and column.null_count:
        problems.append(f"column {field.name!r} is never null, but is in {column.null_count} rows")
    values = _floats(field.type, column)
    if values is not None and pc.any(pc.invert(pc.is_finite(values))).as_py():
        problems.append(f"column {field.name!r} holds a NaN or an infinity; unknown is null")
    return problems


def _floats(kind: pa.DataType, column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray | None:
    """The floating-point numbers in a column, those inside lists and maps too; None where it holds none."""
    if pa.types.is_floating(kind):
        return column
    if pa.types.is_map(kind) and pa.types.is_floating(kind.item_type):
        return pa.chunked_array([chunk.items for chunk in column.chunks], kind.item_type)
    if pa.types.is_list(kind) and pa.types.is_floating(kind.value_type):
        return pc.list_flatten(column)
    return None
