"""Writing the tables of the scenario lane: results of every cell, and the judgements of pairs of them.

A tool is run once for a scenario, a setup and an attempt: its trace is kept under an id that is made of them, and the
next time it is read. What could not be read or run is a problem and no row.
"""

import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench_pipeline.errors import BenchError, DocumentError, Problem, RefusedError
from bench_pipeline.identity import digest
from bench_pipeline.pipeline.tables import Written, write_table
from bench_pipeline.scenarios import Scenario, Trace, load_scenario, read_trace, scored_cell
from bench_pipeline.scenarios.cell_result import CellResult
from bench_pipeline.scenarios.comparison import CellSource, Comparison, load_comparisons
from bench_pipeline.store.files import LocalFiles
from bench_pipeline.tables import table_schema

if TYPE_CHECKING:
    from bench_pipeline.evaluations import Setup
    from bench_pipeline.pipeline.bench import Bench

RECIPE = "scenario-run/1"
# A namespace of its own for ids that are made of what was run.
_NAMESPACE = uuid.UUID("6ee9b1a4-7a0f-4f38-9d6e-3f0c7a2b5d11")


@dataclass(frozen=True)
class Lookout:
    """The comparisons of a project as they can be used, and everything that is wrong with the others."""

    comparisons: tuple[Comparison, ...]
    scenarios: dict[str, tuple[Scenario, ...]]
    problems: tuple[Problem, ...]


def look_at_comparisons(bench: "Bench") -> Lookout:
    """Read every comparison and its scenarios; no tool is run."""
    comparisons, found = load_comparisons(bench.project.root)
    problems, scenarios, usable = list(found), {}, []
    for comparison in comparisons:
        try:
            scenarios[comparison.name] = scenarios_of(comparison)
            usable.append(comparison)
            problems += _unusable_judge(bench, comparison)
        except DocumentError as error:
            problems += error.problems
    return Lookout(tuple(usable), scenarios, tuple(problems))


def _unusable_judge(bench: "Bench", comparison: Comparison) -> Iterator[Problem]:
    from bench_pipeline.pipeline.judges import named_judge

    asked = comparison.model.judge
    try:
        _ = asked and named_judge(bench.project.config, asked.upstream, asked.model)
    except BenchError as error:
        yield comparison.document.problem(("judge",), f"{error.wrong}: {error.remedy}")


def scenarios_of(comparison: Comparison) -> tuple[Scenario, ...]:
    """The scenarios of a comparison. Raises DocumentError with the problems of all, a name that stands twice too."""
    loaded: dict[str, Scenario] = {}
    problems: list[Problem] = []
    for number, name in enumerate(comparison.model.scenarios):
        try:
            scenario = load_scenario(comparison.folder / name)
        except DocumentError as error:
            problems += error.problems
            continue
        if scenario.name in loaded:
            message = f"{scenario.path} has the name of {loaded[scenario.name].path}: rename one"
            problems.append(comparison.document.problem(("scenarios", number), message))
        loaded[scenario.name] = scenario
    if problems:
        raise DocumentError(problems)
    return tuple(loaded.values())


def write_results(bench: "Bench", attempts: Sequence[int]) -> tuple[dict[int, Written], tuple[str, ...]]:
    """Write the results of the given attempts; tools run that have not run yet. Returns what went wrong too."""
    seen = look_at_comparisons(bench)
    problems = [str(problem) for problem in seen.problems]
    written = {}
    for attempt in attempts:
        rows = []
        for comparison in seen.comparisons:
            cells, wrong = _cells(bench, comparison, seen.scenarios[comparison.name], attempt)
            rows += [{"comparison": comparison.name, **cell.document()} for cell in cells]
            problems += wrong
        table = table_schema("scenario_results").from_rows(rows)
        written[attempt] = write_table(bench.store, "scenario_results", table, attempt=attempt)
    return written, tuple(problems)


def _cells(
    bench: "Bench", comparison: Comparison, scenarios: Sequence[Scenario], attempt: int
) -> tuple[list[CellResult], list[str]]:
    """The cells of one comparison and attempt, and what kept the others from being there."""
    cells: list[CellResult] = []
    problems: list[str] = []
    if attempt > comparison.model.attempts:
        return cells, problems
    for label, source in comparison.model.cells.items():
        try:
            runs = _runs(bench, comparison, label, source, attempt)
        except BenchError as error:
            problems.append(f"{comparison.name}: {label}: {error}")
            continue
        for scenario in scenarios:
            try:
                trace, replayed = runs(scenario)
                replay = trace.header.run_id if replayed else None
                cells.append(scored_cell(scenario, trace, cell=label, attempt=attempt, replay=replay))
            except BenchError as error:
                problems.append(f"{comparison.name}: {label}: {scenario.name}: {error}")
    return cells, problems


