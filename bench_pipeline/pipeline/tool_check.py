"""Trying a tool against a scripted model: whether an evaluation could use it, found out for nothing.

What belongs here: one use of a tool in an empty tree, and what of it worked. What does not: the model's words
(``execution.gateway.scripted``). The model asks for one command where the tool offers a shell, and is done then.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_pipeline.errors import BenchError, RefusedError
from bench_pipeline.pipeline.material import project_files
from bench_pipeline.pipeline.programs import program_problem

if TYPE_CHECKING:
    from aiohttp import web

    from bench_pipeline.evaluations import StepSetup
    from bench_pipeline.execution.gateway.scripted import Turn
    from bench_pipeline.execution.tool_use import ToolUse
    from bench_pipeline.pipeline.bench import Bench

PROMPT = "Run one command that you are told to run, change no file, and say that you are done."
# What the scripted model asks for, by the name of a tool's shell. The first words end a run of mini-swe-agent.
_COMMAND = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
_SHELLS = {"bash": "command", "Bash": "command", "exec_command": "cmd", "shell": "command"}
_WALL_S = 180.0


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; ``ok`` is None where nothing can be said."""

    check: str
    ok: bool | None
    found: str


@dataclass
class _Model:
    """The scripted model: how often it was asked, whether it called a shell, and was told what came of that."""

    asked: int = 0
    called: bool = False
    told: bool = False

    async def handle(self, request: "web.Request") -> "web.StreamResponse":
        from bench_pipeline.execution.gateway.scripted import send

        body = await request.json()
        turn = self._turn(body)
        self.asked += 1
        return await send(request, body, turn)

    def _turn(self, body: dict[str, Any]) -> "Turn":
        from bench_pipeline.execution.gateway.scripted import Turn

        shell = next((name for name in _tool_names(body) if name in _SHELLS), None)
        if shell is None or self.called:
            self.told = self.told or shell is not None
            return Turn(body["model"], self.asked, "Done; nothing was changed.")
        self.called = True
        return Turn(body["model"], self.asked, "As told.", [(shell, {_SHELLS[shell]: _COMMAND})])


def _tool_names(body: dict[str, Any]) -> Iterator[str]:
    for tool in body.get("tools") or ():
        yield str(tool.get("name") or (tool.get("function") or {}).get("name"))


def check_tool(bench: "Bench", name: str, model: str | None, effort: str | None) -> list[Finding]:
    """Try the tool ``name``, with the first of its models and efforts where none is named.

    Raises UsageError for a tool, model or effort that is not there, and RefusedError for a tool without a model API.
    """
    leaf = _leaf(bench, name, model, effort)
    definition = leaf.definition
    files = {name: project_files(bench, definition)[0]} if definition.files else {}
    missing = program_problem(bench, leaf, files)
    if missing is not None:
        return [Finding("program", ok=False, found=missing)]
    findings = [Finding("program", ok=True, found=definition.invoke.command[0])]
    findings.append(_version(bench, leaf))
    return [*findings, *_tried(bench, leaf, files.get(name))]


def _leaf(bench: "Bench", name: str, model: str | None, effort: str | None) -> "StepSetup":
    from bench_pipeline.evaluations import resolve_one
    from bench_pipeline.registry import ToolDefinition

    definition = bench.registry.tools.get(name)
    if isinstance(definition, ToolDefinition) and definition.models:
        model = model or next(iter(definition.models))
        known = definition.models.get(model)
        effort = effort or (next(iter(known.effort), None) if known is not None else None)
    leaves = resolve_one(bench.registry, name, model=model, effort=effort, options={}).leaves()
    if len(leaves) > 1 or not leaves[0].definition.model_apis:
        raise RefusedError(
            f"checking {name}", "it names no model_apis, so there is nothing to script", "see `bench doctor`"
        )
    return leaves[0]


