"""Keeping credentials out of what is stored.

What belongs here: finding a secret's value in bytes, in the forms in which programs print it, and replacing
it by ``[redacted:NAME]``. What does not: which values are secret. Found are the value itself, also escaped
for JSON (up to three times over), URLs or XML, its hexadecimal digits, and its base64 at any alignment and
broken into lines. Values shorter than eight bytes are left alone, since replacing them would destroy the
output around them; ``Redactor.too_short`` names them.
"""

import base64
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

MIN_SECRET_BYTES = 8
_CHUNK = 8 * 1024 * 1024
# Three levels of JSON strings inside JSON strings double the backslashes to seven.
_MAX_BACKSLASHES = 7
# The longest way to write one character: two UTF-16 escapes with their backslashes.
_MAX_CHARACTER = 2 * (_MAX_BACKSLASHES + len("u1234"))


@dataclass(frozen=True)
class _Form:
    """One way in which a secret may be written: a pattern, and literals of which every match contains one."""

    name: str
    pattern: bytes
    seeds: tuple[bytes, ...]
    length: int


class Redactor:
    """Replaces the values of ``secrets``, by name, in bytes, text and files; threads may share one."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        values = {name: value.strip() for name, value in sorted(secrets.items())}
        sizes = {name: len(value.encode("utf-8", "surrogateescape")) for name, value in values.items()}
        self.too_short = tuple(name for name, size in sizes.items() if 0 < size < MIN_SECRET_BYTES)
        forms = [
            form
            for name, value in values.items()
            if sizes[name] >= MIN_SECRET_BYTES
            for form in _forms(name, value)
        ]
        # Longest first: a secret that contains another is replaced whole.
        self._forms = tuple(sorted(forms, key=lambda form: -form.length))
        self._overlap = max((form.length for form in forms), default=1) - 1

    def redact(self, data: bytes) -> bytes:
        """``data`` without any form of the secrets; all other bytes are as they were."""
        return self._clean_until(data, len(data))[1]

    def redact_text(self, text: str) -> str:
        """``text`` without any form of the secrets."""
        return self.redact(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def redact_file(self, path: Path) -> bool:
        """Replaces the file, whole or not at all, by one without the secrets; returns whether it held any."""
        changed = False
        with path.open("rb") as source, tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as target:
            try:
                for replaced, clean in self._pieces(iter(lambda: source.read(_CHUNK), b"")):
                    changed |= replaced
                    target.write(clean)
                if changed:
                    target.flush()
                    os.fsync(target.fileno())
                    Path(target.name).replace(path)
            finally:
                Path(target.name).unlink(missing_ok=True)
        return changed

    def _pieces(self, chunks: Iterator[bytes]) -> Iterator[tuple[bool, bytes]]:
        """Clean pieces of a stream; bytes that may begin a secret wait for the next chunk."""
        rest = b""
        for chunk in chunks:
            data = rest + chunk
            changed, clean, end = self._clean_until(data, max(0, len(data) - self._overlap))
            yield changed, clean
            rest = data[end:]
        changed, clean, _ = self._clean_until(rest, len(rest))
        yield changed, clean

    def _clean_until(self, data: bytes, settled: int) -> tuple[bool, bytes, int]:
        """Replaces the matches that begin before ``settled``.

        Returns whether there were any, the clean bytes, and how many bytes of ``data`` they stand for.
        """
        # Looking for literals is many times as fast as a pattern, and most output holds none.
        present = tuple(form for form in self._forms if any(seed in data for seed in form.seeds))
        parts: list[bytes] = []
        end = 0
        if present:
            for match in _compiled(present).finditer(data):
                if match.start() >= settled:
                    break
                mark = f"[redacted:{present[(match.lastindex or 1) - 1].name}]".encode()
                parts += [data[end : match.start()], mark]
                end = match.end()
        return bool(parts), b"".join([*parts, data[end:settled]]), max(end, settled)


@lru_cache(maxsize=256)
def _compiled(forms: tuple[_Form, ...]) -> re.Pattern[bytes]:
    return re.compile(b"|".join(b"(" + form.pattern + b")" for form in forms), re.DOTALL)


def _forms(name: str, value: str) -> Iterator[_Form]:
    data = value.encode("utf-8", "surrogateescape")
    yield _text_form(name, value)
    for digits in (data.hex().encode(), data.hex().upper().encode()):
        yield _Form(name, digits, (digits,), len(digits))
    for offset in range(3):
        yield _base64_form(name, data, offset)


_PLAIN_RUN = re.compile(rb"[A-Za-z0-9_.-]+")
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
_LETTER_ESCAPES = {"\n": b"n", "\r": b"r", "\t": b"t", "\b": b"b", "\f": b"f"}
_XML_NAMES = {"&": b"&amp;", "<": b"&lt;", ">": b"&gt;", '"': b"&quot;", "'": b"&apos;"}
_ESCAPE = rb"\\{1,%d}" % _MAX_BACKSLASHES


def _text_form(name: str, value: str) -> _Form:
    """The value with each of its characters as it is or escaped; nothing escapes the plain ones."""
    pieces = re.findall(r"\\+|[^\\]", value, re.DOTALL)
    pattern = b"".join(map(_character, pieces))
    runs = _PLAIN_RUN.findall(value.encode("utf-8", "surrogateescape"))
    return _Form(name, pattern, (max(runs, key=len, default=b""),), _MAX_CHARACTER * len(value))


def _character(text: str) -> bytes:
    """A pattern for one character, or for a run of backslashes, in every way of writing it."""
    if text in _PLAIN:
        return re.escape(text.encode())
    if text[0] == "\\":
        count = len(text)
        runs = (rb"\\{%d,%d}" % (count, count * (_MAX_BACKSLASHES + 1)), rb"(?:%%5[Cc]){%d}" % count)
        return b"(?:" + b"|".join((*runs, rb"(?:%su005[Cc]){%d}" % (_ESCAPE, count))) + b")"
    data = text.encode("utf-8", "surrogateescape")
    units = text.encode("utf-16-be", "surrogatepass").hex()
    # Escapes before the character itself: of "&amp;" not only the "&" is to be replaced.
    ways = [
        b"&#(?:0*%d|[xX]0*(?i:%x));" % (ord(text), ord(text)),
        b"".join(b"%%(?i:%02x)" % byte for byte in data),
        b"".join(_ESCAPE + b"u(?i:" + units[at : at + 4].encode() + b")" for at in range(0, len(units), 4)),
    ]
    if text in _XML_NAMES:
        ways.append(_XML_NAMES[text])
    if text in _LETTER_ESCAPES:
        ways.append(_ESCAPE + _LETTER_ESCAPES[text])
    elif text.isascii():
        ways.append(_ESCAPE + re.escape(data))
    if text == " ":
        ways.append(rb"\+")
    ways.append(re.escape(data))
    return b"(?:" + b"|".join(ways) + b")"


# What programs put between the lines of a base64 text, as it is or inside a JSON string.
_BREAK = rb"(?:\r?\n|(?:\\{1,7}r)?\\{1,7}n)?"
_BREAK_LENGTH = 2 * (_MAX_BACKSLASHES + 1)
# Lines are 16 characters or longer, so that one of two windows of this length is unbroken.
_WINDOW = 8
_BASE64_CHARACTERS = {ord("+"): rb"(?:[+-]|%2[Bb])", ord("/"): rb"(?:\\{0,7}/|_|%2[Ff])"}


def _base64_form(name: str, data: bytes, offset: int) -> _Form:
    """The base64 characters that the value alone decides, when ``offset`` bytes (modulo 3) come before it."""
    encoded = base64.b64encode(b"\0" * offset + data)
    core = encoded[(0, 2, 3)[offset] : (offset + len(data)) * 8 // 6]
    characters = (_BASE64_CHARACTERS.get(each, bytes((each,))) for each in core)
    window = min(_WINDOW, len(core) // 2)
    seeds = []
    for part in (core[:window], core[window : 2 * window]):
        runs = re.findall(rb"[A-Za-z0-9]+", part)
        seeds.append(max(runs, key=len, default=b""))
    length = len(core) * (_BREAK_LENGTH + _MAX_BACKSLASHES + 1)
    return _Form(name, _BREAK.join(characters), tuple(seeds), length)
