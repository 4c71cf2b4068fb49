"""The digest of a table's content, whatever its chunks, encoding or order of rows.

What belongs here: rows to SHA-256. What does not: files. Two tables have one digest when their columns have
the same names, types and values in the order of their key; it is what Dagster compares as a data version.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_RECIPE = b"bench table content 1\n"


def content_digest(table: pa.Table, key: Sequence[str]) -> str:
    """64 hex digits over the columns of ``table``, its rows ordered by ``key`` (which no two rows share)."""
    if key and table.num_rows > 1:
        table = table.sort_by([(name, "ascending") for name in key])
    seen = hashlib.sha256(_RECIPE)
    seen.update(f"{table.num_rows} rows\n".encode())
    for field in table.schema:
        seen.update(f"{field.name!r} {_type_text(field.type)}\n".encode())
        _update(seen, table[field.name].combine_chunks(), field.type)
    return seen.hexdigest()


def _update(seen: Any, values: pa.Array, kind: pa.DataType) -> None:
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], kind)
    valid = pc.is_valid(values)
    seen.update(_bytes(valid.cast(pa.uint8())))
    if pa.types.is_map(kind):
        _update_map(seen, values, kind)
    elif pa.types.is_list(kind):
        seen.update(_bytes(pc.fill_null(pc.list_value_length(values), 0).cast(pa.int64())))
        _update(seen, pc.list_flatten(values), kind.value_type)
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        texts = pc.fill_null(values, "" if pa.types.is_string(kind) else b"")
        seen.update(_bytes(pc.binary_length(texts).cast(pa.int64())))
        seen.update(b"".join(texts.cast(pa.binary()).to_pylist()))
    elif pa.types.is_fixed_size_binary(kind):
        seen.update(b"".join(pc.fill_null(values, bytes(kind.byte_width)).to_pylist()))
    elif pa.types.is_boolean(kind):
        seen.update(_bytes(pc.fill_null(values, False).cast(pa.uint8())))
    elif pa.types.is_timestamp(kind):
        seen.update(_bytes(pc.fill_null(values.cast(pa.int64()), 0)))
    elif pa.types.is_floating(kind):
        # Adding zero makes one of the two zeros, which are equal.
        seen.update(_bytes(pc.add(pc.fill_null(values, 0.0), 0.0)))
    else:
        seen.update(_bytes(pc.fill_null(values, 0)))


def _update_map(seen: Any, values: pa.MapArray, kind: pa.DataType) -> None:
    """The entries of each row by key: a map has no order of its own."""
    lists = values.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
    lengths = pc.fill_null(pc.list_value_length(lists), 0).cast(pa.int64())
    seen.update(_bytes(lengths))
    rows = np.repeat(np.arange(len(values)), np.asarray(lengths))
    entries = pc.list_flatten(lists)
    flat = pa.table({"row": rows, "key": entries.field("key"), "value": entries.field("value")})
    flat = flat.sort_by([("row", "ascending"), ("key", "ascending")])
    _update(seen, flat["key"].combine_chunks(), kind.key_type)
    _update(seen, flat["value"].combine_chunks(), kind.item_type)


def _type_text(kind: pa.DataType) -> str:
    """The type's name; Arrow's own also tells what the entries of a map were called in the file it came from."""
    if pa.types.is_map(kind):
        return f"map<{_type_text(kind.key_type)}, {_type_text(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"list<{_type_text(kind.value_type)}>"
    return str(kind)


def _bytes(values: pa.Array) -> bytes:
    """The values as little-endian bytes; they hold no nulls."""
    data = np.asarray(values)
    return data.astype(data.dtype.newbyteorder("<")).tobytes()
