"""Costs of stored tries, by today's prices: per row, and per cell with its failed tries.

The rule for one figure is ``registry.pricing``'s; this module applies it to rows of the verdict store and sums
them. A sum with an unknown part is unknown.
"""

import json
import math
from typing import TYPE_CHECKING

import pyarrow as pa

from bench_pipeline.registry import TokenCounts, cost_of_cell

if TYPE_CHECKING:
    from bench_pipeline.registry import PriceTable

_PRICE_COLUMNS = (
    "outcome_class",
    "tool_ran",
    "model_id",
    "tokens_input",
    "tokens_cache_read",
    "tokens_cache_write",
    "tokens_output",
    "cost_reported_usd",
    "cost_is_real",
    "step_usage",
)


def priced(rows: pa.Table, prices: "PriceTable") -> pa.Table:
    """``rows`` of the verdict store with a column ``cost_usd``: what each try cost, null where unknown.

    A try that ended before its tool ran cost nothing.
    """
    columns = [rows[name].to_pylist() for name in _PRICE_COLUMNS]
    costs = [_row_cost(prices, *values) for values in zip(*columns, strict=True)]
    return rows.append_column("cost_usd", pa.array(costs, pa.float64()))


def _row_cost(
    prices: "PriceTable",
    outcome_class: str,
    tool_ran: bool,
    model_id: str | None,
    tokens_input: int | None,
    tokens_cache_read: int | None,
    tokens_cache_write: int | None,
    tokens_output: int | None,
    reported: float | None,
    is_real: bool | None,
    step_usage: str | None,
) -> float | None:
    if outcome_class != "verdict" and not tool_ran:
        return 0.0
    if step_usage is None:
        tokens = TokenCounts(tokens_input, tokens_cache_read, tokens_cache_write, tokens_output)
        return cost_of_cell(prices, model_id, tokens, reported, bool(is_real))
    parts = [
        cost_of_cell(
            prices,
            step["model_id"],
            TokenCounts(step["input"], step["cache_read"], step["cache_write"], step["output"]),
            step["cost_reported_usd"],
            bool(step["cost_is_real"]),
        )
        for step in json.loads(step_usage)
    ]
    known = [part for part in parts if part is not None]
    return math.fsum(known) if len(known) == len(parts) else None


def summed_by_identity(rows: pa.Table) -> pa.Table:
    """Cost of each identity's newest verdict with the failed tries that led to it: (identity, cost_usd).

    ``rows`` are priced rows. Tries before the verdict that preceded the newest one belong to that earlier
    measurement. Without a verdict it is the cost of all tries. Null when any part is unknown.
    """
    ordered = rows.select(["identity", "outcome_class", "measured_at", "cost_usd"]).sort_by(
        [("identity", "ascending"), ("measured_at", "ascending")]
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

