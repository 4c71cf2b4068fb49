"""Lines of the fields of JSON and TOML texts that already parsed.

What belongs here: cheap scans that find where a field starts; they are run only when a problem is to be told.
What does not: parsing (the standard library does it). A field that a scan does not see has the line of the
nearest one above it.
"""

import re

from bench_pipeline.documents.yaml12 import FieldPath

_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|\n|[^\s{}\[\],:"]+')


def json_lines(text: str) -> dict[FieldPath, int]:
    """The line, from 1, of every key and list entry of a valid JSON text."""
    import json

    lines: dict[FieldPath, int] = {}
    path: list[str | int | None] = []
    line = 1
    expects_key = False
    for token in _JSON_TOKEN.findall(text):
        if token == "\n":
            line += 1
            continue
        if token in "}]":
            path.pop()
            expects_key = False
        elif token == ",":
            top = path[-1]
            expects_key = not isinstance(top, int)
            path[-1] = None if expects_key else _next(top)
        elif token == ":":
            expects_key = False
        elif expects_key:
            path[-1] = json.loads(token)
            lines.setdefault(tuple(step for step in path if step is not None), line)
        else:
            if path and isinstance(path[-1], int):
                lines.setdefault(tuple(step for step in path if step is not None), line)
            if token in "{[":
                path.append(None if token == "{" else 0)
                expects_key = token == "{"
    return lines


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
