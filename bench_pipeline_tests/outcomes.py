"""Cells and verdicts for tests of what reads them, written as setup -> task -> one result per attempt."""

import hashlib
from collections.abc import Mapping, Sequence

import pyarrow as pa

from bench_pipeline.tables import table_schema

# What came of a cell: True or False is a verdict, a text is an execution failure, None was not attempted.
Result = bool | str | None
Results = Mapping[str, Mapping[str, Sequence[Result]]]


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def tables(
    results: Results,
    *,
    evaluation: str = "nightly",
    of_setup: Mapping[str, Mapping[str, object]] | None = None,
    **facts: object,
) -> tuple[pa.Table, pa.Table]:
    """Cells and verdicts; ``facts`` are columns of every verdict, ``of_setup`` those of one setup's."""
    cells, verdicts = [], []
    for setup, by_task in results.items():
        for task, attempts in by_task.items():
            for attempt, result in enumerate(attempts, 1):
                key = {
                    "identity": sha(f"{setup} {task} {attempt}"),
                    "run_key": "r",
                    "verify_key": "v",
                    "evaluation": evaluation,
                    "tier": "standard",
                    "attempt": attempt,
                    "task_id": task,
                    "setup": setup,
                    "setup_digest": sha(setup),
                }
                cells.append({**key, "tool": "shell", "reusable": True, "task_digest": sha(task)})
                verdicts.append({**key, **outcome(result), **facts, **(of_setup or {}).get(setup, {})})
    return table_schema("evaluation_cells").from_rows(cells), table_schema("verdicts").from_rows(verdicts)


def outcome(result: Result) -> dict[str, object]:
    """The columns that say what came of a cell."""
    if result is None:
        return {"outcome": "not_attempted", "outcome_class": "not_attempted", "tries": 0}
    if isinstance(result, str):
        return {"outcome": result, "outcome_class": "execution_failure", "tries": 3}
    word = "passed" if result else "failed"
    return {"outcome": word, "outcome_class": "verdict", "passed": result, "tries": 1}


def tasks(*results: Result, start: int = 0) -> dict[str, list[Result]]:
    """One task per result, each with one attempt."""
    return {f"t{place:03}": [result] for place, result in enumerate(results, start)}
