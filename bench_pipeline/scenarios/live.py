"""A live run: the goal given to a tool in a sandbox, then the harness's own checks, recorded as a trace.

What belongs here: one run from its workspace to its trace. What does not: scoring it (``scoring``), where tools and
sandboxes come from (``pipeline``). The tool has the scenario's seconds and one more, so that a run that was cut off is
over them. Its checks run in a second, fresh workspace: nothing but what it changed reaches them, and tests that were
there at the start are as they were.
"""

import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench_pipeline.errors import BenchError, RefusedError
from bench_pipeline.evaluations import Setup, StepSetup
from bench_pipeline.execution.job import Kit
from bench_pipeline.execution.manifest import Exclusions, Manifest, take_manifest
from bench_pipeline.execution.overlay import Overlay, capture
from bench_pipeline.execution.sandbox import Command, Limits, Mount
from bench_pipeline.execution.sandbox.base import TOOL_FILES
from bench_pipeline.execution.tool_use import ToolUse, use_tool
from bench_pipeline.execution.usage import ToolEnd, ToolOutputs, merge_ends
from bench_pipeline.execution.verification import describe_end, run_setup
from bench_pipeline.execution.workspace import Workspace
from bench_pipeline.scenarios.checks import HarnessCheck, checks_for, is_test, label
from bench_pipeline.scenarios.importers import read_outputs
from bench_pipeline.scenarios.importers.imported import Event, closing, ended, step
from bench_pipeline.scenarios.scenario import Scenario
from bench_pipeline.scenarios.trace import Trace, make_trace, time_text


@dataclass(frozen=True)
class Machine:
    """What live runs need besides the scenario and the setup.

    ``base`` is the folder that the workspace starts as; ``limits`` bound each command, but for the tool's time, which
    is the scenario's; ``tool_files`` are the project files of tools, by tool.
    """

    kit: Kit
    base: Path
    limits: Limits
    tool_files: Mapping[str, Path] = field(default_factory=dict)


@dataclass
class _Run:
    """What the steps of a setup did so far."""

    uses: list[ToolUse] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    cell: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def seconds(self) -> float:
        return sum(use.process.duration_s for use in self.uses)

    @property
    def report(self) -> ToolEnd:
        return merge_ends([use.end for use in self.uses])


def run_live(
    scenario: Scenario,
    setup: Setup,
    machine: Machine,
    *,
    run_id: str,
    cell: str | None = None,
    mode: str | None = None,
) -> Trace:
    """Run the goal once.

    Raises BenchError when nothing was measured: the tool failed by its own account, or did not say how it ended, its
    steps are unknown, or the run was interrupted.
    """
    with machine.kit.workspaces.open(machine.base) as workspace:
        problem = run_setup(
            setup.all_pre(), "pre", workspace.place, workspace.logs, machine.kit, machine.limits
        )
        if problem is not None:
            raise BenchError(
                _tried(scenario, setup),
                machine.kit.redactor.redact_text(problem),
                "look at the setup's pre commands",
            )
        exclude = Exclusions(_droppings(setup), machine.base)
        before = take_manifest(workspace.place.tree, exclude, known=workspace.manifest)
        started = datetime.now(UTC)
        run = _use_tools(scenario, setup, machine, workspace)
        _refuse_unmeasured(scenario, setup, run, machine)
        overlay = _without_tests(capture(workspace.place.tree, before, exclude), before)
    report = run.report
    header = {
        "run_id": run_id,
        "scenario": scenario.name,
        "cell": cell,
        "mode": mode,
        "harness": setup.tool,
        "model": setup.model_id,
        "max_steps": scenario.max_steps,
        "max_seconds": scenario.max_seconds,
        "started_at": time_text(started),
    }
    ended_at = time_text(started + timedelta(seconds=run.seconds))
    events = [
        *run.events,
        *_check(machine, overlay),
        *closing(report),
        {"type": "end", "time": ended_at},
    ]
    return make_trace(_redacted(header, machine), [_redacted(event, machine) for event in events])


def _tried(scenario: Scenario, setup: Setup) -> str:
    return f"running {scenario.name} with {setup.tool}"


def _droppings(setup: Setup) -> tuple[str, ...]:
    return tuple(dict.fromkeys(glob for leaf in setup.leaves() for glob in leaf.definition.droppings))


def _use_tools(scenario: Scenario, setup: Setup, machine: Machine, workspace: Workspace) -> _Run:
    """Every step of the setup in one tree, until one does not end well or the scenario's time is over."""
    run, deadline = _Run(), time.monotonic() + scenario.max_seconds + 1
    for number, leaf in enumerate(setup.leaves()):
        if number:
            workspace.renew_home()
        remaining = max(deadline - time.monotonic(), 0.0)
        _use_tool(scenario, leaf, machine, workspace, remaining, run)
        last, report = run.uses[-1].process, run.uses[-1].reported
        if last.timed_out or last.signal is not None or not (ended(report) or report.state == "exit"):
            break
    return run


