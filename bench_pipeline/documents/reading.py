"""Reads one document, or many, into strict models; every problem names file, line and field.

What belongs here: files to ``Document``, and problems with lines. What does not: the models of a kind (its
lane) and rows (``jsonl``). A document's model never has ``apiVersion`` and ``kind``: they are checked and
dropped here.
"""

import gc
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from bench_pipeline.documents import positions
from bench_pipeline.documents.describing import FieldPath, describe, dotted, nearest, one_of
from bench_pipeline.documents.files import read_bytes
from bench_pipeline.documents.jsonl import RejectedJsonError, decode_json
from bench_pipeline.documents.messages import explain
from bench_pipeline.documents.yaml12 import (
    MAX_BYTES,
    Defect,
    UnreadableTextError,
    check_utf8,
    parse_yaml,
    yaml_lines,
)
from bench_pipeline.errors import DocumentError, Problem

API_VERSION = "bench.ber.run/v1alpha1"

M = TypeVar("M", bound=BaseModel)
M_co = TypeVar("M_co", bound=BaseModel, covariant=True)
_Lines = Callable[[bytes], dict[FieldPath, int]]


@dataclass(frozen=True)
class Document(Generic[M_co]):
    """A document that parsed: its model, and where its fields are in the file.

    ``label`` is how problems name the file; ``kind`` is empty for documents without one.
    """

    path: Path
    model: M_co
    kind: str = ""
    source: bytes = field(default=b"", repr=False, compare=False)
    find_lines: _Lines = field(default=yaml_lines, repr=False, compare=False)
    first_line: int = field(default=1, repr=False, compare=False)

    @cached_property
    def _lines(self) -> dict[FieldPath, int]:
        return self.find_lines(self.source)

    def line(self, *steps: str | int) -> int | None:
        """The line, from 1, of a field, or of the nearest one above it that the text has."""
        return _line(self._lines, steps, self.first_line)

    def problem(self, steps: FieldPath, message: str) -> Problem:
        """A problem with a field of this document, found by checks that a model alone cannot make."""
        return Problem(str(self.path), self.line(*steps), dotted(steps), message)


def _line(lines: Mapping[FieldPath, int], steps: FieldPath, first_line: int) -> int | None:
    for length in range(len(steps), 0, -1):
        if steps[:length] in lines:
            return lines[steps[:length]] + first_line - 1
    return first_line


def read_document(path: Path, model: type[M], kind: str) -> Document[M]:
    """Read a YAML document of one kind; DocumentError with all of its problems."""
    return _read_yaml(path, {kind: model})


def read_documents(
    paths: Iterable[Path], models: Mapping[str, type[M]]
) -> tuple[list[Document[M]], tuple[Problem, ...]]:
    """Read YAML documents of any of the kinds; the ones that parse, and the problems of the others."""
    documents: list[Document[M]] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            documents.append(_read_yaml(path, models))
        except DocumentError as error:
            problems.extend(error.problems)
    return documents, tuple(problems)


def load_yaml_bytes(data: bytes, name: str) -> object:
    """The plain value of a YAML text (see ``yaml12``); DocumentError, naming ``name``, with all problems."""
    value, defects = parse_yaml(data)
    if defects:
        raise DocumentError(_defect_problems(name, defects, 1))
    return value


def _read_yaml(path: Path, models: Mapping[str, type[M]]) -> Document[M]:
    data = read_bytes(path, MAX_BYTES)
    value, defects = parse_yaml(data)
    if defects and value is None:
        raise DocumentError(_defect_problems(str(path), defects, 1))
    if not isinstance(value, dict):
        found = "an empty file" if value is None else describe(value)
        problem = Problem(
            str(path), 1, "", f"expected a mapping that starts with apiVersion and kind, found {found}"
        )
        raise DocumentError([problem, *_defect_problems(str(path), defects, 1)])
    found_kind = value.pop("kind", None)
    wrong = _head_problems(value.pop("apiVersion", None), found_kind, models)
    built, errors = _validate(_meant(found_kind, models), value)
    if wrong or errors or defects or built is None:
        lines = yaml_lines(data)
        problems = [_placed(str(path), lines, steps, text, 1) for steps, text in [*wrong, *errors]]
        raise DocumentError([*problems, *_defect_problems(str(path), defects, 1)])
    return Document(path, built, str(found_kind), data)


def _head_problems(version: object, kind: object, models: Mapping[str, Any]) -> list[tuple[FieldPath, str]]:
    problems: list[tuple[FieldPath, str]] = []
    if version != API_VERSION:
        problems.append((("apiVersion",), f"expected {API_VERSION}, found {_head(version)}"))
    if not isinstance(kind, str) or kind not in models:
        hint = f" ({one_of(kind, models, 'kinds here')})" if isinstance(kind, str) and len(models) > 1 else ""
        problems.append((("kind",), f"expected {' or '.join(models)}, found {_head(kind)}{hint}"))
    return problems


def _meant(kind: object, models: Mapping[str, type[M]]) -> type[M] | None:
    """The model to check a document's fields by: not for another kind, whose fields would all be wrong."""
    if not isinstance(kind, str):
        return next(iter(models.values())) if len(models) == 1 else None
    return models.get(kind) or models.get(nearest(kind, models) or "")


def _head(value: object) -> str:
    return "no such field" if value is None else describe(value)


