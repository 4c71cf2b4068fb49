"""Whether the programs of tools are where cells look for them, asked before anything is spent.

What belongs here: what a definition says about its program's place, and the refusal of a run. What does not:
looking into the sandbox (``environment``), and what else a tool needs (credentials and network: ``execution``).
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.errors import NotFoundError
from bench_pipeline.execution.sandbox.base import SEARCH_PATH
from bench_pipeline.pipeline.replaying import REPLAY
from bench_pipeline.registry.placeholders import placeholders

if TYPE_CHECKING:
    from bench_pipeline.evaluations import StepSetup
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.planning import Plan

_SHIPPED = "{files}/"


def refuse_missing_programs(bench: "Bench", plan: "Plan", actions: pa.Table) -> None:
    """Raise NotFoundError, naming each tool, when a cell that would run a tool could not start its program.

    The whole run is refused, cells of other setups too: half of an evaluation compares nothing.
    """
    problems: dict[str, str] = {}
    for leaf, tool_files in leaves_to_run(plan, actions, ("run", REPLAY)):
        problem = program_problem(bench, leaf, tool_files)
        if problem is not None:
            problems.setdefault(leaf.tool, problem)
    if problems:
        listed = "\n  ".join(problems[tool] for tool in sorted(problems))
        raise NotFoundError("starting tools", f"programs are not where cells look for them\n  {listed}")


def leaves_to_run(
    plan: "Plan", actions: pa.Table, which: Sequence[str] = ("run",)
) -> "Iterator[tuple[StepSetup, Mapping[str, Path]]]":
    """Each use of a tool in the cells with one of these actions, with the project files of the tools of its setup."""
    to_run = actions.filter(pc.is_in(actions["action"], value_set=pa.array(which, pa.string())))
    for row in to_run.group_by(["evaluation", "setup_digest"]).aggregate([]).to_pylist():
        planned = plan.setups[row["evaluation"], row["setup_digest"]]
        for leaf in planned.setup.leaves():
            yield leaf, planned.tool_files


def program_problem(bench: "Bench", leaf: "StepSetup", tool_files: Mapping[str, Path]) -> str | None:
    """Why the program of one use of a tool cannot be started in a cell, with what to do; None when it can.

    None also where only the task's tree decides: a program named by a path in it.
    """
    definition = leaf.definition
    if not definition.invoke.command:
        return None
    program, path = definition.invoke.command[0], _search_path(leaf)
    shipped = program.startswith(_SHIPPED)
    in_tree = "/" in program and not program.startswith(("/", _SHIPPED))
    if in_tree or placeholders([program.removeprefix(_SHIPPED), path]):
        return None
    if bench.environment.has_program(program, path, tool_files.get(definition.name)):
        return None
    if shipped:
        where, remedy = "among its files", "list it under `files:` and make it executable (chmod +x)"
    else:
        where = "there" if program.startswith("/") else f"in {path}"
        remedy = (
            "install it below /usr/local/bin or /usr/bin, or ship it with the project: list it under `files:` and "
            f"start {_SHIPPED}{program.rpartition('/')[2]}"
        )
    sandbox = bench.sandbox.name
    return f"{definition.name}: {program} is no executable file {where} in the {sandbox} sandbox: {remedy}"


def _search_path(leaf: "StepSetup") -> str:
    """The PATH that the tool is started with: its own where it sets one."""
    set_by = [leaf.definition.invoke.env, *(effect.env for effect in leaf.effects().values())]
    return next((env["PATH"] for env in reversed(set_by) if "PATH" in env), SEARCH_PATH)
