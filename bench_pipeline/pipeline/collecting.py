"""The verdicts table: every planned cell beside the newest thing the store knows of it.

Measured facts only: what a run did with a cell is in ``run_cells``, so the table is the same however often a
run was interrupted and resumed, and two measurements that came to the same differ in clock columns only. Prices are
applied here, so a price change re-prices and measures nothing.
"""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.pipeline.pricing import priced, summed_by_identity
from bench_pipeline.tables import table_schema

if TYPE_CHECKING:
    from bench_pipeline.registry import PriceTable
    from bench_pipeline.store import Store

# The piece of evidence in which each row has its time; it stays in the store, where `bench cell show` finds it.
CLOCKED = "journal"
# Columns that a cell brings; the others come from the store.
_FROM_CELL = (
    "identity",
    "run_key",
    "verify_key",
    "evaluation",
    "tier",
    "attempt",
    "task_id",
    "setup",
    "setup_digest",
)


def identities(cells: pa.Table) -> pa.Array:
    """The cells' distinct identities as 32-byte keys."""
    return binary_keys(pc.unique(cells["identity"].combine_chunks()))


def binary_keys(column: pa.Array) -> pa.Array:
    """Hex digests as 32-byte keys."""
    return pa.array([bytes.fromhex(text) for text in column.to_pylist()], pa.binary(32))


def collect_verdicts(store: "Store", prices: "PriceTable", cells: pa.Table) -> pa.Table:
    """Every cell of ``cells`` (an evaluation_cells table) with its newest verdict, else its newest try.

    Returns a verdicts table of the same length and order; a cell without any try is ``not_attempted``.
    """
    schema = table_schema("verdicts").schema
    if cells.num_rows == 0:
        return schema.empty_table()
    keys = identities(cells)
    newest = store.verdicts.newest(keys)
    costs = summed_by_identity(priced(store.verdicts.priced_rows(keys), prices))
    at = pc.index_in(
        binary_keys(cells["identity"].combine_chunks()), value_set=newest["identity"].combine_chunks()
    )
    columns: dict[str, pa.Array | pa.ChunkedArray] = {name: cells[name] for name in _FROM_CELL}
    for name in schema.names:
        if name not in columns and name in newest.column_names:
            columns[name] = newest[name].take(at)
    columns["artifacts"] = without_entry(columns["artifacts"], CLOCKED)
    columns["cost_usd"] = _aligned(costs, newest["identity"].take(at))
    columns["outcome"] = pc.fill_null(columns["outcome"], "not_attempted")
    columns["outcome_class"] = pc.fill_null(columns["outcome_class"], "not_attempted")
    columns["tries"] = pc.fill_null(columns["tries"], 0)
    return pa.table([columns[field.name].cast(field.type) for field in schema], schema=schema)


def without_entry(maps: pa.ChunkedArray, key: str) -> pa.Array:
    """A column of maps, each without the entry of ``key``; null stays null."""
    whole = maps.combine_chunks()
    kept = pc.not_equal(whole.keys, key)
    before = np.concatenate([[0], np.cumsum(np.asarray(kept))])
    starts = before[np.asarray(whole.offsets)]
    unknown = np.append(np.asarray(whole.is_null()), False)
    offsets = pa.array(starts, pa.int32(), mask=unknown)
    return pa.MapArray.from_arrays(offsets, whole.keys.filter(kept), whole.items.filter(kept))


def repriced(store: "Store", prices: "PriceTable", verdicts: pa.Table) -> pa.Table:
    """A verdicts table at today's prices, whenever it was written.

    Rows of which the store has no tries keep their cost.
    """
    keys = binary_keys(verdicts["identity"].combine_chunks())
    costs = summed_by_identity(priced(store.verdicts.priced_rows(pc.unique(keys)), prices))
    found = pc.index_in(keys, value_set=costs["identity"].combine_chunks())
    now = pc.if_else(pc.is_valid(found), costs["cost_usd"].take(found), verdicts["cost_usd"])
    return verdicts.set_column(verdicts.schema.get_field_index("cost_usd"), "cost_usd", now)


def _aligned(costs: pa.Table, keys: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The costs (identity, cost_usd) in the order of ``keys``; null where a key has none."""
    found = pc.index_in(keys, value_set=costs["identity"].combine_chunks())
    return costs["cost_usd"].take(found)