@dataclass(frozen=True)
class _Recorded:
    """Runs of a folder of traces: the n-th of a scenario, by the time of its start, is attempt n."""

    folder: Path
    traces: tuple[Trace, ...]
    attempt: int

    def __call__(self, scenario: Scenario) -> tuple[Trace, bool]:
        own = [trace for trace in self.traces if trace.header.scenario == scenario.name]
        if len(own) < self.attempt:
            wrong = f"{self.folder} holds {len(own)} runs of it"
            raise BenchError(f"looking for run {self.attempt}", wrong, "record one, or lower attempts")
        return own[self.attempt - 1], True


def _runs(
    bench: "Bench",
    comparison: Comparison,
    label: str,
    source: CellSource,
    attempt: int,
) -> "_Recorded | _Tool":
    if source.traces is not None:
        folder = comparison.folder / source.traces
        traces = [read_trace(path) for path in sorted(folder.glob("*.jsonl"))]
        traces.sort(key=lambda trace: (trace.header.started_at or "", trace.header.run_id))
        return _Recorded(folder, tuple(traces), attempt)
    from bench_pipeline.pipeline.scenario_runs import Choice, resolve_choice

    assert source.tool is not None
    choice = Choice(source.tool, source.model, source.effort, source.options)
    return _Tool(bench, resolve_choice(bench, choice), label, attempt)


@dataclass(frozen=True)
class _Tool:
    """Runs of a tool, each made once and kept in the store."""

    bench: "Bench"
    setup: "Setup"
    label: str
    attempt: int

    def __call__(self, scenario: Scenario) -> tuple[Trace, bool]:
        files = self.bench.store.files
        run_id = str(uuid.uuid5(_NAMESPACE, self._identity(scenario)))
        path = f"runs/scenarios/{run_id}.jsonl"
        with tempfile.TemporaryDirectory(prefix="bench-trace-") as folder:
            local = LocalFiles(Path(folder))
            try:
                local.write(f"{run_id}.jsonl", files.read(path))
                return read_trace(Path(folder) / f"{run_id}.jsonl"), False
            except FileNotFoundError:
                trace = self._run(scenario, run_id)
        from bench_pipeline.scenarios.trace import encode_trace

        files.create(path, encode_trace(trace))
        return trace, False

    def _identity(self, scenario: Scenario) -> str:
        """The digest of everything that decides a run: the scenario, what it starts from, the setup, the attempt."""
        from bench_pipeline.evaluations import setup_digest
        from bench_pipeline.pipeline.material import project_files
        from bench_pipeline.tasks.trees import tree_digest

        tools = [tool for tool, _ in self.setup.tools()]
        versions = {tool.name: self.bench.environment.tool_version(tool, None) for tool in tools}
        files = {tool.name: project_files(self.bench, tool)[1] for tool in tools if tool.files}
        return digest(
            {
                "recipe": RECIPE,
                "scenario": scenario.sha256,
                "workspace": None if scenario.workspace is None else tree_digest(scenario.workspace),
                "setup": setup_digest(self.setup, versions, files),
                "sandbox": self.bench.sandbox.policy(),
                "attempt": self.attempt,
            }
        )

    def _run(self, scenario: Scenario, run_id: str) -> Trace:
        self._refuse_uncapped()
        from bench_pipeline.pipeline.scenario_runs import machine_on
        from bench_pipeline.scenarios.live import run_live

        with tempfile.TemporaryDirectory(prefix="bench-scenario-") as folder:
            base = scenario.workspace or Path(folder)
            machine = machine_on(self.bench, base, self.setup, self.bench.scenario_kit)
            return run_live(scenario, self.setup, machine, run_id=run_id, cell=self.label)

    def _refuse_uncapped(self) -> None:
        """A cap that is not kept is worse than none: what a scenario's run will cost is not forecast."""
        priced = [leaf.tool for leaf in self.setup.leaves() if leaf.model_id is not None]
        cap = self.bench.project.config.spending.max_cost_usd
        if priced and (cap is not None or self.bench.left_usd is not None):
            raise RefusedError(
                f"running {priced[0]}",
                "spending.max_cost_usd or --max-cost is set, and runs of scenarios are not held to it",
                "record the run with bench scenario run, and let the cell read its traces",
            )
