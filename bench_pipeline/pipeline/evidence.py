"""What a try of a cell left behind: the list of it, and one piece in full.

What belongs here: which pieces each try has, and choosing one. What does not: the rest of what is known of a cell
(``explaining``), and how a piece is shown (``cli``).
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bench_pipeline.documents import nearest
from bench_pipeline.errors import NotFoundError

if TYPE_CHECKING:
    from bench_pipeline.execution.gateway.recordings import Exchange
    from bench_pipeline.store import Store

Kind = Literal["try", "replay"]


@dataclass(frozen=True)
class Evidence:
    """One piece: the try that it is from (the oldest is 1), its name, and its content."""

    identity: str
    number: int
    name: str
    digest: str
    data: bytes

    def document(self) -> dict[str, object]:
        """As JSON: ``text`` where the content is UTF-8, else ``base64``."""
        try:
            content = {"text": self.data.decode("utf-8"), "base64": None}
        except UnicodeDecodeError:
            content = {"text": None, "base64": base64.b64encode(self.data).decode("ascii")}
        head = {"identity": self.identity, "try": self.number, "name": self.name, "digest": self.digest}
        return {**head, "bytes": len(self.data), **content}


def listed(store: "Store", artifacts: Mapping[str, str]) -> list[dict[str, object]]:
    """The pieces of one try by name; ``bytes`` is None where the store is not on this machine."""
    rows: list[dict[str, object]] = []
    for name, digest in sorted(artifacts.items()):
        path = store.artifacts.path(digest)
        rows.append({"name": name, "digest": digest, "bytes": path.stat().st_size if path else None})
    return rows


def piece(
    store: "Store", identity: str, name: str, number: int | None = None, *, kind: Kind = "try"
) -> Evidence:
    """The piece ``name`` of a cell, from the try (or replay) ``number`` or from the newest one that has it.

    Raises:
        NotFoundError: there is no such try, or it has no such piece; names those that there are.
    """
    history = (store.verdicts if kind == "try" else store.replays).history(identity)["artifacts"]
    tries = [dict(artifacts or ()) for artifacts in history.to_pylist()]
    if number is not None:
        refuse_unknown_try(identity, number, len(tries), kind)
    wanted = [number] if number is not None else range(len(tries), 0, -1)
    found = next((place for place in wanted if name in tries[place - 1]), None)
    if found is None:
        known = sorted({piece for place in wanted for piece in tries[place - 1]})
        where = f"no {kind} has it" if number is None else f"{kind} {number} does not have it"
        close = nearest(name, known)
        hint = f"did you mean {close}? " if close else ""
        raise NotFoundError(
            f"opening the evidence {name} of the cell {identity[:12]}",
            where,
            f"{hint}known: {', '.join(known) or 'none'}",
        )
    digest = tries[found - 1][name]
    return Evidence(identity, found, name, digest, store.artifacts.get(digest))


@dataclass(frozen=True)
class RecordingOf:
    """What one step of a try asked its model and was answered, in the order in which it asked."""

    identity: str
    number: int
    exchanges: tuple["Exchange", ...]


def recording_of(store: "Store", identity: str, step: str, number: int | None = None) -> RecordingOf:
    """The recording of a step, from the try ``number`` or the newest try that has one. Raises NotFoundError."""
    from bench_pipeline.execution.gateway.recordings import unpack

    found = piece(store, identity, f"{step}.recording", number)
    exchanges = sorted(unpack(found.data)[1], key=lambda each: each.number)
    return RecordingOf(identity, found.number, tuple(exchanges))


def body(recording: RecordingOf, which: Literal["request", "answer"], number: int) -> Evidence:
    """One body of a recording. Raises NotFoundError."""
    for each in recording.exchanges:
        if each.number == number:
            data = each.request if which == "request" else each.answer
            digest = str(each.summary()[f"{which}_sha256"])
            return Evidence(recording.identity, recording.number, f"{which} {number}", digest, data)
    there = ", ".join(str(each.number) for each in recording.exchanges) or "none"
    raise NotFoundError(
        f"opening {which} {number} of the cell {recording.identity[:12]}",
        "its recording does not have it",
        f"recorded: {there}",
    )


def refuse_unknown_try(identity: str, number: int, tries: int, kind: Kind = "try") -> None:
    """Raise NotFoundError unless a cell with so many tries, or replays, has one of this number."""
    if number > tries:
        many, done = {"try": ("tries", "tried"), "replay": ("replays", "replayed")}[kind]
        there = {0: f"it was never {done}", 1: f"it was {done} once"}.get(
            tries, f"it has the {many} 1 to {tries}"
        )
        raise NotFoundError(
            f"opening {kind} {number} of the cell {identity[:12]}", there, f"{many} count from 1, the oldest"
        )
