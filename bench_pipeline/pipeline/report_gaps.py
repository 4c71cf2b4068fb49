"""What a project's tables do not hold yet, and the command that fills each gap.

What belongs here: finding gaps lane by lane from the tables. What does not: which documents are newer than the tables
(``staleness``), wording of numbers (``reports``).
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import pandas as pd
import pyarrow as pa

from bench_pipeline.pipeline.querying import run_queries
from bench_pipeline.pipeline.ranking import fill_command
from bench_pipeline.reports.text import plural, some

# More tasks than this do not fit a command that is typed.
_NAMED = 5

_COVERAGE = """
select evaluation, count(*) as cells, count(distinct setup) as setups, count(distinct task_id) as tasks,
    count(*) filter (outcome_class <> 'not_attempted') as attempted,
    count(*) filter (outcome_class = 'verdict') as measured, count(*) filter (passed) as passed,
    count(*) filter (outcome_class = 'execution_failure') as failures,
    list(distinct task_id order by task_id) filter (outcome_class <> 'verdict') as missing_tasks
from cells group by evaluation order by evaluation
"""
_UNSCORED = """
select task_id, count(*) as results, count(distinct setup) as setups, bool_or(attempted) as attempted
from task_results where known_task and tier <> 'adversarial' and not telemetry_valid group by 1 order by 1
"""
_UNJUDGED = """
select count(*) filter (judged = 0) as unjudged, count(*) as scores, sum(judge_failed)::bigint as judge_failed
from composite_scores where tasks > 0
"""
_POLICIES = """
select comparison, harness, attempt, state, attempted, total, call_budget from policy_receipts
where state <> 'completed' order by all
"""
_JUDGES = """
select comparison, "left", "right", judge, attempt, no_votes, pairs from judge_reports where no_votes > 0 order by all
"""
_LEDGERS = """
select ledger, max(unparsable_lines) as unparsable, bool_or(incomplete_tail) as cut_off from ledger_summaries
group by 1 having unparsable > 0 or cut_off order by 1
"""


@dataclass(frozen=True)
class Gap:
    """Something that is missing: where, what, and the command that fills it or says more."""

    where: str
    what: str
    command: str


def gaps(tables: Mapping[str, pa.Table], ledger_files: Mapping[str, str]) -> dict[str, object]:
    """The coverage of each evaluation, and every gap, as a JSON-able document.

    Args:
        tables: ``cells`` (rows of report_cells) and the tables of the lanes by their names.
        ledger_files: the path of each ledger's file, by its key.
    """
    queries = {
        "coverage": _COVERAGE,
        "unscored": _UNSCORED,
        "unjudged": _UNJUDGED,
        "policies": _POLICIES,
        "judges": _JUDGES,
        "ledgers": _LEDGERS,
    }
    found = {name: table.to_pylist() for name, table in run_queries(tables, queries).items()}
    coverage = [
        {**row, "missing_tasks": len(row["missing_tasks"] or ()), "command": _fill(row)}
        for row in found["coverage"]
    ]
    missing = [
        *(_of_evaluation(row) for row in coverage if row["command"]),
        *_of_scores(found["unscored"], found["unjudged"][0]),
        *(_of_policy(row) for row in found["policies"]),
        *(_of_judge(row) for row in found["judges"]),
        *_of_ledgers(found["ledgers"], ledger_files),
    ]
    return {"coverage": coverage, "gaps": [asdict(gap) for gap in missing]}


def _fill(row: Mapping[str, object]) -> str | None:
    tasks = row["missing_tasks"]
    if not tasks:
        return None
    frame = pd.DataFrame({"task_id": tasks, "attempted": bool(row["failures"])})
    return fill_command(str(row["evaluation"]), frame)


def _of_evaluation(row: Mapping[str, object]) -> Gap:
    cells, failures = _number(row["cells"]), _number(row["failures"])
    missing = cells - _number(row["measured"])
    what = f"{missing} of {plural(cells, 'cell')} without a verdict"
    if failures:
        what += f", {failures} of them attempted and failed to execute"
    return Gap(f"evaluation {row['evaluation']}", what, str(row["command"]))


def _of_scores(unscored: Sequence[Mapping[str, object]], unjudged: Mapping[str, object]) -> Iterator[Gap]:
    if unscored:
        names = [str(row["task_id"]) for row in unscored]
        results = sum(_number(row["results"]) for row in unscored)
        what = (
            f"{plural(results, 'task result')} without valid telemetry ({some(names)}); a task with a workspace is "
            "run by evaluations, one without is told by telemetry/<setup>/<attempt>.jsonl"
        )
        yield Gap("composite scores", what, shlex.join(["bench", "golden", "validate", *names[:_NAMED]]))
    without, scores = _number(unjudged["unjudged"]), _number(unjudged["scores"])
    if without:
        what = f"{without} of {plural(scores, 'score')} without any judged task, so at most 0.7"
        yield Gap("composite scores", what, "bench golden judge")
    if failed := _number(unjudged["judge_failed"]):
        yield Gap("composite scores", f"the judge failed on {plural(failed, 'task')}", "bench golden judge")


def _of_policy(row: Mapping[str, object]) -> Gap:
    where = f"policies {row['comparison']}, attempt {row['attempt']}"
    what = f"{row['harness']} attempted {row['attempted']} of {row['total']} cases, {row['state']}"
    if row["state"] == "budget-exhausted":
        what += f": raise the call budget of {row['call_budget']} in policies/{row['comparison']}.yaml"
    return Gap(where, what, "bench run")


def _of_judge(row: Mapping[str, object]) -> Gap:
    where = f"judge {row['judge']} of {row['comparison']}, attempt {row['attempt']}"
    what = f"{row['no_votes']} of {row['pairs']} pairs of {row['left']} and {row['right']} without a vote"
    return Gap(where, what, "bench run")


def _of_ledgers(rows: Sequence[Mapping[str, object]], files: Mapping[str, str]) -> Iterator[Gap]:
    for row in rows:
        ledger = str(row["ledger"])
        command = shlex.join(["bench", "ledger", "summarize", files.get(ledger, ledger)])
        if lines := _number(row["unparsable"]):
            yield Gap(f"ledger {ledger}", f"{plural(lines, 'line')} that could not be read", command)
        if row["cut_off"]:
            yield Gap(f"ledger {ledger}", "the last line is cut off: it is still being written", "bench run")


def _number(value: object) -> int:
    return int(value) if isinstance(value, (int, float)) else 0
