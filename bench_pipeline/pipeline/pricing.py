"""Costs of stored tries, by today's prices: per row, and per cell with its failed tries.

The rule for one figure is ``registry.pricing``'s; this module applies it to rows of the verdict store and sums
them. A sum with an unknown part is unknown.
"""

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bench_pipeline.registry import TokenCounts, cost_of_cell
from bench_pipeline.store.verdicts import PRICED_COLUMNS

if TYPE_CHECKING:
    from bench_pipeline.registry import PriceTable


def priced(rows: pa.Table, prices: "PriceTable") -> pa.Table:
    """``rows`` of the verdict store with a column ``cost_usd``: what each try cost, null where unknown.

    A try that ended before its tool ran cost nothing.
    """
    costs = [_row_cost(row, prices) for row in rows.select(list(PRICED_COLUMNS)).to_pylist()]
    return rows.append_column("cost_usd", pa.array(costs, pa.float64()))


def _row_cost(row: Mapping[str, Any], prices: "PriceTable") -> float | None:
    if row["outcome_class"] != "verdict" and not row["tool_ran"]:
        return 0.0
    if row["step_usage"] is None:
        tokens = TokenCounts(
            row["tokens_input"], row["tokens_cache_read"], row["tokens_cache_write"], row["tokens_output"]
        )
        return cost_of_cell(
            prices, row["model_id"], tokens, row["cost_reported_usd"], bool(row["cost_is_real"])
        )
    return _sum([_step_cost(step, prices) for step in json.loads(row["step_usage"])])


def _step_cost(step: Mapping[str, Any], prices: "PriceTable") -> float | None:
    tokens = TokenCounts(step["input"], step["cache_read"], step["cache_write"], step["output"])
    return cost_of_cell(
        prices, step["model_id"], tokens, step["cost_reported_usd"], bool(step["cost_is_real"])
    )


def summed_by_identity(rows: pa.Table) -> pa.Table:
    """Cost of each identity's newest verdict with the failed tries that led to it: (identity, cost_usd).

    ``rows`` are priced rows. Tries before the verdict that preceded the newest one belong to that earlier
    measurement. Without a verdict it is the cost of all tries. Null when any part is unknown.
    """
    ordered = rows.select(["identity", "outcome_class", "sequence", "cost_usd"]).sort_by(
        [("identity", "ascending"), ("sequence", "ascending")]
    )
    sums: dict[bytes, float | None] = {}
    tries: list[float | None] = []
    current, has_verdict = None, False
    for identity, outcome_class, cost in zip(
        *(ordered[name].to_pylist() for name in ("identity", "outcome_class", "cost_usd")), strict=True
    ):
        if identity != current:
            current, tries, has_verdict = identity, [], False
        tries.append(cost)
        if outcome_class == "verdict":
            sums[identity] = _sum(tries)
            tries, has_verdict = [], True
        elif not has_verdict:
            sums[identity] = _sum(tries)
    return pa.table(
        {
            "identity": pa.array(list(sums), pa.binary(32)),
            "cost_usd": pa.array(list(sums.values()), pa.float64()),
        }
    )


def _sum(parts: list[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return math.fsum(known) if len(known) == len(parts) else None


def total(column: pa.ChunkedArray | pa.Array) -> tuple[float, int, int]:
    """(sum of the known values, how many are known, how many are not)."""
    known = column.drop_null().to_pylist()
    return math.fsum(known), len(known), len(column) - len(known)
