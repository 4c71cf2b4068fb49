"""What tools left behind: one row per finished tool run, found by run key.

What belongs here: the newest candidate of a run key. What does not: verdicts, and the overlay itself, which
is an artifact.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from bench_pipeline.store.parts import PartLog, Surroundings
from bench_pipeline.store.schemas import CANDIDATE_PARTS
from bench_pipeline.store.verdicts import Keys, as_key


class Candidates:
    """The candidate parts of a store."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.log = PartLog(surroundings, "candidates", CANDIDATE_PARTS, "run_key")
        self.schema = CANDIDATE_PARTS

    def append(self, rows: pa.Table) -> None:
        """Store rows for good: they are on the disk when this returns.

        Columns as in ``schemas.CANDIDATE_PARTS``, ``sequence`` left out. Raises StoreError as
        ``Verdicts.append``.
        """
        self.log.append(rows)

    def newest(self, run_keys: Keys, columns: Sequence[str] | None = None) -> pa.Table:
        """The candidate last stored of each run key that has any, in the order of ``run_keys``."""
        names = [*CANDIDATE_PARTS.schema.names] if columns is None else list(columns)
        rows = self.log.find(run_keys, names).sort_by([("position", "ascending"), ("sequence", "ascending")])
        last = np.flatnonzero(np.diff(np.asarray(rows["position"]), append=-1))
        return rows.take(pa.array(last, pa.int64())).select(names)

    def history(self, run_key: str | bytes) -> pa.Table:
        """Every stored row of one run key, oldest first."""
        rows = self.log.find([as_key(run_key)], CANDIDATE_PARTS.schema.names)
        return rows.sort_by([("sequence", "ascending")]).drop_columns(["position"])
