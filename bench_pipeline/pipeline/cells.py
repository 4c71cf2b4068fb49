"""Writing the evaluation_cells table: one file per tier and attempt, an empty one where nothing is planned."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.pipeline.provenance import made
from bench_pipeline.pipeline.selection import Partition
from bench_pipeline.pipeline.tables import Written, write_table

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench


def write_cells(bench: "Bench", partitions: Sequence[Partition]) -> dict[Partition, Written]:
    """Write the plan's cells of the given partitions; cells that the plan no longer has leave the table."""
    with made(bench, "evaluation_cells", [(part.tier, str(part.attempt)) for part in partitions]):
        plan = bench.plan()
        return {
            part: write_table(
                bench.store,
                "evaluation_cells",
                in_partition(plan.cells, part),
                tier=part.tier,
                attempt=part.attempt,
            )
            for part in partitions
        }


def in_partition(cells: pa.Table, partition: Partition) -> pa.Table:
    """The rows of one tier and attempt."""
    return cells.filter(
        pc.and_(pc.equal(cells["tier"], partition.tier), pc.equal(cells["attempt"], partition.attempt))
    )
