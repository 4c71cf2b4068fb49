"""Scenarios: a goal with caps and required evidence, run live or replayed from a trace, scored by one scorer.

What belongs here: scenario files, traces, importers of foreign transcripts, live runs, cell results. What does not:
comparing cell results (``bench_pipeline.judging``). Sits above ``execution``, whose sandbox and tools it uses.
"""

from bench_pipeline.scenarios.cell_result import (
    CellResult,
    file_name,
    read_cell,
    read_cells,
    scored_cell,
    write_cell,
)
from bench_pipeline.scenarios.scenario import Scenario, ScenarioDocument, load_scenario
from bench_pipeline.scenarios.trace import Trace, find_trace, read_trace, write_trace

__all__ = [
    "CellResult",
    "Scenario",
    "ScenarioDocument",
    "Trace",
    "file_name",
    "find_trace",
    "load_scenario",
    "read_cell",
    "read_cells",
    "read_trace",
    "scored_cell",
    "write_cell",
    "write_trace",
]
