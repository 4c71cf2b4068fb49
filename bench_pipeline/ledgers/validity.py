"""When a row is valid, column by column: it says so, or has a result, and contradicts neither itself nor arithmetic.

What belongs here: the rules and their words. What does not: how values are read (``fields``) and the sums.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from bench_pipeline.ledgers.fields import COUNTS, FLAGS, NUMBERS, SHARES
from bench_pipeline.ledgers.routes import Routes
from bench_pipeline.ledgers.rows import Rows

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]

# Ledgers round their fractions, the example of the documentation to four digits.
_ROUNDING = 1e-4


@dataclass(frozen=True)
class Judged:
    """Rows with the kinds of their routes, and the reasons why some are invalid.

    ``route_of`` is the place of each row's route in ``routes``; ``kinds`` are theirs. ``faults`` says of which
    rows it speaks, and why they are invalid; a later one replaces those before it.
    """

    rows: Rows
    routes: list[str | None]
    kinds: list[str]
    route_of: Any
    valid: Mask
    faults: list[tuple[Any, str]]

    def table(self) -> pa.Table:
        """All that is known of the rows."""
        reasons = np.full(len(self.valid), None, dtype=object)
        for places, reason in self.faults:
            reasons[places] = reason
        columns = {name: _column(name, self.rows[name]) for name in NUMBERS}
        return pa.table(
            {
                "line": self.rows.lines,
                **self.rows.texts,
                **columns,
                "kind": pa.array(self.kinds, pa.string()).take(pa.array(self.route_of)),
                "valid": self.valid,
                "invalid_reason": pa.array(reasons, pa.string()),
            }
        )


def judge(rows: Rows, routes: Routes) -> Judged:
    """Which rows are valid, and of which kind their routes are."""
    faults: list[tuple[Any, str]] = [(mask, reason) for mask, reason in _faults(rows) if mask.any()]
    # The first one counts.
    faults.reverse()
    faults += rows.faults.items()
    valid = np.ones(len(rows.lines), dtype=np.bool_)
    for places, _ in faults:
        valid[places] = False
    encoded = rows.texts["route"].dictionary_encode(null_encoding="encode")
    names = encoded.dictionary.to_pylist()
    kinds = [routes.kind(route) for route in names]
    # Not to_numpy(), which imports pandas: 30 MiB.
    route_of = np.frombuffer(encoded.indices.buffers()[1], np.int32, len(encoded))
    return Judged(rows, names, kinds, route_of, valid, faults)


def _column(name: str, values: Any) -> pa.Array:
    """A column of numbers as what it means: a flag, a count or a share; null where NaN is."""
    missing = np.isnan(values)
    if name in FLAGS:
        return pa.array(values == 1, mask=missing)
    if name in COUNTS:
        return pa.array(np.where(missing, 0, values).astype(np.int64), mask=missing)
    return pa.array(values, mask=missing)


def _faults(rows: Rows) -> Iterator[tuple[Mask, str]]:
    """Each reason for which rows are invalid, with the rows; nothing that compares with NaN is true, but ``!=``."""
    yield rows["valid"] == 0, "says that it is not valid"
    for name in FLAGS:
        flag = rows[name]
        yield (flag < 0) | (flag > 1) | ((flag > 0) & (flag < 1)), f"{name} is neither 0 nor 1"
    for name in SHARES:
        yield (rows[name] < 0) | (rows[name] > 1), f"{name} is outside 0..1"
    for name in COUNTS:
        yield rows[name] < 0, f"{name} is negative"
    yield from _contradictions(rows)
    yield np.isnan(rows["passed"]) & np.isnan(rows["partial"]) & np.isnan(rows["f2p"]), "has no result"


def _contradictions(rows: Rows) -> Iterator[tuple[Mask, str]]:
    """Where the reward and the counts of tests cannot both be true."""
    for name in ("f2p", "p2p"):
        yield rows[f"{name}_passed"] > rows[f"{name}_total"], f"{name}_passed is more than {name}_total"
    claims = rows["passed"] == 1
    yield claims & (rows["f2p_total"] == 0), "passed without a test that had to pass (f2p_total is 0)"
    for name in ("f2p", "p2p"):
        failing = rows[f"{name}_passed"] < rows[f"{name}_total"]
        yield claims & failing, f"passed although {name} tests fail"
    total = rows["f2p_total"] + rows["p2p_total"]
    pooled = (rows["f2p_passed"] + rows["p2p_passed"]) / np.maximum(total, 1)
    yield np.abs(rows["partial"] - pooled) > _ROUNDING, "partial is not the share of tests that passed"
