"""Writing a use case's table, and saying what is in the store now."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from bench_pipeline.store import Store


@dataclass(frozen=True)
class Written:
    """One file of a table as it is in the store now: its path, rows, their digest, and the rows themselves."""

    path: str
    rows: int
    digest: str
    table: pa.Table = field(repr=False)


def write_table(store: "Store", name: str, table: pa.Table, **partition: str | int) -> Written:
    """Write one partition (or the whole of an unpartitioned table) and say what is there now."""
    receipt = store.tables.write(name, table, **partition)
    return Written(str(receipt.path), receipt.rows, receipt.digest, table)
