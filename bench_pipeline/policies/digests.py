"""The JSON that receipts are written in and that digests are taken of.

What belongs here: one encoding, compact or indented, and SHA-256 over it. What does not: which values are encoded.
It is the encoding of Go's ``encoding/json`` (https://pkg.go.dev/encoding/json): members in the order given, text
raw but for ``<``, ``>``, ``&`` and the two Unicode line ends, the shortest numbers. Identities of cells have
another (``identity``).
"""

import hashlib
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring as _quote

from bench_pipeline.identity import canonical_json

_ESCAPED = "<>&\u2028\u2029"


def compact_json(value: object) -> str:
    """``value`` on one line; ValueError for a NaN, an infinity or a type that has no form."""
    return _escape(_form(value, None))


def indented_json(value: object) -> str:
    """``value`` indented by two spaces, with a line feed at its end."""
    return _escape(_form(value, "\n")) + "\n"


def sha256(value: object) -> str:
    """The SHA-256 of the compact form, as 64 lower-case hex digits."""
    return hashlib.sha256(compact_json(value).encode()).hexdigest()


def _escape(text: str) -> str:
    # Outside of its strings JSON has none of these characters.
    for char in _ESCAPED:
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _form(value: object, line: str | None) -> str:
    """The form of a value; ``line`` is the line feed and indentation that it stands at, None on one line."""
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, Mapping):
        colon = ":" if line is None else ": "
        inner = None if line is None else line + "  "
        return _joined(
            [f"{_quote(key)}{colon}{_form(item, inner)}" for key, item in value.items()], "{}", line
        )
    if isinstance(value, Sequence):
        inner = None if line is None else line + "  "
        return _joined([_form(item, inner) for item in value], "[]", line)
    return canonical_json(value).decode()


def _joined(parts: list[str], brackets: str, line: str | None) -> str:
    if line is None or not parts:
        return f"{brackets[0]}{','.join(parts)}{brackets[1]}"
    inner = line + "  "
    return f"{brackets[0]}{inner}{f',{inner}'.join(parts)}{line}{brackets[1]}"
