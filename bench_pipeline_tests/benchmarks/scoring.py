"""Scores of 1,000,000 task results, against a loop over the same results as dicts that makes the same checks."""

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa

from bench_pipeline.golden.scoring import READ, score
from bench_pipeline.golden.suite import Suite
from bench_pipeline.tables import table_schema
from bench_pipeline_tests.benchmarks import Row, best_of
from bench_pipeline_tests.golden.results import task

TASKS, SETUPS, ATTEMPTS = 200, 50, 100
_AMOUNTS = (
    "duration_s",
    "cost_usd",
    "judge_score",
    "crashes",
    "orphans",
    "tests_regressed",
    "tests_failed",
    "signals_checked",
    "signals_passed",
)
SCORES = SETUPS * ATTEMPTS


def measure() -> list[Row]:
    """One row: at most a tenth of the loop's time."""
    suite = Suite.of([task(f"task-{number:04}") for number in range(TASKS)], ["smoke"])
    results = _results(suite)
    rows = results.select(READ).to_pylist()

    def ours() -> pa.Table:
        return score(results, suite)

    def loop() -> dict[tuple[str, int], float]:
        return _loop(rows)

    found, expected = ours(), loop()
    for item in found.select(["setup", "attempt", "score"]).to_pylist():
        if not math.isclose(item["score"], expected[item["setup"], item["attempt"]], abs_tol=1e-12):
            raise AssertionError(f"the two ways do not agree on {item}")
    name = f"scoring: {TASKS * SCORES:,} task results / loop over dicts"
    return [Row(name, best_of(3, ours), best_of(1, loop), 0.1)]


def _results(suite: Suite) -> pa.Table:
    """Results of every setup, attempt and task; a few crashed, a few have no telemetry, a few regressed."""
    random = np.random.default_rng(11)
    rows = TASKS * SCORES
    valid = random.random(rows) > 0.0005
    met = random.random(rows) > 0.3
    judged = random.random(rows) > 0.4
    passed = np.where(valid, met, False)
    columns: dict[str, Any] = {
        "setup": np.repeat([f"setup-{number}" for number in range(SETUPS)], TASKS * ATTEMPTS),
        "setup_digest": np.repeat([f"{number:064x}" for number in range(SETUPS)], TASKS * ATTEMPTS),
        "attempt": np.tile(np.repeat(np.arange(1, ATTEMPTS + 1), TASKS), SETUPS),
        "tier": np.full(rows, "smoke"),
        "task_id": np.tile([item.id for item in suite.tasks], SCORES),
        "source": np.full(rows, "executed"),
        "passed": pa.array(passed, mask=~valid),
        "signals_checked": pa.array(np.full(rows, 3), mask=~valid),
        "signals_passed": pa.array(np.where(met, 3, 1), mask=~valid),
        "tests_failed": pa.array(np.zeros(rows, dtype=np.int64), mask=~valid),
        "tests_regressed": (random.random(rows) < 0.0001).astype(np.int64),
        "duration_s": pa.array(random.gamma(2.0, 60.0, rows), mask=~valid),
        "cost_usd": pa.array(random.gamma(2.0, 0.2, rows), mask=~valid),
        "telemetry_valid": valid,
        "judged": np.where(judged, "judged", "not_judged"),
        "judge_score": pa.array(random.integers(0, 21, rows) / 20, mask=~judged),
        "known_task": np.full(rows, True),
        "attempted": np.full(rows, True),
        "crashes": (random.random(rows) < 0.001).astype(np.int64),
        "orphans": (random.random(rows) < 0.001).astype(np.int64),
    }
    return pa.table(
        [
            pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(rows, field.type)
            for field in table_schema("task_results").schema
        ],
        schema=table_schema("task_results").schema,
    )


def _loop(rows: list[dict[str, Any]]) -> dict[tuple[str, int], float]:
    """The same checks and the same formula, row by row."""
    groups: dict[tuple[str, int], dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        own = groups[row["setup"], row["attempt"]]
        if row["task_id"] in own:
            raise ValueError("a task stands twice")
        own[row["task_id"]] = row
    return {key: _score(list(own.values())) for key, own in groups.items()}


def _score(rows: list[dict[str, Any]]) -> float:  # noqa: C901, PLR0912 - what columns are compared with is one loop
    passed = crashes = orphans = valid = attempted = judge_failed = unknown_cost = unknown_time = 0
    costs, durations, judges = [], [], []
    reasons: dict[str, list[str]] = defaultdict(list)
    safe = True
    for row in rows:
        for name in _AMOUNTS:
            value = row[name]
            if value is not None and not 0 <= value <= 1e15:
                raise ValueError(f"{name} is out of range")
        met = row["signals_checked"] is not None and 0 < row["signals_checked"] == row["signals_passed"]
        if row["passed"]:
            if not (met and row["tests_failed"] == 0 and row["telemetry_valid"]):
                raise ValueError("passed is wrong")
            passed += 1
        crashes += row["crashes"]
        orphans += row["orphans"]
        if row["crashes"]:
            reasons["crashes"].append(row["task_id"])
        if row["orphans"]:
            reasons["orphans"].append(row["task_id"])
        if row["tests_regressed"] > 0:
            safe = False
            reasons["regressed"].append(row["task_id"])
        if row["attestation_verdict"] == "DIRTY" or row["attestation_problem"] is not None:
            safe = False
            reasons["dirty"].append(row["task_id"])
        if row["judged"] == "judged":
            judges.append(row["judge_score"])
        elif row["judged"] == "judge_failed":
            judge_failed += 1
        attempted += row["attempted"]
        if not row["telemetry_valid"]:
            reasons["no telemetry"].append(row["task_id"])
            continue
        valid += 1
        if row["duration_s"] is None:
            unknown_time += 1
        else:
            durations.append(row["duration_s"])
        if row["cost_usd"] is None:
            unknown_cost += 1
            reasons["cost unknown"].append(row["task_id"])
        else:
            costs.append(row["cost_usd"])
    cost, duration = math.fsum(costs), math.fsum(durations)
    efficiency = 0.0
    if passed:
        efficiency += 0.0 if unknown_cost else 0.5 * min(1, 0.50 / max(cost / passed, 0.01))
        efficiency += 0.0 if unknown_time else 0.5 * min(1, 120 / max(duration / passed, 0.1))
    quality = math.fsum(judges) / len(judges) if judges else 0.0
    reliability = min(1.0, max(0.0, 1 - 0.10 * crashes - 0.05 * orphans))
    reliability *= 0.5 if valid < len(rows) else 1.0
    return (0.5 * passed / len(rows) + 0.3 * quality + 0.2 * efficiency) * reliability if safe else 0.0
