"""What came of each cell: verdicts and execution failures, of which the newest verdict counts.

What belongs here: choosing among an identity's rows. What does not: prices, plans, and how parts are stored
(``parts``).

A verdict always comes before an execution failure, however new; among verdicts the last stored counts, whatever
the clock said when they were measured. History is kept.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.errors import StoreError
from bench_pipeline.store.parts import PartLog, Surroundings
from bench_pipeline.store.schemas import EXECUTION_FAILURE, VERDICT, VERDICT_PARTS

# What a caller needs to price every try that a tool was run for.
PRICED_COLUMNS: Final = (
    "identity",
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
    "sequence",
)
_DECIDING: Final = ("outcome_class", "sequence")

Keys: TypeAlias = "Sequence[bytes] | pa.Array | pa.ChunkedArray"


class Verdicts:
    """The verdict parts of a store."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.log = PartLog(surroundings, "verdicts", VERDICT_PARTS, "identity")
        self.schema = VERDICT_PARTS

    def append(self, rows: pa.Table) -> None:
        """Store rows for good: they are on the disk when this returns.

        Columns as in ``schemas.VERDICT_PARTS`` (``VERDICT_PARTS.from_rows`` makes them), ``sequence`` left
        out. Raises StoreError naming every fault: a class that is neither verdict nor execution failure, a
        verdict that does not say whether it passed, a NaN, a null where a value is due; and when they cannot
        be written.
        """
        _check_classes(rows)
        self.log.append(rows)

    def newest(self, identities: Keys, columns: Sequence[str] | None = None) -> pa.Table:
        """The row that counts of each identity that has any, ordered as ``identities`` (a repeated one once).

        ``columns`` narrows the stored columns (default: all). Added to them: ``tries`` (stored rows of the
        identity), ``verdict_count`` (verdicts among them) and ``failures_since_verdict`` (execution failures
        after the verdict that counts, all of them where there is none).
        """
        names = [*VERDICT_PARTS.schema.names] if columns is None else list(columns)
        unknown = sorted(set(names) - set(VERDICT_PARTS.schema.names))
        if unknown:
            raise KeyError(f"verdict parts have no columns {unknown}")
        rows = self.log.find(identities, [*names, *_DECIDING])
        chosen, counts = _choose(rows)
        result = rows.take(chosen).select(names)
        for name, values in counts.items():
            result = result.append_column(name, pa.array(values, pa.int64()))
        return result

    def history(self, identity: str | bytes) -> pa.Table:
        """Every stored row of one identity (64 hex digits or 32 bytes), oldest first."""
        rows = self.log.find([as_key(identity)], VERDICT_PARTS.schema.names)
        return _oldest_first(rows).drop_columns(["position"])

    def priced_rows(self, identities: Keys) -> pa.Table:
        """Every stored row of the identities with what it takes to price it (PRICED_COLUMNS), oldest first.

        Rows of one identity stand together, in the order of ``identities``.
        """
        rows = self.log.find(identities, PRICED_COLUMNS)
        return _oldest_first(rows).select(list(PRICED_COLUMNS))


def as_key(digest: str | bytes) -> bytes:
    """A digest as 32 bytes; raises ValueError for anything else."""
    key = bytes.fromhex(digest) if isinstance(digest, str) else digest
    if len(key) != 32 or (isinstance(digest, str) and digest != key.hex()):
        raise ValueError(f"{digest!r} is not a digest of 64 lower-case hex digits")
    return key


def _check_classes(rows: pa.Table) -> None:
    if not {"outcome_class", "passed"} <= set(rows.schema.names):
        raise StoreError("writing rows to verdicts", "no column 'outcome_class' or 'passed'")
    classes = set(rows["outcome_class"].unique().to_pylist())
    if not classes <= {VERDICT, EXECUTION_FAILURE}:
        odd = sorted(map(str, classes - {VERDICT, EXECUTION_FAILURE}))
        raise StoreError(
            "writing rows to verdicts", f"outcome_class {odd} is neither verdict nor execution_failure"
        )
    undecided = pc.equal(rows["outcome_class"], VERDICT), pc.is_null(rows["passed"])
    if pc.any(pc.and_(*undecided)).as_py():
        raise StoreError("writing rows to verdicts", "a verdict does not say whether it passed")


def _oldest_first(rows: pa.Table) -> pa.Table:
    return rows.sort_by([("position", "ascending"), ("sequence", "ascending")])


def _choose(rows: pa.Table) -> tuple[pa.Array, dict[str, np.ndarray]]:
    """Which row of each position counts, by position, and its counts."""
    position = np.asarray(rows["position"])
    verdict = np.asarray(pc.equal(rows["outcome_class"], VERDICT))
    sequence = np.asarray(rows["sequence"])
    order = np.argsort(position, kind="stable")
    if np.any(np.diff(position[order]) == 0):
        order = np.lexsort((sequence, verdict, position))
    starts = np.flatnonzero(np.diff(position[order], prepend=-1))
    ends = np.append(starts[1:], len(order))
    chosen = order[ends - 1] if len(order) else order
    sizes = ends - starts
    verdicts = np.add.reduceat(verdict[order].astype(np.int64), starts) if len(order) else sizes
    # Compare each row with the row that counts of its position: a later failure, or any where no verdict
    # counts.
    counting = np.repeat(chosen, sizes)
    since = ~verdict[order] & ((sequence[order] > sequence[counting]) | ~verdict[counting])
    failures = np.add.reduceat(since.astype(np.int64), starts) if len(order) else sizes
    counts = {"tries": sizes, "verdict_count": verdicts, "failures_since_verdict": failures}
    return pa.array(chosen, pa.int64()), counts
