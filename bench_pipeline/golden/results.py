"""Task results: the rows that readers make, and the columns that follow from their others.

What belongs here: when a task passed, and a row for each task that a setup has no result of. What does not: reading
(``telemetry``, ``measured``) and the score (``scoring``).
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.golden.suite import Suite
from bench_pipeline.golden.taxonomy import classify
from bench_pipeline.tables import table_schema


def settle(rows: pa.Table) -> pa.Table:
    """``rows`` of task_results with what follows from their facts: pass marks, failures and warnings.

    A task passed when it has valid telemetry, a signal was checked, all that were checked passed, and no test
    failed. Without valid telemetry nobody knows, so the mark is null; it does not count as a pass.
    """
    checked, met = rows["signals_checked"], rows["signals_passed"]
    holds = pc.and_(pc.greater(checked, 0), pc.equal(checked, met))
    mark = pc.and_(pc.fill_null(holds, False), pc.equal(pc.fill_null(rows["tests_failed"], 0), 0))
    passed = pc.if_else(rows["telemetry_valid"], mark, pa.scalar(None, pa.bool_()))
    place = rows.schema.get_field_index("passed")
    return classify(rows.set_column(place, rows.schema.field("passed"), passed))


def complete(rows: pa.Table, suite: Suite, announced: Iterable[Mapping[str, Any]] = ()) -> pa.Table:
    """``rows`` with one more for each task of the suite that a setup's attempt has none of: not attempted.

    ``announced`` are attempts, by the key columns, that are to have rows though nothing could be read of them.
    """
    setups = rows.select(["setup", "setup_digest", "attempt"])
    setups = setups.group_by(setups.column_names).aggregate([]).to_pylist()
    setups += [attempt for attempt in announced if attempt not in setups]
    known = rows.filter(rows["known_task"])
    there = set(zip(*(known[name].to_pylist() for name in _KEY), strict=True))
    absent = [
        {**setup, **_NOT_ATTEMPTED, "tier": task.tier, "task_id": task.id, "task_digest": task.digest}
        for setup in setups
        for task in suite.tasks
        if (setup["setup"], setup["setup_digest"], setup["attempt"], task.id) not in there
    ]
    if not absent:
        return rows
    return pa.concat_tables([rows, settle(table_schema("task_results").from_rows(absent))])


_KEY = ("setup", "setup_digest", "attempt", "task_id")
_NOT_ATTEMPTED = {
    "telemetry_valid": False,
    "telemetry_problem": "not attempted",
    "judged": "not_judged",
    "known_task": True,
    "attempted": False,
    "tests_regressed": 0,
    "crashes": 0,
    "orphans": 0,
}