def _use_tool(
    scenario: Scenario, leaf: StepSetup, machine: Machine, workspace: Workspace, seconds: float, run: _Run
) -> None:
    kit, place = machine.kit, workspace.place
    files = machine.tool_files.get(leaf.tool)
    mounts = (*place.mounts, Mount(files, TOOL_FILES)) if files is not None else place.mounts
    place = replace(place, mounts=mounts, handover=place.handover if leaf.name else None)
    used = use_tool(
        leaf,
        prompt=scenario.goal,
        place=place,
        limits=replace(
            machine.limits, wall_s=seconds if leaf.timeout_s is None else min(seconds, leaf.timeout_s)
        ),
        kit=kit,
        logs=workspace.logs,
        cell=run.cell,
    )
    run.uses.append(used)
    run.events += _steps(used.invocation.usage_format, used.outputs, used.reported, leaf)


def _steps(usage_format: str, outputs: ToolOutputs, report: ToolEnd, leaf: StepSetup) -> Iterator[Event]:
    """The steps of one use of a tool: those in its transcript, else as many as it counts, else its one command."""
    found = read_outputs(usage_format, outputs)
    if found is not None:
        yield from (event for event in found.events if event["type"] == "step")
    elif report.state == "exit":
        yield step(leaf.tool, "one command, which reports no steps")
    else:
        counted = report.turns if report.turns is not None else report.tool_calls
        for number in range(1, (counted or 0) + 1):
            yield step(leaf.tool, f"step {number} of {counted}, by its own count")


def _refuse_unmeasured(scenario: Scenario, setup: Setup, run: _Run, machine: Machine) -> None:
    """Raise where nothing was measured: a failure that is not the agent's would count against it.

    What a tool says of its failure may hold a credential, and errors are logged.
    """
    used, report = run.uses[-1], run.report
    last, traffic = used.process, used.traffic
    tried, clean = _tried(scenario, setup), machine.kit.redactor.redact_text
    if not used.whole:
        raise BenchError(tried, "the gateway to model APIs ended", "run it again")
    if last.cancelled:
        raise BenchError(tried, "it was interrupted", "run it again")
    if traffic is not None and traffic.cap is not None:
        raise BenchError(tried, traffic.cap, "raise it under spending in config.yaml")
    if traffic is not None and traffic.outage is not None:
        kind, said = traffic.outage
        raise BenchError(tried, f"the model or its API failed ({kind}): {clean(said)}", "run it again")
    if report.state == "error":
        kind = f" ({report.error_class})" if report.error_class else ""
        reason = clean(report.error or "no reason given")
        raise BenchError(tried, f"the model or its API failed{kind}: {reason}", "run it again")
    if last.timed_out:
        return
    if report.state == "none" or report.unreadable:
        reason = clean(report.unreadable or "no report")
        wrong = f"{setup.tool} ended with {describe_end(last)} and did not say how: {reason}"
        raise BenchError(tried, wrong, "look at what it printed (bench doctor)")
    if not run.events:
        wrong = f"{setup.tool} reports neither turns nor tool calls, so its steps are unknown"
        raise RefusedError(tried, wrong, "let it report turns, or use another tool")


def _without_tests(overlay: Overlay, before: Manifest) -> Overlay:
    """The overlay without changes of tests that were there at the start."""

    def kept(path: str) -> bool:
        return not (is_test(path) and path in before.entries)

    return replace(
        overlay,
        entries=tuple(entry for entry in overlay.entries if kept(entry.path)),
        deletions=tuple(path for path in overlay.deletions if kept(path)),
    )


def _check(machine: Machine, overlay: Overlay) -> Iterator[Event]:
    """Run every check that the finished tree calls for; each gives one item of evidence, passed or failed."""
    with machine.kit.workspaces.open(machine.base) as workspace:
        overlay.apply(workspace.place.tree)
        for check in checks_for(workspace.place.tree):
            passed = _passes(check, machine, workspace)
            yield {
                "type": "evidence",
                "text": label(check.name, passed=passed),
                "check": {"name": check.name, "passed": passed, "commands": check.commands},
            }


def _passes(check: HarnessCheck, machine: Machine, workspace: Workspace) -> bool:
    kit, place = machine.kit, workspace.place.scratch()
    for number, command in enumerate(check.commands):
        end = kit.sandbox.run(
            Command(("/bin/sh", "-c", command)),
            place,
            machine.limits,
            stdout=workspace.logs / f"{check.name}.{number}.stdout",
            stderr=workspace.logs / f"{check.name}.{number}.stderr",
            cancel=kit.cancel,
        )
        if end.cancelled:
            raise BenchError(f"running {check.name}", "it was interrupted", "run the scenario again")
        if end.exit_code != 0 or end.timed_out:
            return False
    return True


def _redacted(event: Event, machine: Machine) -> Event:
    clean = machine.kit.redactor.redact_text
    return {name: clean(value) if isinstance(value, str) else value for name, value in event.items()}
