"""What a run would do and cost, before it does: the document of ``bench run --dry-run``."""

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.identity import digest_bytes
from bench_pipeline.pipeline.collecting import repriced

if TYPE_CHECKING:
    import pandas as pd

    from bench_pipeline.registry import PriceTable
    from bench_pipeline.store import Store

COUNTED = ("reuse", "reverify", "run", "exhausted")


def plan_digest(actions: pa.Table) -> str:
    """One digest over what would be done with which cell; equal digests promise the same spending."""
    rows = zip(*(actions[name].to_pylist() for name in ("evaluation", "identity", "action")), strict=True)
    return digest_bytes("\n".join(sorted(" ".join(row) for row in rows)).encode())


def forecast(store: "Store", prices: "PriceTable", name: str | None, actions: pa.Table) -> dict[str, object]:
    """The dry run of ``actions`` (cells with what is to be done with each) as a JSON-able document.

    Costs are USD for the cells that would run, from earlier cells of the same setup: the lowest, the median and
    the highest cost seen times the number of cells; null without a cell of known cost. ``seconds_*`` likewise
    are seconds of tool time. ``cost_unknown`` counts the cells that would run at a cost nobody knows.
    """
    rows = actions.select(
        ["setup", "setup_digest", "action", "action_reason", "reusable", "not_reusable_reason"]
    ).to_pandas()
    history = _history(store, prices)
    setups = [
        _setup_forecast(str(label), group, history[history["setup_digest"] == digest])
        for (label, digest), group in rows.groupby(["setup", "setup_digest"], sort=False)
    ]
    return {
        "evaluation": name,
        "plan_digest": plan_digest(actions),
        "cells": len(rows),
        **{action: int((rows["action"] == action).sum()) for action in COUNTED},
        "not_reusable": int((~rows["reusable"]).sum()),
        "setups": setups,
    }


def known_costs(store: "Store", prices: "PriceTable") -> dict[str, float]:
    """The highest known cost of a cell, in USD at today's prices, per setup digest."""
    highest = _history(store, prices).dropna(subset=["cost_usd"]).groupby("setup_digest")["cost_usd"].max()
    return {str(digest): float(cost) for digest, cost in highest.items()}


def _history(store: "Store", prices: "PriceTable") -> "pd.DataFrame":
    """Cost and time of every cell that was ever tried and is still in the verdicts table."""
    verdicts = store.tables.read(
        "verdicts", columns=["identity", "setup_digest", "outcome_class", "cost_usd", "duration_s"]
    )
    tried = verdicts.filter(pc.not_equal(verdicts["outcome_class"], "not_attempted"))
    frame: pd.DataFrame = repriced(store, prices, tried).to_pandas()
    return frame


def _setup_forecast(label: str, cells: "pd.DataFrame", history: "pd.DataFrame") -> dict[str, object]:
    to_run = int((cells["action"] == "run").sum())
    costs, seconds = _spread(history["cost_usd"], to_run), _spread(history["duration_s"], to_run)
    reasons = [
        text for text in (*cells["action_reason"], *cells["not_reusable_reason"]) if isinstance(text, str)
    ]
    return {
        "setup": label,
        "cells": len(cells),
        **{action: int((cells["action"] == action).sum()) for action in COUNTED},
        "not_reusable": int((~cells["reusable"]).sum()),
        "reasons": sorted(set(reasons)),
        "cost_low": costs[0],
        "cost_median": costs[1],
        "cost_high": costs[2],
        "cost_unknown": 0 if costs[1] is not None else to_run,
        "seconds_low": seconds[0],
        "seconds_median": seconds[1],
        "seconds_high": seconds[2],
    }


def _spread(values: "pd.Series[float]", cells: int) -> tuple[float | None, float | None, float | None]:
    """Lowest, median and highest of the known values, each times the cells that would run."""
    known = values.dropna()
    if cells == 0:
        return 0.0, 0.0, 0.0
    if known.empty:
        return None, None, None
    return float(known.min()) * cells, float(known.median()) * cells, float(known.max()) * cells
