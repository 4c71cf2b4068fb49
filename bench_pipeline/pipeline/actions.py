"""What a run does with each cell: reuse its verdict, check its candidate again, run it, or leave it.

Decided in columns from three look-ups in the store, for any number of cells at once.
"""

from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.pipeline.collecting import binary_keys

if TYPE_CHECKING:
    from bench_pipeline.store import Store

Action = Literal["reuse", "reverify", "run", "exhausted"]


def decide_actions(
    store: "Store", cells: pa.Table, *, tries: int, fresh: bool = False, retry: bool = False
) -> pa.Table:
    """``cells`` with two more columns, ``action`` and ``action_reason`` (null where the action says it all).

    ``tries`` is how many execution failures an identity may have over all runs; ``retry`` and ``fresh`` lift it.
    """
    if cells.num_rows == 0:
        empty = pa.array([], pa.string())
        return cells.append_column("action", empty).append_column("action_reason", empty)
    keys = binary_keys(cells["identity"].combine_chunks())
    newest = store.verdicts.newest(pc.unique(keys), columns=["identity", "outcome_class"])
    at = pc.index_in(keys, value_set=newest["identity"].combine_chunks())
    known_class = newest["outcome_class"].take(at)
    failures = pc.fill_null(newest["failures_since_verdict"].take(at), 0)
    run_keys = binary_keys(cells["run_key"].combine_chunks())
    candidates = store.candidates.newest(pc.unique(run_keys), columns=["run_key"])["run_key"]
    has_candidate = pc.is_in(run_keys, value_set=candidates.combine_chunks())

    reusable = cells["reusable"]
    has_verdict = pc.fill_null(pc.equal(known_class, "verdict"), False)
    worn_out = pc.and_(
        pc.greater_equal(failures, tries), pc.invert(pc.or_(has_verdict, pa.scalar(fresh or retry)))
    )
    if fresh:
        action = pa.array(["run"] * cells.num_rows)
    else:
        action = pc.case_when(
            pc.make_struct(
                pc.and_(has_verdict, reusable),
                worn_out,
                pc.and_(pc.and_(has_candidate, reusable), pc.invert(has_verdict)),
            ),
            "reuse",
            "exhausted",
            "reverify",
            "run",
        )
    reason = pc.case_when(
        pc.make_struct(pc.equal(action, "exhausted"), pc.and_(pc.equal(action, "run"), pc.invert(reusable))),
        pc.binary_join_element_wise(
            failures.cast(pa.string()), f"of {tries} tries failed; --retry tries again", " "
        ),
        cells["not_reusable_reason"],
        pa.scalar(None, pa.string()),
    )
    return cells.append_column("action", action).append_column("action_reason", reason)
