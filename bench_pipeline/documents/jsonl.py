"""JSON and JSON Lines, strictly: what a text says once, or a problem with its line.

What belongs here: decoding JSON by one fixed library (the standard one, for it alone shows duplicate keys), and
splitting files of rows. What does not: what a row means. Rows end at LF bytes only: U+2028, U+0085 and form feed
are text. See https://jsonlines.org/.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from pydantic import BaseModel, ValidationError

from bench_pipeline.documents.messages import explain
from bench_pipeline.errors import DocumentError, Problem

# A transcript's longest line seen is under 2 MiB; a line that reaches this is a defect, not a row.
MAX_LINE_BYTES = 16 << 20


class Rejected(ValueError):
    """A text that is not one JSON value; ``line`` counts from 1 within the text."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Rejected(f"the key {json.dumps(twice)} is given twice in one object")
    return value


def _constant(text: str) -> object:
    raise Rejected(f"{text} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise Rejected(f"the number {text[:40]} is too large")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_constant, parse_float=_finite)


def decode_json(text: str) -> object:
    """One JSON value; Rejected for duplicate keys, NaN, infinities, lone surrogates and anything malformed."""
    try:
        value: object = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise Rejected(f"{error.msg} at column {error.colno}", error.lineno) from None
    except RecursionError:
        raise Rejected("is nested too deep") from None
    except Rejected:
        raise
    except ValueError:
        raise Rejected("has a number with too many digits") from None
    if "\\u" in text and _has_surrogate(value):
        raise Rejected("has half of a surrogate pair (\\ud800 to \\udfff alone), which is not text")
    return value


def _has_surrogate(value: object) -> bool:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if any("\ud800" <= character <= "\udfff" for character in item):
                return True
        elif isinstance(item, dict):
            pending += item
            pending += item.values()
        elif isinstance(item, list):
            pending += item
    return False


@dataclass(frozen=True)
class JsonLines:
    """The rows of a file, the line (from 1) of each, and the lines that were rejected (tolerant reading only).

    ``incomplete_tail`` says that the last line did not end in a line feed and did not parse: it was cut off.
    """

    rows: list[object] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    rejected: list[Problem] = field(default_factory=list)
    incomplete_tail: bool = False


def read_jsonl(
    path: Path,
    model: type[BaseModel] | None = None,
    *,
    tolerant: bool = False,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> JsonLines:
    """Read a file of JSON rows; blank lines, CRLF and a byte order mark are fine.

    Rows are plain values, or models where ``model`` is given. Without ``tolerant`` the first line that is no row
    stops with DocumentError. No more than ``max_line_bytes`` of a line is ever held.
    """
    rows: list[object] = []
    lines: list[int] = []
    rejected: list[Problem] = []
    cut = False
    try:
        with path.open("rb") as stream:
            for number, data, ended in _split(stream, max_line_bytes):
                problems = _row(path, number, data, model, rows, max_line_bytes)
                if not problems:
                    lines.append(number)
                    continue
                if not ended:
                    cut = True
                    problems = [
                        Problem(str(path), number, "", f"the last line is cut off: {problems[0].message}")
                    ]
                if not tolerant:
                    raise DocumentError(problems)
                rejected += problems
    except OSError as error:
        raise DocumentError([Problem(str(path), None, "", f"cannot be read: {error.strerror}")]) from None
    return JsonLines(rows, lines, rejected, cut)


def _split(stream: BinaryIO, limit: int) -> Iterator[tuple[int, bytes | None, bool]]:
    """Each line's number, its bytes without the line end (None when too long), and whether it ended in LF."""
    number = 0
    while data := stream.readline(limit + 2):
        number += 1
        ended = data.endswith(b"\n")
        long = len(data.rstrip(b"\r\n")) > limit
        if not ended and len(data) == limit + 2:
            long = True
            while not ended and (more := stream.readline(1 << 20)):
                ended = more.endswith(b"\n")
        if number == 1:
            data = data.removeprefix(b"\xef\xbb\xbf")
        if data.strip(b" \t\r\n"):
            yield number, None if long else data, ended or long


def _row(
    path: Path, number: int, data: bytes | None, model: type[BaseModel] | None, rows: list[object], limit: int
) -> list[Problem]:
    """Add the row of one line, or say what is wrong with it."""
    if data is None:
        return [Problem(str(path), number, "", f"the line is longer than {limit} bytes")]
    try:
        value = decode_json(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        return [Problem(str(path), number, "", f"byte 0x{data[error.start]:02x} is not UTF-8")]
    except Rejected as error:
        return [Problem(str(path), number, "", f"is not valid JSON: {error}")]
    if model is None:
        rows.append(value)
        return []
    try:
        rows.append(model.model_validate(value))
    except ValidationError as error:
        from bench_pipeline.documents.reading import dotted

        return [
            Problem(str(path), number, dotted(steps), text) for steps, text in explain(error, model, value)
        ]
    return []
