"""JSON and JSON Lines, strictly: what a text says once, or a problem with its line.

What belongs here: decoding JSON by one fixed library (the standard one, for it alone shows duplicate keys),
and splitting files of rows. What does not: what a row means. Rows end at LF bytes only: U+2028, U+0085 and
form feed are text. See https://jsonlines.org/.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import BaseModel, ValidationError

from bench_pipeline.documents.describing import describe, dotted, shorten
from bench_pipeline.documents.files import open_regular, unreadable
from bench_pipeline.documents.messages import explain
from bench_pipeline.errors import DocumentError, Problem

# A transcript's longest line seen is under 2 MiB; a line that reaches this is a defect, not a row.
MAX_LINE_BYTES = 16 << 20
# Far beyond 64 bits, and below where Python itself refuses to read a whole number.
_LONGEST_INT = 1000
# A line that is too long is read in pieces; what stands across two of them stands in one of them whole.
_PIECE_BYTES, _OVERLAP_BYTES = 1 << 20, 1 << 10
_SURROGATE = re.compile("[\ud800-\udfff]")

OnRejected = Callable[[int, bytes], None]


class RejectedJsonError(ValueError):
    """A text that is not one JSON value, or says something twice.

    ``line`` counts from 1 within the text where the decoder knows it; ``culprit`` is the number, word or key
    that is wrong, to look for it.
    """

    def __init__(self, message: str, line: int | None = None, culprit: str = "") -> None:
        super().__init__(message)
        self.line = line
        self.culprit = culprit


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise RejectedJsonError(f"the key {describe(twice)} is given twice in one object", culprit=twice)
    return value


def _constant(text: str) -> object:
    raise RejectedJsonError(f"{text} is not a JSON number", culprit=text)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise RejectedJsonError(f"the number {shorten(text)} is too large", culprit=text)
    return number


def _whole(text: str) -> int:
    if len(text) > _LONGEST_INT:
        raise RejectedJsonError(f"the number {shorten(text)} has too many digits", culprit=text)
    return int(text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_constant, parse_float=_finite, parse_int=_whole
)


def decode_json(text: str) -> object:
    """One JSON value; RejectedJsonError for duplicate keys, NaN, infinities and anything malformed.

    Half of a surrogate pair is refused too: it is not text, and no file or table could hold it.
    """
    try:
        value: object = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise RejectedJsonError(f"{error.msg} at column {error.colno}", error.lineno) from None
    except RecursionError:
        raise RejectedJsonError("is nested too deep") from None
    if "\\u" in text and _has_surrogate(value):
        raise RejectedJsonError("has half of a surrogate pair (\\ud800 to \\udfff alone), which is not text")
    return value


def _has_surrogate(value: object) -> bool:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if _SURROGATE.search(item):
                return True
        elif isinstance(item, dict):
            pending += item
            pending += item.values()
        elif isinstance(item, list):
            pending += item
    return False


@dataclass(frozen=True)
class JsonLines:
    """The rows of a file and the line, from 1, of each.

    ``rejected`` holds the lines that are no rows (tolerant reading only). ``incomplete_tail`` says that the
    last line did not end in a line feed and did not parse: whoever wrote it was cut off.
    """

    rows: list[Any] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    rejected: list[Problem] = field(default_factory=list)
    incomplete_tail: bool = False


def read_jsonl(
    path: Path,
    model: type[BaseModel] | None = None,
    *,
    tolerant: bool = False,
    max_line_bytes: int = MAX_LINE_BYTES,
    on_rejected: OnRejected | None = None,
) -> JsonLines:
    """Read a file of JSON rows; blank lines, CRLF and a byte order mark are fine.

    Rows are plain values, or models where ``model`` is given. Without ``tolerant`` the first line that is no
    row stops with DocumentError. No more than ``max_line_bytes`` of a line is ever held. ``on_rejected`` is called
    with the number and the bytes of each line that is no row; of one that is too long, with one piece after another,
    each of which begins with the end of the one before.
    """
    result = JsonLines()
    cut = False
    with open_regular(path) as stream:
        for number, data, ended in _split(path, stream, max_line_bytes, on_rejected):
            try:
                row = _row(data, model, max_line_bytes)
            except _NotARowError as error:
                cut = cut or not ended
                prefix = "" if ended else "the last line is cut off: "
                problems = [Problem(str(path), number, at, prefix + text) for at, text in error.problems]
                if not tolerant:
                    raise DocumentError(problems) from None
                result.rejected.extend(problems)
                if on_rejected is not None and data is not None:
                    on_rejected(number, data)
            else:
                result.rows.append(row)
                result.lines.append(number)
    return replace(result, incomplete_tail=cut)


def _split(
    path: Path, stream: BinaryIO, limit: int, on_piece: OnRejected | None
) -> Iterator[tuple[int, bytes | None, bool]]:
    """Each line that is not blank: its number, its bytes (None when too long), and whether LF ended it."""
    number = 0
    try:
        while data := stream.readline(limit + 2):
            number += 1
            ended = data.endswith(b"\n")
            too_long = len(data.rstrip(b"\r\n")) > limit
            if too_long:
                ended = _pass_over(stream, data, number, on_piece)
            if number == 1:
                data = data.removeprefix(b"\xef\xbb\xbf")
            if too_long or data.strip(b" \t\r\n"):
                yield number, None if too_long else data, ended or too_long
    except OSError as error:
        raise unreadable(path, error) from None


def _pass_over(stream: BinaryIO, start: bytes, number: int, on_piece: OnRejected | None) -> bool:
    """Read on to the end of a line without keeping it; whether an LF ended it."""
    piece = more = start
    while more:
        if on_piece is not None:
            on_piece(number, piece)
        if more.endswith(b"\n"):
            return True
        more = stream.readline(_PIECE_BYTES)
        piece = piece[-_OVERLAP_BYTES:] + more
    return False


class _NotARowError(Exception):
    def __init__(self, problems: list[tuple[str, str]]) -> None:
        super().__init__(problems)
        self.problems = problems


def _row(data: bytes | None, model: type[BaseModel] | None, limit: int) -> object:
    """The row that a line holds; _NotARowError with pairs of field and sentence."""
    if data is None:
        raise _NotARowError([("", f"the line is longer than {limit} bytes")])
    try:
        value = decode_json(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _NotARowError([("", f"byte 0x{data[error.start]:02x} is not UTF-8")]) from None
    except RejectedJsonError as error:
        raise _NotARowError([("", f"is not a JSON row: {error}")]) from None
    if model is None:
        return value
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise _NotARowError([(dotted(at), text) for at, text in explain(error, model, value)]) from None
