"""What a run takes out of the tables because it is planned in another environment than what is there.

What belongs here: counting it beforehand. What does not: saying it (``cli``) and writing the tables (``measuring``).
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench

_PLACE = ["evaluation", "setup", "task_id", "attempt"]


def displaced(bench: "Bench", planned: pa.Table, evaluations: Collection[str]) -> int:
    """How many measured rows of these evaluations (of all, where none is named) leave the tables.

    A row leaves when the same setup, task and attempt is planned in another environment now: another sandbox, other
    limits, another toolchain. The store keeps its verdict, which comes back with its environment.
    """
    stored = bench.store.tables.read("evaluation_cells", columns=["identity", "environment_digest", *_PLACE])
    verdicts = bench.store.tables.read("verdicts", columns=["identity", "outcome_class"])
    measured = verdicts.filter(pc.equal(verdicts["outcome_class"], "verdict"))["identity"]
    rows = stored.filter(pc.is_in(stored["identity"], value_set=pc.unique(measured)))
    if evaluations:
        rows = rows.filter(pc.is_in(rows["evaluation"], value_set=pa.array(sorted(evaluations))))
    now = planned.select(["environment_digest", *_PLACE])
    both = rows.join(now, keys=_PLACE, join_type="inner", right_suffix="_now")
    return int(pc.sum(pc.not_equal(both["environment_digest"], both["environment_digest_now"])).as_py() or 0)
