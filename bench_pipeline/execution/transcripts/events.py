"""The shape that all transcripts are read into.

What belongs here: an event, and what a format can show. What does not: any particular format.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from bench_pipeline.execution.usage.reading import Object, ToolOutputs

# What stands for a web search of the model's provider, which has no address of its own.
WEB_SEARCH = "web_search"


@dataclass(frozen=True)
class Event:
    """One thing that an agent did or got.

    ``kind`` is a type of journal row; ``payload`` may hold ``text``, ``path`` and ``url`` as the tool gave them,
    ``call`` (the same for a call and its result), ``of`` (the tool's name for it) and ``failed``.
    """

    kind: str
    payload: Object


@dataclass(frozen=True)
class Shows:
    """What a format can tell: row types of which a run has at least one, and which activity it names reliably."""

    expected: tuple[str, ...]
    reads: bool = False
    writes: bool = False
    commands: bool = False


@dataclass(frozen=True)
class Transcript:
    """What a format shows, and how its events are read; reading raises for nothing that a tool wrote."""

    shows: Shows
    events: Callable[[ToolOutputs], Iterator[Event]] = field(repr=False)


def raw(value: object) -> str:
    """The value as text, uncut; anything but text is empty."""
    return value if isinstance(value, str) else ""


def texts_in(value: object) -> str:
    """Every text of a JSON value but the ``type`` of its blocks, one after another."""
    found: list[str] = []
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, list):
            left += reversed(item)
        elif isinstance(item, dict):
            left += [part for name, part in reversed(item.items()) if name != "type"]
    return "\n".join(found)
