"""Streaming large local parts through DuckDB.

What belongs here: one join, in bounded memory. What does not: what its rows mean, and telling why it failed.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

# Leaves room for Python, Arrow and the result within 400 MiB.
_MEMORY: Final = "224MiB"


class ScanError(Exception):
    """DuckDB could not read the parts."""


def matching(parts: Sequence[Path], key: str, wanted: pa.Array, columns: Sequence[str]) -> pa.Table:
    """The rows of ``parts`` whose ``key`` is in ``wanted``: ``position`` in it, then ``columns``.

    ``wanted`` holds no key twice. Raises ScanError.
    """
    import duckdb

    positions = pa.array(np.arange(len(wanted)), pa.int32())
    keys = pa.table({"position": positions, "wanted_key": wanted.cast(pa.binary())})
    files = ", ".join(_literal(str(part)) for part in parts)
    picked = ", ".join(f'part."{name}"' for name in columns)
    query = (
        f"SELECT wanted.position, {picked} FROM read_parquet([{files}]) AS part "  # noqa: S608 - quoted above
        f'JOIN wanted ON part."{key}" = wanted.wanted_key'
    )
    with tempfile.TemporaryDirectory(prefix="bench-scan-") as spill:
        try:
            with connect(spill) as connection:
                connection.register("wanted", keys)
                found: pa.Table = connection.sql(query).to_arrow_table()
        except duckdb.Error as error:
            raise ScanError(str(error)) from error
    return found


def connect(spill: str) -> Any:
    """A bounded DuckDB connection that spills into the folder ``spill`` and loads nothing from a network."""
    import duckdb

    connection = duckdb.connect(
        config={
            "memory_limit": _MEMORY,
            "temp_directory": spill,
            "autoinstall_known_extensions": "false",
            "preserve_insertion_order": "false",
        }
    )
    # A slow query would draw on standard output, into the middle of a JSON document.
    connection.execute("SET enable_progress_bar = false")
    return connection


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
