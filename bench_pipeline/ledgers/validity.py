"""When a row is valid, column by column: it says so, or has a result, and contradicts neither itself nor arithmetic.

What belongs here: the rules and their words. What does not: how values are read (``fields``) and the sums.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.ledgers.fields import COUNTS, FLAGS, SHARES
from bench_pipeline.ledgers.routes import Routes

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]

# Ledgers round their fractions, the example of the documentation to four digits.
_ROUNDING = 1e-4


def judge(read: pa.Table, routes: Routes) -> pa.Table:
    """``read`` (the columns of ``fields.READ``) with ``kind``, ``invalid_reason``, and flags as what they mean."""
    reasons = np.full(read.num_rows, None, dtype=object)
    judged = np.zeros(read.num_rows, dtype=bool)
    for mask, reason in _faults(_Columns(read)):
        if mask.any():
            reasons[mask & ~judged] = reason
            judged |= mask
    faults = read["fault"]
    if faults.null_count < len(faults):
        given = faults.is_valid().to_numpy()
        reasons[given] = faults.to_numpy()[given]
    encoded = read["route"].combine_chunks().dictionary_encode(null_encoding="encode")
    kinds = pa.array([routes.kind(route) for route in encoded.dictionary.to_pylist()], pa.string())
    columns = {name: read[name] for name in read.column_names if name != "fault"}
    columns["kind"] = kinds.take(encoded.indices)
    columns["passed"] = pc.equal(read["passed"], 1.0)
    columns["invalid_reason"] = pa.array(reasons, pa.string())
    columns["valid"] = pc.is_null(columns["invalid_reason"])
    return pa.table(columns)


class _Columns:
    """A table's columns as arrays: their values with 0 for null, and where they are given."""

    def __init__(self, table: pa.Table) -> None:
        names = (*FLAGS, *SHARES, *COUNTS)
        self._values = {name: table[name].fill_null(0).to_numpy() for name in names}
        self._given = {name: table[name].is_valid().to_numpy() for name in names}

    def given(self, *names: str) -> Mask:
        """Where all of these columns have a value."""
        found: Mask = np.logical_and.reduce([self._given[name] for name in names])
        return found

    def __getitem__(self, name: str) -> Any:
        """A column's values; 0 where it has none."""
        return self._values[name]


def _faults(columns: _Columns) -> Iterator[tuple[Mask, str]]:
    """Each reason for which rows are invalid, with the rows; the first one of a row counts."""
    yield columns.given("valid") & (columns["valid"] == 0), "says that it is not valid"
    for name in FLAGS:
        yield (columns[name] != 0) & (columns[name] != 1), f"{name} is neither 0 nor 1"
    for name in SHARES:
        yield (columns[name] < 0) | (columns[name] > 1), f"{name} is outside 0..1"
    for name in COUNTS:
        yield columns[name] < 0, f"{name} is negative"
    yield from _contradictions(columns)
    results = [columns.given(name) for name in ("passed", "partial", "f2p")]
    yield ~np.logical_or.reduce(results), "has no result"


def _contradictions(columns: _Columns) -> Iterator[tuple[Mask, str]]:
    """Where the reward and the counts of tests cannot both be true."""
    f2p, p2p = columns.given("f2p_passed", "f2p_total"), columns.given("p2p_passed", "p2p_total")
    for name, counted in (("f2p", f2p), ("p2p", p2p)):
        passed, total = columns[f"{name}_passed"], columns[f"{name}_total"]
        yield counted & (passed > total), f"{name}_passed is more than {name}_total"
    claims = columns.given("passed") & (columns["passed"] == 1)
    nothing = columns.given("f2p_total") & (columns["f2p_total"] == 0)
    yield claims & nothing, "passed without a test that had to pass (f2p_total is 0)"
    for name, counted in (("f2p", f2p), ("p2p", p2p)):
        failing = counted & (columns[f"{name}_passed"] < columns[f"{name}_total"])
        yield claims & failing, f"passed although {name} tests fail"
    total = columns["f2p_total"] + columns["p2p_total"]
    pooled = (columns["f2p_passed"] + columns["p2p_passed"]) / np.maximum(total, 1)
    differs = np.abs(columns["partial"] - pooled) > _ROUNDING
    yield columns.given("partial") & f2p & p2p & differs, "partial is not the share of tests that passed"