def _version(bench: "Bench", leaf: "StepSetup") -> Finding:
    try:
        version = bench.environment.tool_version(leaf.definition, None)
    except BenchError as error:
        return Finding("version", ok=False, found=error.wrong)
    return Finding("version", ok=None if version is None else True, found=version or "the tool does not say")


def _tried(bench: "Bench", leaf: "StepSetup", files: Path | None) -> Iterator[Finding]:
    from bench_pipeline.execution.gateway import Gateway, Route, UpstreamSettings
    from bench_pipeline.execution.gateway.scripted import serving
    from bench_pipeline.execution.manifest import Exclusions, take_manifest
    from bench_pipeline.execution.overlay import capture
    from bench_pipeline.execution.sandbox import Mount
    from bench_pipeline.execution.sandbox.base import TOOL_FILES
    from bench_pipeline.execution.tool_use import use_tool

    scripted, empty = _Model(), bench.base_trees.get("empty", lambda _: None)
    exclude = Exclusions(leaf.definition.droppings, empty)
    with serving(scripted.handle) as url, bench.workspaces.open(empty) as workspace:
        place = workspace.place
        if files is not None:
            place = replace(place, mounts=(*place.mounts, Mount(files, TOOL_FILES)))
        before = take_manifest(place.tree, exclude)
        upstreams = {"scripted": UpstreamSettings(url, None, 8, None)}
        with Gateway(upstreams, {str(leaf.model_id): Route("scripted", None)}, first_wait_s=0.1) as gateway:
            used = use_tool(
                leaf,
                prompt=PROMPT,
                place=place,
                limits=bench.limits(None, wall_s=_WALL_S),
                kit=replace(bench.kit(), gateway=gateway),
                logs=workspace.logs,
                cell=uuid.uuid4().hex,
            )
        left = capture(place.tree, before, exclude).touched_paths()
        yield from _findings(used, scripted)
        yield Finding("tree", ok=not left, found=", ".join(left) or "nothing was left in it")


def _findings(used: "ToolUse", scripted: _Model) -> Iterator[Finding]:
    end, reported, traffic = used.process, used.reported, used.traffic
    assert traffic is not None
    how = "no end in time" if end.timed_out else f"exit status {end.exit_code}, signal {end.signal}"
    ran = not end.timed_out and end.exit_code in used.invocation.success_exit_codes
    said = used.process.stderr.read_bytes()[-300:].decode("utf-8", "replace").strip()
    yield Finding("run", ok=ran, found=f"{how}, {end.duration_s:.1f} s{'' if ran else f': {said}'}")
    apis = ", ".join(sorted({each.api for each in traffic.exchanges}))
    refused = f"; refused: {'; '.join(dict.fromkeys(traffic.refused))}" if traffic.refused else ""
    requests = f"{len(traffic.exchanges)} requests to {apis or 'no API'}{refused}"
    yield Finding("model", ok=bool(traffic.answered) and not traffic.refused, found=requests)
    ended = reported.state == "completed"
    yield Finding(
        "command",
        ok=(scripted.told or ended) if scripted.called else None,
        found=f"{reported.tool_calls} tool calls reported"
        if scripted.called
        else "it offers no shell that is known here",
    )
    yield Finding("end", ok=ended, found=f"{reported.state}{f': {reported.error}' if reported.error else ''}")
    yield _usage(used)
    yield Finding("processes", ok=not end.orphans, found=f"{end.orphans} left behind")


def _usage(used: "ToolUse") -> Finding:
    document = used.traffic_document() or {}
    difference = document["difference"]
    assert isinstance(difference, dict)
    off = {name: value for name, value in difference.items() if value}
    unknown = [name for name, value in difference.items() if value is None]
    if off:
        return Finding(
            "usage", ok=None, found=f"it reports {off} against what was counted, which is what counts"
        )
    if unknown:
        return Finding(
            "usage", ok=None, found=f"it does not report {', '.join(unknown)}; what was counted is"
        )
    return Finding("usage", ok=True, found="it reports what was counted")
