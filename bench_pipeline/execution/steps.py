"""The tool part of a cell: one step after another in one tree, within the cell's time, fail fast.

A setup without a workflow is one step. What belongs here: running the steps and adding up what they did. What
does not: the tree before and after (``cell``), command lines (``invocation``), outcomes (``outcome``).
"""

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from bench_pipeline.errors import RefusedError
from bench_pipeline.evaluations import StepSetup
from bench_pipeline.execution.gateway import Traffic
from bench_pipeline.execution.gateway.recordings import MEDIA
from bench_pipeline.execution.invocation import Invocation
from bench_pipeline.execution.job import CellJob, Kit
from bench_pipeline.execution.manifest import take_manifest
from bench_pipeline.execution.outcome import CellFacts
from bench_pipeline.execution.overlay import capture, overlay_from_patch
from bench_pipeline.execution.record import StepUse, Usage
from bench_pipeline.execution.recording import Recording, scope_of
from bench_pipeline.execution.sandbox import Command, Mount, Place, ProcessEnd
from bench_pipeline.execution.tool_use import ToolUse, use_tool
from bench_pipeline.execution.usage import ToolEnd, merge_ends
from bench_pipeline.execution.verification import describe_end
from bench_pipeline.execution.workspace import Workspace
from bench_pipeline.identity import canonical_json
from bench_pipeline.tasks import PatchError
from bench_pipeline.tasks.trees import TreeFile

TOOL_FILES = "/opt/tool"
# A handover is notes between steps; more files than this are not evidence.
_MAX_HANDOVER_FILES = 200


@contextmanager
def timed(phases: dict[str, float], name: str) -> Iterator[None]:
    """Add the seconds that the block takes to ``phases[name]``."""
    started = time.monotonic()
    try:
        yield
    finally:
        phases[name] = phases.get(name, 0.0) + time.monotonic() - started


