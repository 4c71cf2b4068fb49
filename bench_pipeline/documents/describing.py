"""Words about documents: what was found where something else was expected, which field, and the nearest name.

What belongs here: text that was written plainly (``Plain``), paths of fields, and short phrases about values.
What does not: whole sentences about a rule (``fields``, ``messages``).
"""

import difflib
import json
import re
from collections.abc import Iterable, Mapping

FieldPath = tuple[str | int, ...]

_LONGEST = 60
# Comparing names costs the product of their lengths; no field's name is longer than this.
_LONGEST_NAME = 64


class Plain(str):
    """Text that was written without quotes, as it was written: a field's type decides what it means."""

    __slots__ = ()


def describe(value: object) -> str:
    """A value in a few words: text as it was written, quotes too; ``nothing`` for null; or its shape."""
    if isinstance(value, Plain):
        return shorten(str(value))
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    if value is None:
        return "nothing (null)"
    if isinstance(value, (str, bool, int, float)):
        return shorten(json.dumps(value, ensure_ascii=False))
    return shorten(str(value))


def shorten(text: str) -> str:
    """``text``, cut when it is too long for a message."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def dotted(steps: Iterable[str | int]) -> str:
    """A field path for people: ``tools[0].model``."""
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            shown = step if re.fullmatch(r"[A-Za-z0-9_-]+", step) else json.dumps(step)
            text += ("." if text else "") + shorten(shown)
    return text


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that ``name`` may be a misspelling of, or None."""
    if len(name) > _LONGEST_NAME:
        return None
    folded = {_fold(item): item for item in known}
    close = difflib.get_close_matches(_fold(name), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def _fold(name: str) -> str:
    return name.casefold().replace("-", "_")


def one_of(name: str, known: Iterable[str], what: str) -> str:
    """A hint for an unknown name: the nearest known one, and all of them after ``what``."""
    names = list(known)
    if not names:
        return f"{what}: none"
    close = nearest(name, names)
    hint = f"did you mean {close}? " if close else ""
    return f"{hint}{what}: {', '.join(names)}"
