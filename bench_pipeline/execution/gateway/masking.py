"""Requests in a form in which two runs of one conversation ask the same, and where two requests differ.

What belongs here: what of a request says nothing about what is asked, for each API and for each tool. What does not:
which request is compared with which (``replaying``). Masked are fields that name a session or a user, and in texts
what comes from a clock or from chance: dates, times and UUIDs, and what a tool's definition adds.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Any, Final, Self

from bench_pipeline.execution.usage.reading import Object

MASK: Final = "<masked>"
# Who asks, for the provider's own records.
_WHO: Final = ("metadata", "user", "safety_identifier", "prompt_cache_key", "client_metadata")
_DAY: Final = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MONTH: Final = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_TEXTS: Final = (
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    # ISO 8601, with or without a time.
    r"\b20\d\d-[01]\d-[0-3]\d(?:[T ][0-2]\d:[0-5]\d(?::[0-6]\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?",
    # As date(1) and ls(1) print it.
    rf"\b(?:{_DAY},? +)?{_MONTH} +[0-3]?\d(?: +[0-2]?\d:[0-5]\d(?::[0-6]\d)?(?: [A-Z]{{3,4}})?|,? +20\d\d)",
    # What a program says that it took.
    r"\b\d+\.\d+ ?(?:s|ms|sec|secs|seconds)\b",
)
_SHOWN, _BEFORE = 50, 15


@dataclass(frozen=True)
class Masks:
    """What differs between two runs of one conversation.

    Args:
        fields: of a request, by dotted name; lists are looked through.
        texts: regular expressions for parts of texts.
        folders: the cell's own folders by the name that stands for them.
    """

    fields: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    folders: Mapping[str, str] | None = None

    def document(self) -> dict[str, object]:
        """The masks as JSON values."""
        return {"fields": list(self.fields), "texts": list(self.texts), "folders": dict(self.folders or {})}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """The masks that ``document`` was made of."""
        return cls(tuple(document["fields"]), tuple(document["texts"]), document["folders"])

    def __call__(self, request: Object) -> Object:
        """The masked form of ``request``."""
        masked = self._value(request, "")
        assert isinstance(masked, dict)
        return masked

    @cached_property
    def _ignored(self) -> frozenset[str]:
        return frozenset(f".{name}" for name in (*_WHO, *self.fields))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(f"(?:{each})" for each in (*self.texts, *_TEXTS)))

    @cached_property
    def _folders(self) -> list[tuple[str, str]]:
        """Longest first: a folder may be below another."""
        return sorted(((path, name) for name, path in (self.folders or {}).items()), key=lambda x: -len(x[0]))

    def _value(self, value: object, path: str) -> object:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self._value(item, path) for item in value]
        if isinstance(value, dict):
            named = ((f"{path}.{name}", name, item) for name, item in value.items())
            return {
                name: self._value(item, below) for below, name, item in named if below not in self._ignored
            }
        return value

    def _text(self, text: str) -> str:
        for path, name in self._folders:
            text = text.replace(path, name)
        return self._pattern.sub(MASK, text)


def digest(masked: Object) -> str:
    """The same for requests whose masked forms are equal; the order of fields says nothing."""
    return hashlib.sha256(json.dumps(masked, sort_keys=True).encode()).hexdigest()


def differences(recorded: object, asked: object, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Where two masked requests differ: the path of each place, and what is there in words, in order."""
    if isinstance(recorded, dict) and isinstance(asked, dict):
        for name in dict.fromkeys((*recorded, *asked)):
            below = f"{path}.{name}" if path else name
            yield from differences(recorded.get(name, _ABSENT), asked.get(name, _ABSENT), below)
    elif isinstance(recorded, list) and isinstance(asked, list):
        for place, (one, other) in enumerate(zip_longest(recorded, asked, fillvalue=_ABSENT)):
            yield from differences(one, other, f"{path}[{place}]")
    elif recorded != asked or type(recorded) is not type(asked):
        yield path, *_told(recorded, asked)


class _Absent:
    def __repr__(self) -> str:
        return "nothing"


_ABSENT: Final = _Absent()


def _told(recorded: object, asked: object) -> tuple[str, str]:
    """Two values as short texts that begin shortly before they differ."""
    one, other = (value if isinstance(value, str) else repr(value) for value in (recorded, asked))
    at = next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), 0)
    start = max(at - _BEFORE, 0)
    return one[start : start + _SHOWN], other[start : start + _SHOWN]