@dataclass
class Steps:
    """The steps of one cell while they run, and what is known of them so far."""

    job: CellJob
    workspace: Workspace
    kit: Kit
    facts: CellFacts = field(default_factory=CellFacts)
    uses: list[StepUse] = field(default_factory=list)
    ends: list[ProcessEnd] = field(default_factory=list)
    phases: dict[str, float] = field(default_factory=dict)
    artifacts: dict[str, str] = field(default_factory=dict)
    recording: Recording = field(init=False)
    started: bool = False  # a tool really ran, whatever came of it
    _cell: str = field(default_factory=lambda: uuid.uuid4().hex)

    def run(self, leaves: Sequence[StepSetup]) -> None:
        """Run the steps in order until one does not end well, then the commands that follow the tools."""
        deadline = time.monotonic() + self.job.limits.wall_s
        posts: list[str] = []
        place = self.workspace.place
        self.recording = Recording(self.kit, scope_of(self.kit, place, leaves))
        self.recording.open(self.job, leaves, place)
        try:
            if self._each(leaves, deadline, posts):
                self._post(posts)
        except BaseException:
            # Without its end it shows what was done, and that it is not all.
            self.artifacts.update(self.recording.kept())
            raise
        self.artifacts.update(self.recording.close())

    def _each(self, leaves: Sequence[StepSetup], deadline: float, posts: list[str]) -> bool:
        """Run the steps in order; whether all went well."""
        for number, leaf in enumerate(leaves):
            if number:
                self.workspace.renew_home()
            with timed(self.phases, f"tool.{leaf.name}" if leaf.name else "tool"):
                if leaf.definition.invoke.replay is not None:
                    went_well = self._replay(leaf)
                else:
                    went_well = self._call(leaf, deadline, posts)
            if not went_well:
                return False
        return True

    def usage(self) -> Usage:
        """What all steps used together."""
        last = self.ends[-1] if self.ends else None
        return Usage.of(
            end=self.facts.end,
            steps=self.uses,
            exit_code=last.exit_code if last else None,
            signal=last.signal if last else None,
            duration_s=sum(end.duration_s for end in self.ends) if self.ends else None,
            orphans=sum(end.orphans for end in self.ends) if self.ends else None,
        )

    def _call(self, leaf: StepSetup, deadline: float, posts: list[str]) -> bool:
        """Run one step's command; returns whether the next step may start."""
        place, logs = self._place(leaf), self.workspace.logs
        handed = take_manifest(place.handover) if place.handover is not None else None
        remaining = max(deadline - time.monotonic(), 0.0)
        wall = remaining if leaf.timeout_s is None else min(leaf.timeout_s, remaining)
        name = leaf.name or "tool"
        self.recording.start(name, leaf)
        try:
            used = use_tool(
                leaf,
                prompt=self.job.task.prompt,
                place=place,
                limits=replace(self.job.limits, wall_s=wall),
                kit=self.kit,
                logs=logs,
                cell=self._cell,
                replayed=self.job.recordings.get(name) if self.job.recordings is not None else None,
            )
        except RefusedError as error:
            self.facts = replace(self.facts, precondition=error.wrong)
            return False
        posts += used.invocation.post
        self.started = True
        used = replace(used, reported=self._without_secrets(used.reported))
        self._take_end(leaf, used, wall < remaining)
        self._keep_outputs(name, used)
        if used.traffic is not None:
            self.recording.connections(name, used.traffic)
        self.recording.end(name, used.process, used.invocation.usage_format, used.outputs)
        if place.handover is not None and handed is not None:
            self._keep_handover(name, capture(place.handover, handed).entries)
        return self._ended_well(used.invocation, used.process)

    def _without_secrets(self, parsed: ToolEnd) -> ToolEnd:
        """A tool may quote in its last words what it was given; reasons are made of them."""

        def redacted(said: str | None) -> str | None:
            return None if said is None else self.kit.redactor.redact_text(said)

        return replace(
            parsed,
            error=redacted(parsed.error),
            final_text=redacted(parsed.final_text),
            unreadable=redacted(parsed.unreadable),
        )

    def _take_end(self, leaf: StepSetup, used: ToolUse, own_time: bool) -> None:
        """Add one step's end to the facts; ``own_time``: the step's own timeout was the shorter one."""
        end, traffic = used.process, used.traffic
        self.ends.append(end)
        self.uses.append(StepUse(leaf.model_id, used.end, traffic))
        gone = end.cancelled and not self.kit.cancel.is_set()
        self.facts = replace(
            self.facts,
            cancelled=end.cancelled and not gone,
            infrastructure="the gateway to model APIs ended" if gone or not used.whole else None,
            end=merge_ends([use.end for use in self.uses]),
            exit_code=end.exit_code,
            signal=end.signal,
            success_exit_codes=used.invocation.success_exit_codes,
            timed_out=end.timed_out,
            timed_out_step=leaf.name if end.timed_out and own_time else None,
            killed_for=end.killed_for,
            cap=traffic.cap if traffic is not None else None,
            outage=traffic.outage if traffic is not None else None,
            diverged=_divergence(traffic, end) if traffic is not None else None,
        )

    def _ended_well(self, invocation: Invocation, end: ProcessEnd) -> bool:
        parsed, facts = self.uses[-1].end, self.facts
        stopped = end.cancelled or end.timed_out or end.killed_for is not None or end.signal is not None
        reasons = (facts.infrastructure, facts.cap, facts.outage, facts.diverged)
        cut_off = any(reason is not None for reason in reasons)
        by_status = parsed.state != "exit" or end.exit_code in invocation.success_exit_codes
        well = by_status and parsed.state not in {"error", "none"} and not parsed.unreadable
        return well and not stopped and not cut_off

    def _replay(self, leaf: StepSetup) -> bool:
        """Deliver a recorded patch into the tree as it is now."""
        patch = self.job.predictions.get(leaf.name)
        if patch is None:
            self.facts = replace(self.facts, precondition=f"no row for the task {self.job.task.id}")
            return False
        self.started = True
        self.uses.append(StepUse(leaf.model_id, ToolEnd("completed")))
        self.facts = replace(self.facts, end=merge_ends([use.end for use in self.uses]))
        try:
            overlay_from_patch(self.workspace.place.tree, patch).apply(self.workspace.place.tree)
        except PatchError as error:
            self.facts = replace(self.facts, patch_problem=error.wrong)
            return False
        return True

    def _post(self, commands: Sequence[str]) -> None:
        """Run what options ask for after the tool; a failure is ours, not the tool's."""
        for number, command in enumerate(dict.fromkeys(commands)):
            logs = self.workspace.logs
            end = self.kit.sandbox.run(
                Command(("/bin/sh", "-c", command)),
                replace(self.workspace.place, handover=None),
                self.job.limits,
                stdout=logs / f"post.{number}.stdout",
                stderr=logs / f"post.{number}.stderr",
                cancel=self.kit.cancel,
            )
            if end.cancelled:
                self.facts = replace(self.facts, cancelled=True)
                return
            if end.timed_out or end.exit_code != 0:
                how = "no end in time" if end.timed_out else describe_end(end)
                self.facts = replace(self.facts, infrastructure=f"post[{number}] ended with {how}")
                return

    def _place(self, leaf: StepSetup) -> Place:
        """The workspace as this step sees it: with the files of its tool, and the handover of a workflow."""
        place = self.workspace.place
        files = self.job.tool_files.get(leaf.tool)
        mounts = (*place.mounts, Mount(files, TOOL_FILES)) if files is not None else place.mounts
        return replace(place, mounts=mounts, handover=place.handover if leaf.name else None)

    def _keep_outputs(self, name: str, used: ToolUse) -> None:
        outputs, traffic = used.outputs, used.traffic_document()
        self.artifacts[f"{name}.stdout"] = self.kit.keep(outputs.stdout, "text/plain")
        self.artifacts[f"{name}.stderr"] = self.kit.keep(outputs.stderr, "text/plain")
        for kind in outputs.files:
            data = outputs.read(kind)
            if data is not None:
                self.artifacts[f"{name}.{kind}"] = self.kit.keep(data, "text/plain")
        if used.recording is not None:
            self.artifacts[f"{name}.recording"] = self.kit.keep_exactly(used.recording, MEDIA)
        if traffic is not None:
            self.artifacts[f"{name}.traffic"] = self.kit.keep(canonical_json(traffic), "application/json")

    def _keep_handover(self, name: str, entries: Sequence[TreeFile]) -> None:
        for entry in entries[:_MAX_HANDOVER_FILES]:
            path = self.kit.redactor.redact_text(entry.path)
            self.artifacts[f"{name}.handover/{path}"] = self.kit.keep(entry.content, "text/plain")


def _divergence(traffic: Traffic, end: ProcessEnd) -> str | None:
    """Where a replay left its recording. A tool that was stopped has asked less than was recorded for that alone."""
    stopped = end.cancelled or end.timed_out or end.killed_for is not None
    return traffic.diverged or (None if stopped else traffic.unasked)
