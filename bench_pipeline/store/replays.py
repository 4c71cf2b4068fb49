"""What came of replaying cells: kept beside verdicts, and never in their place.

What belongs here: a part log of its own. What does not: anything that counts. A replay shows that a recording still
gives the same; it measures nothing again, so plans, tables, prices and rankings do not read these rows.
"""

import pyarrow as pa

from bench_pipeline.store.parts import PartLog, Surroundings
from bench_pipeline.store.schemas import VERDICT_PARTS
from bench_pipeline.store.verdicts import as_key


class Replays:
    """The replay parts of a store; their columns are those of verdicts."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.log = PartLog(surroundings, "replays", VERDICT_PARTS, "identity")

    def append(self, rows: pa.Table) -> None:
        """Store rows for good: they are on the disk when this returns. Raises StoreError."""
        self.log.append(rows)

    def history(self, identity: str | bytes) -> pa.Table:
        """Every replay of one identity (64 hex digits or 32 bytes), oldest first."""
        rows = self.log.find([as_key(identity)], VERDICT_PARTS.schema.names)
        return rows.sort_by([("sequence", "ascending")]).drop_columns(["position"])
