"""The journal of one executed cell, and the summary of its activity.

A journal is what the tools' transcripts show, between the sandbox's own records.
What belongs here: writing both and keeping them as artifacts. What does not: parsing transcripts
(``transcripts``) and what is made of a journal (``attestation``).
"""

import io
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from bench_pipeline.attestation.scope import Scope, is_below
from bench_pipeline.evaluations import StepSetup
from bench_pipeline.execution.gateway import Traffic
from bench_pipeline.execution.invocation import hosts_of
from bench_pipeline.execution.job import CellJob, Kit
from bench_pipeline.execution.sandbox import Place, ProcessEnd
from bench_pipeline.execution.transcripts import Event, Shows, transcript_of
from bench_pipeline.execution.usage import NO_PARSER, ToolOutputs
from bench_pipeline.identity import canonical_json
from bench_pipeline.journal import CLOSE, OPEN, JournalWriter

# What every program needs to run; a sandbox shows them read-only.
_SYSTEM: Final = (
    "/bin", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/proc", "/run", "/sbin", "/sys", "/tmp",  # noqa: S108
    "/usr", "/var",
)  # fmt: skip
# A server that the agent starts for itself; nothing else listens in a network of its own.
_LOOPBACK: Final = "localhost:*"
_MAX_PATHS: Final = 10_000


class Recording:
    """Writes the journal of a cell while it runs, with the values of credentials taken out."""

    def __init__(self, kit: Kit, scope: Scope) -> None:
        self._kit = kit
        self._scope = scope
        self._stream = io.BytesIO()
        self._writer = JournalWriter(self._stream)
        self._read: list[str] = []
        self._written: list[str] = []
        self._commands = 0
        self._shows: list[Shows] = []

    def open(self, job: CellJob, leaves: Sequence[StepSetup], place: Place | None = None) -> None:
        """The session begins: what the sandbox shows and allows, as it is now."""
        shows = [_shows(leaf) for leaf in leaves]
        told = all(each.expected for each in shows)
        self._writer.append(
            OPEN,
            {
                "run": job.run_key,
                "task": job.task.id,
                "tools": [leaf.tool for leaf in leaves],
                "sandbox": self._kit.sandbox.policy(),
                "network": "none" if self._kit.sandbox.isolates else "host",
                "mounts": [] if place is None else [mount.inside for mount in place.mounts],
                "limits": {name: value for name, value in asdict(job.limits).items() if value is not None},
                "scope": self._scope.document(),
                "expected": sorted({kind for each in shows for kind in each.expected}) if told else None,
            },
        )

    def start(self, name: str, leaf: StepSetup) -> None:
        """A tool's command begins."""
        self._writer.append("start", {"step": name, "tool": leaf.tool})

    def connections(self, name: str, traffic: Traffic) -> None:
        """What the gateway let through for a tool, and what it did not, by its own account."""
        for each in traffic.exchanges:
            how = {"api": each.api, "model": each.model, "upstream": each.upstream, "status": each.status}
            self._writer.append("connection", {"step": name, "allowed": True, **how})
        for why in traffic.refused:
            clean = self._kit.redactor.redact_text(why)
            self._writer.append("connection", {"step": name, "allowed": False, "why": clean})

    def end(self, name: str, end: ProcessEnd, usage_format: str, outputs: ToolOutputs) -> None:
        """A tool's command has ended: what its transcript shows, and how it ended by the sandbox's account."""
        transcript = transcript_of(usage_format)
        self._shows.append(transcript.shows)
        for event in transcript.events(outputs):
            self._take(event)
        self._writer.append(
            "exit",
            {
                "step": name,
                "exit_code": end.exit_code,
                "signal": end.signal,
                "timed_out": end.timed_out,
                "cancelled": end.cancelled,
                "killed_for": end.killed_for,
                "orphans": end.orphans,
                "duration_s": end.duration_s,
                "cut_bytes": end.stdout_cut,
            },
        )

    def close(self) -> dict[str, str]:
        """The session ends; the digests of what was kept, by name."""
        self._writer.append(CLOSE, {})
        return self.kept()

    def kept(self) -> dict[str, str]:
        """Keep the journal as it is and the summary; without a close it is an incomplete one."""
        keep = self._kit.keep_exactly
        return {
            "journal": keep(self._stream.getvalue(), "application/jsonl"),
            "activity": keep(canonical_json(self._summary()), "application/json"),
        }

    def _take(self, event: Event) -> None:
        clean = self._kit.redactor.redact_text
        payload = {
            name: clean(value.encode("utf-8", "replace").decode()) if isinstance(value, str) else value
            for name, value in event.payload.items()
        }
        self._writer.append(event.kind, payload)
        path = payload.get("path")
        inside = self._scope.relative(path) if isinstance(path, str) and path else None
        if inside is not None and payload.get("failed") is not True:
            if event.kind == "read":
                self._read.append(inside)
            elif event.kind == "write":
                self._written.append(inside)
        self._commands += event.kind == "command"

    def _summary(self) -> dict[str, object]:
        """What the transcripts name of files and commands; null where a format cannot tell."""
        shows = self._shows
        return {
            "schema": 1,
            "files_read": _distinct(self._read) if shows and all(each.reads for each in shows) else None,
            "files_written": _distinct(self._written)
            if shows and all(each.writes for each in shows)
            else None,
            "commands": self._commands if shows and all(each.commands for each in shows) else None,
        }


def scope_of(kit: Kit, place: Place, leaves: Sequence[StepSetup]) -> Scope:
    """What a cell in this place may look at, with every folder resolved now, and what its tools may reach."""
    view = kit.sandbox.view(place)
    allowed = {host for leaf in leaves for host in hosts_of(leaf.definition, leaf.effects().values())}
    own = tuple(path for path in (view.home, view.tmp, view.handover, view.files) if path is not None)
    roots = _spellings(view.tree, resolve=not kit.sandbox.isolates)
    denied = dict.fromkeys(name for path in kit.denied for name in _spellings(str(path), resolve=True))
    if kit.sandbox.isolates:
        # What these paths name inside is the cell's own, whatever the host has there.
        denied = {path: None for path in denied if not any(is_below(path, each) for each in (*roots, *own))}
    return Scope(
        roots=roots,
        readable=(*own, *_SYSTEM),
        denied=tuple(denied),
        endpoints=(_LOOPBACK, *(f"{host}:443" for host in sorted(allowed))),
        home=view.home,
    )


def recording_of_delivery(job: CellJob, leaf: StepSetup, kit: Kit) -> dict[str, str]:
    """The journal of a candidate that no tool worked on: a session in which nothing was run."""
    recording = Recording(kit, Scope(roots=()))
    recording.open(job, [leaf])
    return recording.close()


def _spellings(path: str, *, resolve: bool) -> tuple[str, ...]:
    """The path resolved, then as it is; inside a sandbox it means another folder than here."""
    return tuple(dict.fromkeys((os.path.realpath(path), path))) if resolve else (path,)


def _shows(leaf: StepSetup) -> Shows:
    usage = leaf.definition.usage
    return transcript_of(usage.format if usage is not None else NO_PARSER).shows


def _distinct(paths: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(paths))[:_MAX_PATHS]
