"""Running, replaying and importing one scenario: the use cases behind `bench scenario`.

They work on files that are named; a project is used where there is one, for its tools, sandbox and credentials.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench_pipeline.errors import NotFoundError, RefusedError
from bench_pipeline.scenarios import (
    Scenario,
    Trace,
    find_trace,
    load_scenario,
    read_trace,
    scored_cell,
    write_trace,
)
from bench_pipeline.scenarios.cell_result import CellResult
from bench_pipeline.scenarios.trace import new_run_id

if TYPE_CHECKING:
    from bench_pipeline.evaluations import Setup
    from bench_pipeline.execution.job import Kit
    from bench_pipeline.execution.workspace import Workspaces
    from bench_pipeline.pipeline.bench import Backend, Bench
    from bench_pipeline.scenarios.live import Machine

TRACES = "traces"
# The time of a check or a preparing command where no project says otherwise.
_CHECK_S = 1200.0


@dataclass(frozen=True)
class Choice:
    """Which tool runs a scenario, and how."""

    tool: str
    model: str | None = None
    effort: str | None = None
    options: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Ran:
    """A run that was scored, and where its trace is."""

    result: CellResult
    trace: Path


@dataclass(frozen=True)
class ImportedRun:
    """A transcript that became a trace, and what of it could not."""

    trace: Trace
    path: Path
    unmapped: tuple[str, ...]


def replay(
    file: Path, run_id: str, *, traces: Path | None, cell: str | None, mode: str | None, attempt: int
) -> Ran:
    """Score the trace of an earlier run; no model is contacted."""
    scenario = load_scenario(file)
    path = find_trace(_folders(traces, file), run_id)
    result = scored_cell(scenario, read_trace(path), cell=cell, mode=mode, attempt=attempt, replay=run_id)
    return Ran(result, path)


def _folders(traces: Path | None, file: Path) -> Sequence[Path]:
    """Where a trace may be: the folder that was named, else ``traces`` here or beside the scenario."""
    return [traces] if traces is not None else list(dict.fromkeys([Path(TRACES), file.parent / TRACES]))


def run_tool(
    bench: "Bench | None",
    file: Path,
    choice: Choice,
    *,
    backend: "Backend | None" = None,
    traces: Path | None,
    cell: str | None,
    mode: str | None,
    attempt: int,
) -> Ran:
    """Run a scenario with a tool and keep its trace before it is scored; without a project, in ``backend``."""
    scenario = load_scenario(file)
    setup = resolve_choice(bench, choice)
    with _machine(bench, scenario, setup, backend) as machine:
        from bench_pipeline.scenarios.live import run_live

        trace = run_live(scenario, setup, machine, run_id=new_run_id(), cell=cell or setup.label, mode=mode)
    path = write_trace(traces or Path(TRACES), trace)
    return Ran(scored_cell(scenario, trace, attempt=attempt), path)


def import_run(
    format_name: str,
    transcript: Path,
    file: Path,
    *,
    traces: Path | None,
    cell: str | None,
    mode: str | None,
    seconds: int | None,
    which: str | None,
) -> ImportedRun:
    """Turn a transcript into a trace of a scenario and keep it."""
    from bench_pipeline.scenarios.importers import import_transcript

    trace, unmapped = import_transcript(
        format_name,
        transcript,
        load_scenario(file),
        run_id=new_run_id(),
        cell=cell,
        mode=mode,
        seconds=seconds,
        which=which,
    )
    return ImportedRun(trace, write_trace(traces or Path(TRACES), trace), unmapped)


def nearest_bench(project_dir: Path | None, backend: "Backend | None") -> "Bench | None":
    """The workbench of the project that is named, or found from here; None where there is none to be found."""
    from bench_pipeline.pipeline.bench import Bench

    bench = Bench(project_dir, backend=backend)
    if project_dir is None:
        try:
            _ = bench.project
        except NotFoundError:
            return None
    return bench


def resolve_choice(bench: "Bench | None", choice: Choice) -> "Setup":
    """The setup of a tool, model, effort and options; UsageError with everything that does not fit."""
    from bench_pipeline.evaluations import resolve_one
    from bench_pipeline.project import user_dir
    from bench_pipeline.registry import Registry

    registry = bench.registry if bench is not None else Registry.load(None, user_dir())
    return resolve_one(
        registry, choice.tool, model=choice.model, effort=choice.effort, options=choice.options or {}
    )


@contextlib.contextmanager
def _machine(
    bench: "Bench | None", scenario: Scenario, setup: "Setup", backend: "Backend | None"
) -> Iterator["Machine"]:
    """A machine for one scenario, and an empty folder to start from where it has none."""
    from bench_pipeline.execution.workspace import Workspaces

    with tempfile.TemporaryDirectory(prefix="bench-scenario-") as folder:
        empty = Path(folder) / "empty"
        empty.mkdir()
        with Workspaces(Path(folder) / "workspaces") as workspaces:
            kit = bench.kit() if bench is not None else _bare_kit(setup, workspaces, backend)
            yield machine_on(bench, scenario.workspace or empty, setup, replace(kit, workspaces=workspaces))


def machine_on(bench: "Bench | None", base: Path, setup: "Setup", kit: "Kit") -> "Machine":
    """What a live run of a setup needs here; RefusedError where the setup cannot run on this machine."""
    from bench_pipeline.execution.invocation import network_refusal
    from bench_pipeline.execution.sandbox import Limits
    from bench_pipeline.pipeline.material import project_files
    from bench_pipeline.pipeline.programs import program_problem
    from bench_pipeline.pipeline.upstreams import upstream_problem
    from bench_pipeline.scenarios.live import Machine

    files = {tool.name: tool.files for tool, _ in setup.tools() if tool.files}
    if files and bench is None:
        raise RefusedError(
            f"starting {setup.label}", "its files belong to a project", "name it with --project"
        )
    found = {tool.name: project_files(bench, tool)[0] for tool, _ in setup.tools() if bench and tool.files}
    for leaf in setup.leaves():
        why = network_refusal(leaf.definition, kit.sandbox, leaf.effects().values())
        if bench is not None:
            why = why or program_problem(bench, leaf, found) or upstream_problem(bench, leaf)
        elif leaf.definition.model_apis:
            why = why or "its model is reached through the upstreams of a project: name one with --project"
        if why is not None:
            raise RefusedError(f"starting {leaf.tool}", why)
    limits = bench.limits(None) if bench is not None else Limits(wall_s=_CHECK_S)
    return Machine(kit, base, limits, found)


def _bare_kit(setup: "Setup", workspaces: "Workspaces", backend: "Backend | None") -> "Kit":
    """What running needs where there is no project: nothing is kept but the trace."""
    from bench_pipeline.execution.invocation import secret_names
    from bench_pipeline.execution.job import Kit
    from bench_pipeline.execution.redaction import Redactor
    from bench_pipeline.execution.sandbox import open_sandbox
    from bench_pipeline.identity import digest_bytes

    names = {name for tool, _ in setup.tools() for name in secret_names(tool)}
    secrets = {name: os.environ[name] for name in sorted(names) if os.environ.get(name)}

    def digest_only(source: Path | bytes, _: str) -> str:
        return digest_bytes(source.read_bytes() if isinstance(source, Path) else source)

    return Kit(
        sandbox=open_sandbox(backend or "auto", backend == "process"),
        workspaces=workspaces,
        keep=digest_only,
        keep_exactly=digest_only,
        redactor=Redactor(secrets),
    )
