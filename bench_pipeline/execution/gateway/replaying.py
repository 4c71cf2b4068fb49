"""Answering from a recording: the same answers in the same order for the same requests, or where that ends.

What belongs here: finding the recorded request that a request is, and saying how the nearest one differs where there is
none. What does not: HTTP (``door``), and what makes two requests the same (``masking``).

Requests are not matched by their place in the recording. Each holds its whole conversation so far, so one that is the
same comes at the same point of the same conversation, while conversations that go on side by side (a title, a commit
message, a sub-agent) may take turns in another order. Requests that are the same get their answers in the order in
which they were recorded.
"""

import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from bench_pipeline.execution.gateway.apis import APIS
from bench_pipeline.execution.gateway.ledger import main_requests
from bench_pipeline.execution.gateway.masking import Masks, differences, digest
from bench_pipeline.execution.gateway.recordings import Exchange
from bench_pipeline.execution.usage.reading import Object, items, mapping

# Where the APIs keep a conversation.
_CONVERSATION: Final = tuple(dict.fromkeys(api.messages for api in APIS))


class DivergedError(Exception):
    """A request that is not in the recording; its text says which, and where it differs."""


class Replay:
    """A recording that is being replayed, for one use of a tool.

    Args:
        exchanges: reads what was recorded, each time that it is called; requests are not kept in memory.
        recorded: the masks for it.
        now: the masks for what is asked now; only the cell's folders are others.
    """

    def __init__(self, exchanges: Callable[[], Iterable[Exchange]], recorded: Masks, now: Masks) -> None:
        self._exchanges, self._recorded, self._now = exchanges, recorded, now
        self._asked = 0
        self._offering: dict[int, bool] = {}
        found: dict[tuple[str, str], list[Exchange]] = defaultdict(list)
        for each in exchanges():
            masked = self._masked(each)
            found[each.path, digest(masked)].append(replace(each, request=b""))
            self._offering[each.number] = bool(masked.get("tools"))
        self._waiting = {
            key: deque(sorted(same, key=lambda each: each.number)) for key, same in found.items()
        }

    def answer(self, path: str, request: Object) -> Exchange:
        """The recorded exchange whose answer ``request`` gets. Raises DivergedError."""
        self._asked += 1
        masked = self._now(request)
        waiting = self._waiting.get((path, digest(masked)))
        if not waiting:
            raise DivergedError(f"request {self._asked} {self._why(path, masked)}")
        return waiting.popleft()

    def unasked(self) -> str | None:
        """The first recorded request that was not asked again, in words; None when all that matter were.

        Whether a side request is asked at all may depend on how fast the tool ends.
        """
        missing = sorted(self._left().intersection(main_requests(self._offering)))
        if not missing:
            return None
        return f"request {missing[0]} of the {len(self._offering)} in the recording was not asked again"

    def _left(self) -> set[int]:
        return {each.number for waiting in self._waiting.values() for each in waiting}

    def _masked(self, each: Exchange) -> Object:
        return self._recorded(mapping(json.loads(each.request)))

    def _why(self, path: str, masked: Object) -> str:
        """How a request that is not in the recording differs from the one that it shares most with."""
        left, ours = self._left(), _conversation(masked)

        def likeness(each: Exchange) -> tuple[bool, int, bool, int]:
            theirs = _conversation(self._masked(each))
            offers = self._offering[each.number] == bool(masked.get("tools"))
            return offers, _shared(ours, theirs), each.number in left, -abs(len(ours) - len(theirs))

        alike = (each for each in self._exchanges() if each.path == path)
        nearest = max(alike, key=likeness, default=None)
        if nearest is None:
            return f"asks {path}, which nothing in the recording does"
        found = next(differences(self._masked(nearest), masked), None)
        if found is None:
            return f"is asked more often than in the recording, where it is request {nearest.number}"
        place, recorded, asked = found
        return (
            f"differs from request {nearest.number} of the recording at {place}: "
            f"recorded {json.dumps(recorded, ensure_ascii=False)}, now {json.dumps(asked, ensure_ascii=False)}"
        )


def _conversation(request: Object) -> list[object]:
    return next((found for name in _CONVERSATION if (found := items(request.get(name)))), [])


def _shared(one: list[object], other: list[object]) -> int:
    """How many messages two conversations share at their start."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))
