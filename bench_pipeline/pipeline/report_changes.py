"""What changed between two states of a project: new verdicts, flips, pass rates with intervals, other numbers.

What belongs here: comparing two ``report_state.State``. What does not: wording. A cell is the same measurement while
its identity is; a flip is a task that one setup passed before and fails now, or the other way, whoever changed.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from bench_pipeline.pipeline.querying import json_rows, run_queries
from bench_pipeline.pipeline.report_state import State
from bench_pipeline.statistics.intervals import mean
from bench_pipeline.statistics.paired import paired_difference

# More of them are counted and not listed: nobody reads on, and a page has to stay small.
_LISTED = 200

_COUNTS = """
select coalesce(n.evaluation, b.evaluation) as evaluation,
    count(n.cell) as cells,
    count(*) filter (n.outcome_class = 'verdict') as measured,
    count(*) filter (n.outcome_class = 'verdict' and b.outcome_class is distinct from 'verdict') as new_verdicts,
    count(*) filter (n.outcome_class = 'verdict' and b.outcome_class is distinct from 'verdict' and n.passed)
        as new_passed,
    count(*) filter (n.outcome_class = 'execution_failure' and b.outcome_class is distinct from 'execution_failure')
        as new_failures,
    count(*) filter (b.outcome_class = 'verdict' and n.outcome_class is distinct from 'verdict') as gone_verdicts
from now n full join before b on n.evaluation = b.evaluation and n.cell = b.cell
group by 1 order by 1
"""
# A setup's label that stands for two setups says of neither what it was before.
_FLIPS = """
with n as (
    select evaluation, setup, task_id, attempt, any_value(passed) as passed, any_value(cell) as cell
    from now where outcome_class = 'verdict' group by all having count(*) = 1
), b as (
    select evaluation, setup, task_id, attempt, any_value(passed) as passed, any_value(cell) as cell
    from before where outcome_class = 'verdict' group by all having count(*) = 1
)
select evaluation, setup, task_id, attempt, b.passed as before, n.passed as after, b.cell = n.cell as same_cell
from n join b using (evaluation, setup, task_id, attempt)
where b.passed <> n.passed
order by after, evaluation, setup, task_id, attempt
"""
_RATES = """
with n as (
    select evaluation, setup, task_id, avg(passed::int) as rate, list(cell order by cell) as cells
    from now where outcome_class = 'verdict' group by all
), b as (
    select evaluation, setup, task_id, avg(passed::int) as rate, list(cell order by cell) as cells
    from before where outcome_class = 'verdict' group by all
)
select evaluation, setup, count(*) as tasks, count(*) filter (n.cells <> b.cells or n.rate <> b.rate) as anew,
    list(task_id order by task_id) as names, list(b.rate order by task_id) as before,
    list(n.rate order by task_id) as after
from n join b using (evaluation, setup, task_id)
group by all having anew > 0 order by evaluation, setup
"""
_MEASURES = """
select coalesce(n.measure, b.measure) as measure, coalesce(n.scope, b.scope) as scope, coalesce(n.name, b.name) as name,
    coalesce(n.attempt, b.attempt) as attempt, b.value as before, n.value as after, n.value - b.value as difference,
    n.low, n.high, b.n as before_n, n.n as after_n, b.name is null as new, n.name is null as gone
from measures_now n full join measures_before b
    on n.measure = b.measure and n.scope = b.scope and n.name = b.name and n.digest = b.digest
        and n.attempt = b.attempt
where n.value is distinct from b.value or n.n is distinct from b.n or b.name is null or n.name is null
order by measure, scope, name, attempt
"""


def changes_between(
    before: State, now: State, clusters: Mapping[str, str] | None = None
) -> dict[str, object]:
    """What changed, as a JSON-able document.

    Args:
        before: the earlier state.
        now: the later one.
        clusters: the repository of each task that comes from one; tasks without are on their own.
    """
    found = run_queries(
        {
            "now": now.cells,
            "before": before.cells,
            "measures_now": now.measures,
            "measures_before": before.measures,
        },
        {"counts": _COUNTS, "flips": _FLIPS, "rates": _RATES, "measures": _MEASURES},
    )
    flips, measures = found["flips"], found["measures"]
    return {
        "evaluations": _rows(found["counts"]),
        "flips": _rows(flips),
        "flips_total": flips.num_rows,
        "flips_to_failed": flips.num_rows - sum(flips["after"].to_pylist()),
        "rates": [_rate(row, clusters) for row in found["rates"].to_pylist()],
        "measures": _rows(measures),
        "measures_total": measures.num_rows,
    }


def _rate(row: Mapping[str, Any], clusters: Mapping[str, str] | None) -> dict[str, object]:
    """One setup's pass rate before and now, over the tasks that were measured both times, with the difference."""
    groups = None
    if clusters is not None:
        groups = [clusters.get(task, f"task {task}") for task in row["names"]]
    difference = paired_difference(row["after"], row["before"], clusters=groups)
    interval = difference.interval
    return {
        **{name: row[name] for name in ("evaluation", "setup", "tasks", "anew")},
        "before": mean(row["before"]),
        "after": mean(row["after"]),
        "difference": difference.difference,
        "diff_low": interval.low if interval else None,
        "diff_high": interval.high if interval else None,
        "method": difference.method,
    }


def _rows(table: pa.Table) -> list[dict[str, object]]:
    return list(json_rows(table.slice(0, _LISTED)))
