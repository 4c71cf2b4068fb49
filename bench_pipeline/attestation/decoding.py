"""A text and the texts that are written inside it: JSON strings, base64, hex, URL escapes, gzip, line numbers.

What belongs here: peeling layers off text that anybody may have written, within limits. What does not: what
is looked for in it. Nothing is parsed as a document: escapes are resolved where they stand, so broken and
bottomless JSON reads as well as any other.
"""

import base64
import binascii
import re
import zlib
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote_plus

import numpy as np

# Layers in layers: what an agent's tools print is two or three deep; deeper nesting is made to be missed.
MAX_DEPTH: Final = 6
# What may come out of one text, and out of all: enough for any honest archive, little enough for memory and time.
MAX_DECODED_CHARS: Final = 16 << 20
MAX_TOTAL_CHARS: Final = 64 << 20
_MAX_RUNS: Final = 20_000
# Shorter runs of digits or base64 hold no answer: 12 bytes are two words.
_MIN_RUN: Final = 16
_RETRIED_RUN: Final = 32
# What stands between the lines of a wrapped run.
_MAX_GAP: Final = 3

_DIGITS: Final = np.isin(
    np.arange(256),
    np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-", np.uint8),
)
# Possessive throughout: no run is gone over twice, whatever follows it.
_OPEN_RUN: Final = re.compile(r"(?:[A-Za-z0-9+/_=%-]{16,}+\s?)++\Z")
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_LETTERS: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_URL_ESCAPE: Final = re.compile(r"%[0-9a-fA-F]{2}")
_BACKSLASH: Final = re.compile(r"\\")
_NUMBERED: Final = re.compile(
    r"^[ \t]*+(?:\d{1,7}|[^\s:]{1,300}+:\d{1,7}|[^\s:]{1,300}?-\d{1,7})(?:[:|\u2192\u2502-]|\t)[ \t]?(.*)$",
    re.MULTILINE,
)
_HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2})+").fullmatch
_CONTROLS: Final = bytes(byte for byte in range(32) if byte not in b"\t\n\r\f\x1b") + b"\x7f"


class Decoder:
    """Peels layers off one text after another; ``exhausted`` tells that there was more than may be decoded."""

    def __init__(self) -> None:
        self.exhausted = False
        self._total = MAX_TOTAL_CHARS
        self._left = 0

    def layers(self, text: str) -> Iterator[str]:
        """The text itself, then what is encoded in it, outer layers first; no text twice."""
        self._left = min(MAX_DECODED_CHARS, self._total)
        given = self._left
        seen = {text}
        yield text
        level = [text]
        for depth in range(MAX_DEPTH):
            level = [found for outer in level for found in self._inside(outer) if found not in seen]
            level = list(dict.fromkeys(level))
            seen.update(level)
            yield from level
            if depth == MAX_DEPTH - 1 and any(True for outer in level for _ in self._packed(outer)):
                self.exhausted = True
        self._total -= given - max(0, self._left)

    def _inside(self, text: str) -> Iterator[str]:
        for make in (_unescaped, _unquoted, _unnumbered, self._packed):
            for found in make(text):
                self._left -= len(found)
                if self._left < 0:
                    self.exhausted = True
                    return
                if found:
                    yield found

    def _packed(self, text: str) -> Iterator[str]:
        """What runs of base64 or hex digits hold."""
        for count, run in enumerate(_runs(text)):
            if count == _MAX_RUNS:
                self.exhausted = True
                return
            found = self._text_of(run)
            if found is not None:
                yield found

    def _text_of(self, run: str) -> str | None:
        if _HEX(run):
            found = self._readable(bytes.fromhex(run))
            if found is not None:
                return found
        # A path before the run is part of it; its longest piece is the run alone.
        for part in dict.fromkeys((run, max(run.split("/"), key=len))):
            digits = part.replace("-", "+").replace("_", "/")
            # A word before it shifts it: one of four beginnings is right.
            for shift in range(4 if len(digits) >= _RETRIED_RUN else 1):
                found = self._readable(_from_base64(digits[shift:]))
                if found is not None:
                    return found
        return None

    def _readable(self, data: bytes) -> str | None:
        """Bytes as text, unpacked where they are packed; None when they are no text."""
        for _ in range(MAX_DEPTH):
            bits = 31 if data[:2] == b"\x1f\x8b" else 15 if data[:1] == b"\x78" else 0
            unpacked = self._inflated(data, bits) if bits else None
            if not unpacked:
                break
            data = unpacked
        return _text(data)

    def _inflated(self, data: bytes, bits: int) -> bytes | None:
        unpack = zlib.decompressobj(bits)
        try:
            found = unpack.decompress(data, max(1, self._left))
        except zlib.error:
            return None
        if unpack.unconsumed_tail:
            self.exhausted = True
        return found


