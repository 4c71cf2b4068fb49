"""Scenarios, traces and cell results for tests."""

import json
from pathlib import Path

from bench_pipeline.scenarios import CellResult

RUN_ID = "5f0c2d1e-6a7b-4c8d-9e0f-112233445566"
START = "2026-01-31T12:00:00Z"


def scenario_file(
    folder: Path,
    name: str = "fix the sum",
    *,
    goal: str = "Make the tests pass.",
    max_steps: int = 5,
    max_seconds: int = 20,
    required: tuple[str, ...] = (),
    file: str = "scenario.toml",
) -> Path:
    path = folder / file
    lines = [
        f"name = {json.dumps(name)}",
        f"goal = {json.dumps(goal)}",
        f"max_steps = {max_steps}",
        f"max_seconds = {max_seconds}",
        f"required_evidence = {json.dumps(list(required))}",
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def trace_file(folder: Path, *events: dict[str, object], run_id: str = RUN_ID, **header: object) -> Path:
    """A trace with these events, each numbered and without a time unless it has one."""
    folder.mkdir(parents=True, exist_ok=True)
    head = {"schema": 1, "run_id": run_id, "scenario": "fix the sum", "started_at": START} | header
    rows = [head, *({"seq": seq, "time": None} | event for seq, event in enumerate(events, 1))]
    path = folder / f"{run_id}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def cell(scenario: str = "fix the sum", passed: bool = True, **fields: object) -> CellResult:
    known: dict[str, object] = dict.fromkeys(CellResult._fields) | {
        "attempt": 1,
        "steps": 3,
        "seconds": 4,
        "missing_evidence": (),
    }
    return CellResult(**(known | {"scenario": scenario, "passed": passed} | fields))  # type: ignore[arg-type]
