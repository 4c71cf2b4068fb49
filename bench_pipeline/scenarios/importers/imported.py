"""What every importer gives, whatever the transcript was.

What belongs here: the shape, and the counting of what could not be mapped. What does not: any format. The words of an
agent and the output of commands that it chose to run are no evidence: an importer makes steps, the artifact, usage and
the end, and evidence is what a harness adds.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bench_pipeline.execution.usage import ToolEnd, ToolOutputs
from bench_pipeline.execution.usage.reading import MAX_TEXT

Event = Mapping[str, object]


@dataclass(frozen=True)
class Transcript:
    """A transcript to read: the files that a tool left, and which of several runs is meant (``sample[/epoch]``)."""

    outputs: ToolOutputs
    which: str | None = None


@dataclass(frozen=True)
class Imported:
    """What a transcript says of one run.

    ``end`` is None when the transcript does not say how the run ended, as after a kill. ``failure`` is what the model
    or its API failed with: such a run measured nothing. ``unmapped`` lists what has no place in a trace.
    """

    harness: str
    model: str | None
    started_at: str | None
    events: tuple[Event, ...]
    end: Event | None
    unmapped: tuple[str, ...]
    failure: str | None = None


Reader = Callable[[Transcript], Imported]


@dataclass
class Unmapped:
    """Counts what an importer passes over, by a name for people."""

    counts: Counter[str] = field(default_factory=Counter)

    def add(self, what: str) -> None:
        """One more of ``what``."""
        self.counts[what] += 1

    def listed(self, *more: str) -> tuple[str, ...]:
        """All of them in words, and ``more``, in order."""
        return (*(f"{what}: {count}" for what, count in sorted(self.counts.items())), *more)


def step(tool: str | None, summary: str, time: str | None = None) -> Event:
    """A step: a tool that was called, or an answer without one."""
    return {"type": "step", "time": time, "tool": tool, "summary": shortened(summary)}


def closing(end: ToolEnd) -> tuple[Event, ...]:
    """The artifact and the usage of a run, as its tool reports them; nothing where it reports nothing."""
    events: list[Event] = []
    if end.final_text:
        cut = "\n[cut: the answer is longer]" if len(end.final_text) >= MAX_TEXT else ""
        events.append({"type": "artifact", "text": end.final_text + cut})
    tokens = end.tokens
    parts = (tokens.input, tokens.cache_read, tokens.cache_write)
    known = [part for part in parts if part is not None]
    if tokens.input is not None and tokens.output is not None:
        events.append({"type": "usage", "prompt_tokens": sum(known), "completion_tokens": tokens.output})
    return tuple(events)


def ended(end: ToolEnd) -> bool:
    """Whether a tool says how its run ended, well or not."""
    return end.state in {"completed", "limit", "error"} and end.unreadable is None


def failure(end: ToolEnd) -> str | None:
    """What the model or its API failed with, by the tool's account."""
    return (end.error or "no reason given") if end.state == "error" else None


# A line of a list; the whole of it is in the transcript.
_SUMMARY = 200


def shortened(text: str) -> str:
    """A summary on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _SUMMARY else line[: _SUMMARY - 3] + "..."


def from_epoch(seconds: object) -> str | None:
    """A time given as seconds since 1970, as traces write it; None for anything else."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    try:
        at = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


def from_iso(text: object) -> str | None:
    """A time given with its zone, in UTC as traces write it; None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        at = datetime.fromisoformat(text)
        return (
            None
            if at.tzinfo is None
            else at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        )
    except (ValueError, OverflowError):
        return None
