"""YAML text to plain Python values, strictly.

libyaml finds the events; the values are built here, so that scalars follow YAML 1.2 and keep their text.
What belongs here: everything that is wrong about a document as YAML (duplicate keys, tags, merge keys,
aliases that explode, depth). What does not: what a document should say (models) and files (``reading``).

Values are ``None``, ``str`` (quoted or block text), ``Plain`` (text written without quotes), ``list`` and
``dict`` with text keys. See https://yaml.org/spec/1.2.2/#103-core-schema.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml
from yaml._yaml import CParser
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from bench_pipeline.documents.describing import FieldPath, Plain, shorten

MAX_BYTES = 1 << 20
# Far beyond what any document kind nests, far below what would trouble a recursive validator.
MAX_DEPTH = 64
# Enough for anchors used as a convenience; a bomb of nine levels of nine reaches it at once.
MAX_ALIASED_NODES = 10_000

# More would only repeat the same slip; the reader is told that there are more.
MAX_DEFECTS = 100

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


@dataclass(frozen=True)
class Defect:
    """Something wrong with the text itself: a line (from 1, or None), the field it is in, and a sentence."""

    line: int | None
    field: FieldPath
    message: str


class UnreadableTextError(Exception):
    """A defect after which the rest of the text cannot be read."""

    def __init__(self, line: int | None, field: FieldPath, message: str) -> None:
        super().__init__(message)
        self.defect = Defect(line, field, message)


def parse_yaml(data: bytes) -> tuple[object, list[Defect]]:
    """The value of one YAML document, and what is wrong with the text (then the value is a best effort)."""
    try:
        _check_bytes(data)
    except UnreadableTextError as error:
        return None, [error.defect]
    value, defects = _Builder(data, None).read()
    if defects:
        # Defects are rare: only now is it worth to know the line of every field.
        value, defects = _Builder(data, {}).read()
    return value, defects


def yaml_lines(data: bytes) -> dict[FieldPath, int]:
    """The line, from 1, of every field of a text that parses: of a mapping's keys, of a list's entries."""
    lines: dict[FieldPath, int] = {}
    _Builder(data, lines).build()
    return lines


def check_utf8(data: bytes) -> None:
    """Raise UnreadableTextError unless ``data`` is UTF-8 without a byte order mark and without NUL."""
    if data.startswith(b"\xef\xbb\xbf"):
        raise UnreadableTextError(1, (), "starts with a byte order mark; save it as UTF-8 without one")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        wrong = f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise UnreadableTextError(line, (), wrong) from None
    nul = data.find(b"\0")
    if nul >= 0:
        raise UnreadableTextError(data.count(b"\n", 0, nul) + 1, (), "contains a NUL byte")


def _check_bytes(data: bytes) -> None:
    if len(data) > MAX_BYTES:
        raise UnreadableTextError(
            None, (), f"is larger than {MAX_BYTES} bytes (1 MiB), the most a document may have"
        )
    check_utf8(data)


class _Frame:
    """An open mapping or list: where its next value goes."""

    __slots__ = ("anchor", "items", "key", "label", "mapping", "start")

    def __init__(self, mapping: dict[str, object] | None, anchor: str | None, start: int) -> None:
        self.mapping = mapping
        self.items: list[object] = []
        self.key: str | None = None
        self.label: str | None = None
        self.anchor = anchor
        self.start = start


# Stands for the key of an entry that is wrong, so that its value is read and dropped.
_NO_KEY = "\0"


class _Builder:
    """Builds the value of one document from libyaml's events, without recursion."""

    def __init__(self, data: bytes, lines: dict[FieldPath, int] | None) -> None:
        self._defects: list[Defect] = []
        self._data = data
        self._lines = lines
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[object, int]] = {}
        self._open_anchors: set[str] = set()
        self._nodes = 0
        self._aliased = 0
        self._root: object = None

    def read(self) -> tuple[object, list[Defect]]:
        """The value (None when it cannot be read to the end) and all defects."""
        try:
            return self.build(), self._defects
        except UnreadableTextError as error:
            return None, [*self._defects, error.defect]

    def build(self) -> object:
        """Read to the end; UnreadableTextError where that is impossible."""
        parser: Any = CParser(self._data)
        try:
            self._consume(parser.get_event)
        except yaml.MarkedYAMLError as error:
            raise self._syntax(error) from None
        except yaml.reader.ReaderError as error:
            line = self._data.count(b"\n", 0, error.position) + 1
            raise UnreadableTextError(
                line, (), f"contains a character that YAML does not allow ({error.reason})"
            ) from None
        finally:
            parser.dispose()
        return self._root

    def _syntax(self, error: yaml.MarkedYAMLError) -> UnreadableTextError:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        context = f" {error.context}" if error.context else ""
        return UnreadableTextError(line, (), f"is not valid YAML: {error.problem}{context}")

    def _consume(self, next_event: Callable[[], Any]) -> None:
        documents = 0
        while True:
            event = next_event()
            kind = type(event)
            if kind is ScalarEvent:
                self._scalar(event)
            elif kind is MappingStartEvent:
                self._start(event, {})
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                self._end()
            elif kind is SequenceStartEvent:
                self._start(event, None)
            elif kind is AliasEvent:
                self._alias(event)
            elif kind is DocumentStartEvent:
                documents += 1
                self._start_document(event, documents)
            elif kind is StreamEndEvent:
                return

    def _start_document(self, event: Any, count: int) -> None:
        line = event.start_mark.line + 1
        if count > 1:
            raise UnreadableTextError(line, (), "a second YAML document starts here; a file holds one")
        if event.version not in {None, (1, 2)}:
            raise UnreadableTextError(line, (), "asks for another YAML version; documents are YAML 1.2")

    def _scalar(self, event: Any) -> None:
        self._nodes += 1
        text = event.value
        if event.tag is not None:
            self._tag(event)
        plain = not event.style
        stack = self._stack
        if stack and stack[-1].mapping is not None and stack[-1].key is None:
            self._key(event, text, plain)
            return
        value = (None if text in _NULLS else Plain(text)) if plain else text
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, 1)
        self._place(event, value)

    def _key(self, event: Any, text: str, plain: bool) -> None:
        frame = self._stack[-1]
        mapping = frame.mapping
        assert mapping is not None
        if plain and text == "<<":
            self._defect(event, "merge keys (<<) are not part of YAML 1.2; write the fields out")
        elif plain and text == "":
            self._defect(event, "a key is empty; write its name, or quotes around it")
        elif text in mapping:
            first = (self._lines or {}).get((*self._path(), text))
            self._defect(
                event, f"the key {shorten(text)!r} is given twice (first on line {first}); keep one", text
            )
        else:
            if event.anchor is not None:
                self._anchors[event.anchor] = (text, 1)
            mapping[text] = None
            frame.key = frame.label = text
            if self._lines is not None:
                self._lines[self._path()] = event.start_mark.line + 1
            return
        frame.key, frame.label = _NO_KEY, None

    def _place(self, event: Any, value: object) -> None:
        if not self._stack:
            self._root = value
            return
        frame = self._stack[-1]
        if frame.mapping is None:
            frame.items.append(value)
            if self._lines is not None:
                self._lines[(*self._path()[:-1], len(frame.items) - 1)] = event.start_mark.line + 1
        elif frame.key is None:
            self._defect(event, "a key is a list or a mapping; keys are text")
            frame.key, frame.label = _NO_KEY, None
        else:
            if frame.key != _NO_KEY:
                frame.mapping[frame.key] = value
            frame.key = None

    def _start(self, event: Any, mapping: dict[str, object] | None) -> None:
        self._nodes += 1
        if event.tag is not None:
            self._tag(event)
        if len(self._stack) >= MAX_DEPTH:
            line = event.start_mark.line + 1
            raise UnreadableTextError(line, self._path()[:8], f"is nested deeper than {MAX_DEPTH} levels")
        frame = _Frame(mapping, event.anchor, self._nodes + self._aliased)
        self._place(event, frame.items if mapping is None else mapping)
        if event.anchor is not None:
            self._anchors.pop(event.anchor, None)
            self._open_anchors.add(event.anchor)
        self._stack.append(frame)

    def _end(self) -> None:
        frame = self._stack.pop()
        if frame.anchor is not None:
            value = frame.items if frame.mapping is None else frame.mapping
            self._anchors[frame.anchor] = (value, self._nodes + self._aliased - frame.start + 1)
            self._open_anchors.discard(frame.anchor)

    def _alias(self, event: Any) -> None:
        line = event.start_mark.line + 1
        known = self._anchors.get(event.anchor)
        if known is None:
            inside = event.anchor in self._open_anchors
            wrong = "contains itself" if inside else "is not defined above this line"
            raise UnreadableTextError(line, self._path(), f"the anchor {shorten(event.anchor)!r} {wrong}")
        value, size = known
        self._aliased += size
        if self._aliased > MAX_ALIASED_NODES:
            raise UnreadableTextError(
                line, self._path(), f"aliases repeat more than {MAX_ALIASED_NODES} values; write less"
            )
        if self._stack and self._stack[-1].mapping is not None and self._stack[-1].key is None:
            self._defect(event, "a key is an alias; write the key's text")
            self._stack[-1].key, self._stack[-1].label = _NO_KEY, None
            return
        self._place(event, value)

    def _tag(self, event: Any) -> None:
        tag = event.tag.replace("tag:yaml.org,2002:", "!!")
        self._defect(event, f"the tag {shorten(tag)} is not used here; put text in quotes instead")

    def _defect(self, event: Any, message: str, *below: str) -> None:
        line = event.start_mark.line + 1
        if len(self._defects) == MAX_DEFECTS:
            raise UnreadableTextError(line, (), "there are more problems from here on")
        self._defects.append(Defect(line, (*self._path(), *below), message))

    def _path(self) -> FieldPath:
        """The field that is being read: a mapping's key, a list's next index."""
        path: list[str | int] = []
        top = len(self._stack) - 1
        for depth, frame in enumerate(self._stack):
            if frame.mapping is None:
                path.append(len(frame.items) - (depth < top))
            elif frame.label is not None and (depth < top or frame.key is not None):
                path.append(frame.label)
        return tuple(path)
