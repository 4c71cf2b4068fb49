"""Lines of the fields of JSON and TOML texts that already parsed.

What belongs here: cheap scans that find where a field starts; they are run only when a problem is to be told.
What does not: parsing (the standard library does it). A field that a scan does not see has the line of the
nearest one above it.
"""

import json
import re
from collections.abc import Iterator

from bench_pipeline.documents.describing import FieldPath

_JSON_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|\n|[^\s{}\[\],:"]+')


def json_fields(text: str) -> Iterator[tuple[FieldPath, int]]:
    """Every key and list entry of a valid JSON text, repeated ones too, with its line, in text order."""
    path: list[str | int | None] = []
    expects_key = False
    for piece, line in _json_pieces(text):
        if piece in "}]":
            path.pop()
            expects_key = False
        elif piece == ",":
            expects_key = not isinstance(path[-1], int)
            path[-1] = None if expects_key else _next(path[-1])
        elif piece == ":":
            expects_key = False
        elif expects_key:
            path[-1] = json.loads(piece)
            yield _known(path), line
        else:
            if path and isinstance(path[-1], int):
                yield _known(path), line
            if piece in "{[":
                path.append(None if piece == "{" else 0)
                expects_key = piece == "{"


def json_lines(text: str) -> dict[FieldPath, int]:
    """The line, from 1, of every key and list entry of a valid JSON text."""
    lines: dict[FieldPath, int] = {}
    for path, line in json_fields(text):
        lines.setdefault(path, line)
    return lines


def json_literal_line(text: str, literal: str) -> int | None:
    """The line, from 1, on which a number or a word (not a text) first stands in a JSON text."""
    return next((line for piece, line in _json_pieces(text) if piece == literal), None)


def _json_pieces(text: str) -> Iterator[tuple[str, int]]:
    line = 1
    for piece in _JSON_PIECE.findall(text):
        if piece == "\n":
            line += 1
        else:
            yield piece, line


def _known(path: list[str | int | None]) -> FieldPath:
    return tuple(step for step in path if step is not None)


def _next(index: str | int | None) -> int:
    return index + 1 if isinstance(index, int) else 0


_TOML_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]#]+?)\s*\]\]?\s*(#.*)?")
_TOML_KEY = re.compile(
    r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*="""
)
_TOML_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")


def toml_lines(text: str) -> dict[FieldPath, int]:
    """The line, from 1, of the tables and keys of a valid TOML text that start a line."""
    lines: dict[FieldPath, int] = {}
    counts: dict[FieldPath, int] = {}
    table: FieldPath = ()
    quotes = ""
    for number, row in enumerate(text.split("\n"), start=1):
        if not quotes:
            header = _TOML_HEADER.fullmatch(row.rstrip("\r"))
            key = _TOML_KEY.match(row)
            if header:
                table = _toml_path(header[2])
                if header[1] == "[[":
                    counts[table] = counts.get(table, -1) + 1
                table = _indexed(table, counts)
                lines.setdefault(table, number)
            elif key:
                lines.setdefault((*table, *_toml_path(key[1])), number)
        quotes = _open_quotes(row, quotes)
    return lines


def _toml_path(dotted: str) -> FieldPath:
    return tuple(part.strip("\"'") for part in _TOML_PART.findall(dotted))


def _indexed(table: FieldPath, counts: dict[FieldPath, int]) -> FieldPath:
    path: FieldPath = ()
    for index in range(len(table)):
        path = (*path, table[index])
        if table[: index + 1] in counts:
            path = (*path, counts[table[: index + 1]])
    return path


def _open_quotes(row: str, quotes: str) -> str:
    for mark in re.findall(r'"""|\'\'\'', row):
        if not quotes:
            quotes = mark
        elif mark == quotes:
            quotes = ""
    return quotes
