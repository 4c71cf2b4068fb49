"""Words for what a document holds where something else was expected, and for the nearest of some names."""

import difflib
import json
from collections.abc import Iterable, Mapping

from bench_pipeline.documents.yaml12 import Plain

_LONGEST = 60


def describe(value: object) -> str:
    """A value in a few words: text in quotes as it was written, ``nothing`` for null, the shape of the rest."""
    if value is None:
        return "nothing (null)"
    if isinstance(value, Plain):
        return _short(str(value))
    if isinstance(value, str):
        return _short(json.dumps(value, ensure_ascii=False))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return _short(repr(value))
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    return type(value).__name__


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that ``name`` may be a misspelling of, or None."""
    names = list(known)
    folded = {item.casefold().replace("-", "_"): item for item in names}
    close = difflib.get_close_matches(name.casefold().replace("-", "_"), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def one_of(name: str, known: Iterable[str], what: str) -> str:
    """A hint for an unknown name: the nearest one, and all of them."""
    names = list(known)
    if not names:
        return f"there are no {what}"
    close = nearest(name, names)
    hint = f"did you mean {close}? " if close else ""
    return f"{hint}{what}: {', '.join(names)}"