def _lines_with(text: str, pattern: re.Pattern[str]) -> str:
    """The lines that hold a match, one after another."""
    lines, at = [], 0
    while (match := pattern.search(text, at)) is not None:
        start = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", match.end())
        end = len(text) if end < 0 else end
        lines.append(text[start:end])
        at = end
    return "\n".join(lines)


def _unescaped(text: str) -> Iterator[str]:
    """Lines that hold backslash escapes, with these resolved as JSON and most languages do."""
    lines = _lines_with(text, _BACKSLASH)
    if lines:
        # Through UTF-16, in which a pair of escaped surrogates is one character.
        found = _ESCAPE.sub(_character, lines)
        yield found.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _unquoted(text: str) -> Iterator[str]:
    lines = _lines_with(text, _URL_ESCAPE)
    if lines:
        yield unquote_plus(lines, errors="replace")


def _unnumbered(text: str) -> Iterator[str]:
    """Lines that begin with a number, or a file and a number, without it, as readers and searches print them."""
    lines = _NUMBERED.findall(text)
    if len(lines) > 1:
        yield "\n".join(lines)


def _runs(text: str) -> Iterator[str]:
    """The runs of base64 digits that are long enough to hold something; lines of a wrapped one are joined."""
    data = text.encode("utf-8", "replace")
    is_digit = np.zeros(len(data) + 2, np.bool_)
    is_digit[1:-1] = _DIGITS[np.frombuffer(data, np.uint8)]
    edges = np.flatnonzero(is_digit[1:] != is_digit[:-1])
    starts, ends = edges[::2], edges[1::2]
    long = ends - starts >= _MIN_RUN
    begin = -1
    for at in np.flatnonzero(long).tolist():
        if begin < 0:
            begin = at
        goes_on = at + 1 < len(starts) and not data[ends[at] : starts[at + 1]].strip()
        if goes_on and starts[at + 1] - ends[at] <= _MAX_GAP and long[at + 1]:
            continue
        # The last line of a wrapped run may be short.
        last = at + 1 if begin < at and goes_on and starts[at + 1] - ends[at] <= _MAX_GAP else at
        yield b"".join(data[starts[begin] : ends[last]].split()).decode("ascii")
        begin = -1


def without_numbers(text: str) -> str:
    """The text with the line numbers at the beginnings of its lines taken off; itself when it has none."""
    found, count = _NUMBERED.subn(r"\1", text)
    return found if count else text


def open_run(text: str, most: int = 1 << 16) -> str:
    """The run of encoded characters that the text ends within, which a following text may go on with."""
    end = text[-most:]
    last = end.rstrip("\r\n").rpartition("\n")[2].rpartition(" ")[2]
    if len(last) < _MIN_RUN:
        return ""
    match = _OPEN_RUN.search(end)
    return match[0] if match is not None else ""


def _character(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    return chr(int(code, 16)) if code else _LETTERS.get(match[3], match[3])


def _from_base64(digits: str) -> bytes:
    digits = digits[: len(digits) - 1] if len(digits) % 4 == 1 else digits
    try:
        return base64.b64decode(digits + "=" * (-len(digits) % 4))
    except (binascii.Error, ValueError):
        return b""


def _text(data: bytes) -> str | None:
    """UTF-8 or UTF-16 text, a few wrong bytes allowed; None for anything else."""
    if data[1:8:2] == b"\0\0\0\0":
        return data.decode("utf-16-le", "replace")
    controls = len(data) - len(data.translate(None, _CONTROLS))
    if controls * 20 > len(data):
        return None
    text = data.decode("utf-8", "replace")
    return text if text.count("\N{REPLACEMENT CHARACTER}") * 20 <= len(text) else None
