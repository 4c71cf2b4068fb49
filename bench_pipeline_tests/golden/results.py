"""Golden tasks and task results for tests of what reads them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench_pipeline.golden.results import settle
from bench_pipeline.golden.suite import Suite
from bench_pipeline.tables import table_schema
from bench_pipeline.tasks import GoldenTask

SETUP = {"setup": "careful", "setup_digest": "c" * 64, "attempt": 1}
# A task that passed and cost nothing worth a word.
PASSED = {"signals_checked": 2, "signals_passed": 2, "tests_failed": 0, "duration_s": 60.0, "cost_usd": 0.10}
FAILED = PASSED | {"signals_passed": 1}


def task(name: str, tier: Any = "smoke", **fields: Any) -> GoldenTask:
    """A golden task without a workspace."""
    facts = {"title": name, "role": "backend", "prompt": "Do it.", "front_matter": ""} | fields
    return GoldenTask(id=name, tier=tier, file=Path(f"{name}.md"), **facts)


def suite(count: int, tier: Any = "smoke") -> Suite:
    """A suite of tasks t0, t1, ... of one tier."""
    return Suite.of([task(f"t{number}", tier) for number in range(count)], [tier])


def row(name: str, facts: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A row of task_results as its reader makes it; by default of a task that passed."""
    known = {
        "tier": "smoke",
        "task_id": name,
        "source": "imported",
        "telemetry_valid": True,
        "judged": "not_judged",
        "known_task": True,
        "attempted": True,
        "tests_regressed": 0,
        "crashes": 0,
        "orphans": 0,
    }
    return SETUP | known | dict(PASSED if facts is None else facts) | more


def missing(name: str, **more: Any) -> dict[str, Any]:
    """A row of a task whose record is there and cannot be read."""
    return row(name, {}, telemetry_valid=False, telemetry_problem="is no record", **more)


def judged(score: float) -> dict[str, Any]:
    """The columns of a judged row."""
    return {"judged": "judged", "judge_score": score}


def table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows as task_results, with all columns that follow from others."""
    return settle(table_schema("task_results").from_rows(list(rows)))


def spread(total: float, count: int) -> Sequence[float]:
    """``count`` amounts that add up to ``total``."""
    return [total / count] * count
