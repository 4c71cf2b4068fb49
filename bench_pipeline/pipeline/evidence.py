"""What a try of a cell left behind: the list of it, and one piece in full.

What belongs here: which pieces each try has, and choosing one. What does not: the rest of what is known of a cell
(``explaining``), and how a piece is shown (``cli``).
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench_pipeline.documents import nearest
from bench_pipeline.errors import NotFoundError

if TYPE_CHECKING:
    from bench_pipeline.store import Store


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


def piece(store: "Store", identity: str, name: str, number: int | None = None) -> Evidence:
    """The piece ``name`` of a cell, from the try ``number`` or from the newest try that has it.

    Raises:
        NotFoundError: there is no such try, or it has no such piece; names those that there are.
    """
    history = store.verdicts.history(identity)["artifacts"]
    tries = [dict(artifacts or ()) for artifacts in history.to_pylist()]
    if number is not None:
        refuse_unknown_try(identity, number, len(tries))
    wanted = [number] if number is not None else range(len(tries), 0, -1)
    found = next((place for place in wanted if name in tries[place - 1]), None)
    if found is None:
        known = sorted({piece for place in wanted for piece in tries[place - 1]})
        where = "no try has it" if number is None else f"try {number} does not have it"
        close = nearest(name, known)
        hint = f"did you mean {close}? " if close else ""
        raise NotFoundError(
            f"opening the evidence {name} of the cell {identity[:12]}",
            where,
            f"{hint}known: {', '.join(known) or 'none'}",
        )
    digest = tries[found - 1][name]
    return Evidence(identity, found, name, digest, store.artifacts.get(digest))


def refuse_unknown_try(identity: str, number: int, tries: int) -> None:
    """Raise NotFoundError unless a cell with so many tries has one of this number."""
    if number > tries:
        there = {0: "it was never tried", 1: "it was tried once"}.get(tries, f"it has the tries 1 to {tries}")
        raise NotFoundError(
            f"opening try {number} of the cell {identity[:12]}", there, "tries count from 1, the oldest"
        )