def _validate(model: type[M] | None, value: object) -> tuple[M | None, list[tuple[FieldPath, str]]]:
    if model is None:
        return None, []
    try:
        return model.model_validate(value), []
    except ValidationError as error:
        return None, explain(error, model, value)


def _placed(
    name: str, lines: Mapping[FieldPath, int], steps: FieldPath, message: str, first_line: int
) -> Problem:
    return Problem(name, _line(lines, steps, first_line), dotted(steps), message)


def _defect_problems(name: str, defects: Iterable[Defect], first_line: int) -> list[Problem]:
    return [
        Problem(name, None if d.line is None else d.line + first_line - 1, dotted(d.field), d.message)
        for d in defects
    ]


def read_toml(path: Path, model: type[M]) -> Document[M]:
    """Read a TOML file; DocumentError with all of its problems."""
    text = _decoded(path)
    try:
        value = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        found = re.search(r"\(at line (\d+), column \d+\)", str(error))
        message = re.sub(r" \(at .*\)$", "", str(error))
        line = int(found[1]) if found else None
        raise DocumentError([Problem(str(path), line, "", f"is not valid TOML: {message}")]) from None
    built, errors = _validate(model, value)
    if built is None:
        lines = positions.toml_lines(text)
        raise DocumentError(_placed(str(path), lines, steps, wrong, 1) for steps, wrong in errors)
    return Document(path, built, source=text.encode(), find_lines=_toml_lines)


def read_json(path: Path, model: type[M]) -> Document[M]:
    """Read a JSON file, without duplicate keys, NaN or lone surrogates; DocumentError with all problems."""
    return parse_json(path, read_bytes(path, MAX_BYTES)).model(model)


@dataclass(frozen=True)
class JsonValue:
    """The value of a JSON text, and where its parts are in the file."""

    path: Path
    value: object
    source: bytes = field(repr=False)

    @cached_property
    def _lines(self) -> dict[FieldPath, int]:
        return _json_lines(self.source)

    def problem(self, steps: FieldPath, message: str) -> Problem:
        """A problem with a part of the value."""
        return _placed(str(self.path), self._lines, steps, message, 1)

    def model(self, model: type[M]) -> Document[M]:
        """The value as a model; DocumentError with all problems."""
        with _uncollected():
            built, errors = _validate(model, self.value)
        if built is None:
            raise DocumentError(self.problem(steps, text) for steps, text in errors)
        return Document(self.path, built, source=self.source, find_lines=_json_lines)

    def items(self, model: type[M]) -> list[M]:
        """The entries of a list as models; DocumentError with the problems of all of them."""
        assert isinstance(self.value, list)
        with _uncollected():
            read = [_validate(model, item) for item in self.value]
        if any(errors for _, errors in read):
            raise DocumentError(
                self.problem((number, *steps), text)
                for number, (_, errors) in enumerate(read)
                for steps, text in errors
            )
        return [item for item, _ in read if item is not None]


def parse_json(path: Path, data: bytes) -> JsonValue:
    """One strict JSON value from the bytes of a file; DocumentError when they are none."""
    text = _checked(path, data)
    try:
        with _uncollected():
            return JsonValue(path, decode_json(text), data)
    except RejectedJsonError as error:
        line = error.line or _culprit_line(text, error.culprit)
        raise DocumentError([Problem(str(path), line, "", f"is not valid JSON: {error}")]) from None


@contextmanager
def _uncollected() -> Iterator[None]:
    """No collection of garbage within: ten thousand new values, none of it, would have all that is loaded searched."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _culprit_line(text: str, culprit: str) -> int | None:
    literal = positions.json_literal_line(text, culprit)
    if literal is not None or not culprit:
        return literal
    seen: set[FieldPath] = set()
    for path, line in positions.json_fields(text):
        if path in seen and path[-1] == culprit:
            return line
        seen.add(path)
    return None


def _toml_lines(data: bytes) -> dict[FieldPath, int]:
    return positions.toml_lines(data.decode())


def _json_lines(data: bytes) -> dict[FieldPath, int]:
    return positions.json_lines(data.decode())


def _decoded(path: Path) -> str:
    return _checked(path, read_bytes(path, MAX_BYTES))


def _checked(path: Path, data: bytes) -> str:
    try:
        check_utf8(data)
    except UnreadableTextError as error:
        raise DocumentError(_defect_problems(str(path), [error.defect], 1)) from None
    return data.decode()


# Lines that are exactly ``---``: one inside a value is indented, quoted or longer, and cuts nothing.
_FRONT_MATTER = re.compile(r"---\r?\n(.*?)^---(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


def read_front_matter(path: Path, model: type[M]) -> tuple[Document[M], str]:
    """Read a text that starts with YAML between two ``---`` lines: the document, and the text after it."""
    text = _decoded(path)
    found = _FRONT_MATTER.match(text)
    if found is None:
        wrong = "expected to start with front matter: fields between a line --- and another line ---"
        raise DocumentError([Problem(str(path), 1, "", wrong)])
    # The first line of the fields is the file's second.
    first_line = 2
    data = found[1].encode()
    value, defects = parse_yaml(data)
    problems = _defect_problems(str(path), defects, first_line)
    if problems and value is None:
        raise DocumentError(problems)
    built, errors = _validate(model, {} if value is None else value)
    if built is None or problems:
        lines = yaml_lines(data)
        problems += [_placed(str(path), lines, steps, text, first_line) for steps, text in errors]
        raise DocumentError(problems)
    return Document(path, built, source=data, first_line=first_line), text[found.end() :]
