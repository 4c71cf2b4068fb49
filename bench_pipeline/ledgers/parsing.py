"""Blocks of lines to columns: fast where rows look like those before, exact everywhere.

What belongs here: which lines are rows, and their values. What does not: cutting a file into blocks (``blocks``) and
what values mean (``validity``).

Lines are decoded many at once by a decoder made for the keys and types that rows had so far (msgspec, which refuses
everything malformed but a key that is given twice; so keys are counted, in the rows and in the bytes). Lines that do
not fit are read one by one by the strict decoder of ``documents``.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Annotated, Any

import msgspec
import numpy as np
import pyarrow as pa

from bench_pipeline.documents.jsonl import RejectedJsonError, decode_json
from bench_pipeline.ledgers.fields import (
    COUNTS,
    FIELD_OF,
    FLAGS,
    LARGEST_COUNT,
    READ,
    SPELLINGS,
    TEXTS,
    conflict,
    extra_text,
    read_row,
)

# A ledger whose rows have more keys than this is read by the exact decoder alone.
_MOST_KEYS = 200
_PIECE_BYTES = 1 << 18
# Below this, to look for the lines that do not fit costs more than to read all of them exactly.
_FEW_LINES = 8
_QUOTE, _COLON, _SPACE = b'": '
_SPACED_COLON = re.compile(rb'"[ \t\r]+:')
_WHITESPACE = b" \t\r"
# What msgspec takes for no name of a field: a key that has to be escaped.
_ESCAPED_KEY = re.compile(r'["\\\x00-\x1f]')

_COUNT = Annotated[int, msgspec.Meta(ge=-LARGEST_COUNT, le=LARGEST_COUNT)] | None
_SCALAR = str | int | float | bool | None


# Of each key, a value for every row.
_Values = dict[str, list[Any]]


@dataclass(frozen=True)
class Parsed:
    """What a block holds: its rows (``fields.READ``), how many lines it has, and those that are no rows."""

    rows: pa.Table
    lines: int
    rejected: list[int] = field(default_factory=list)


class Parser:
    """Reads the blocks of one ledger in order. ``keep_extra``: also the fields that are none of ours."""

    def __init__(self, *, keep_extra: bool = False) -> None:
        self._shape = _Shape({}, keep_extra=keep_extra)

    def parse(self, block: bytes, first_line: int) -> Parsed:
        """The rows of a block that ends where a line ends; ``first_line`` is the number of its first line."""
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n")
        sorted_out = _SortedOut(first_line)
        while not all(self._sort_out(piece, sorted_out) for piece in _pieces(block)):
            sorted_out = _SortedOut(first_line)
        tables = [_columns(self._shape, sorted_out.fitting, sorted_out.fitting_lines)]
        if sorted_out.odd:
            tables.append(_exact_columns(sorted_out.odd))
        rows = pa.concat_tables(tables).combine_chunks()
        return Parsed(rows, sorted_out.next_line - first_line, sorted_out.rejected)

    def _sort_out(self, lines: bytes, into: "_SortedOut") -> bool:
        """Sort lines into rows that fit, other rows, and no rows; False when the shape grew, to start over."""
        fitting = self._shape.decode(lines)
        if fitting is not None:
            into.fit(*fitting)
            return True
        middle = lines.find(b"\n", len(lines) // 2) + 1
        if middle and middle < len(lines) and lines.count(b"\n") > _FEW_LINES:
            return self._sort_out(lines[:middle], into) and self._sort_out(lines[middle:], into)
        for text in lines.removesuffix(b"\n").split(b"\n"):
            row = _exact(text)
            into.take(text, row)
            if row is not None and (wider := self._shape.widened(row)) is not None:
                self._shape = wider
                return False
        return True


@dataclass
class _SortedOut:
    """The lines of a block: rows of the known shape, other rows, and lines that are no rows."""

    next_line: int
    fitting: "_Values" = field(default_factory=dict)
    numbers: list[range] = field(default_factory=list)
    odd: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    rejected: list[int] = field(default_factory=list)

    @property
    def fitting_lines(self) -> Any:
        """The numbers of the lines in ``fitting``."""
        return np.concatenate([np.arange(0), *(np.arange(lines.start, lines.stop) for lines in self.numbers)])

    def fit(self, count: int, values: "_Values") -> None:
        """Take the next lines, each of them a row of the known shape."""
        for key, column in values.items():
            self.fitting.setdefault(key, []).extend(column)
        self.numbers.append(range(self.next_line, self.next_line + count))
        self.next_line += count

    def take(self, text: bytes, row: dict[str, Any] | None) -> None:
        """Take the next line with what the exact decoder made of it; a blank one is nothing."""
        if row is not None:
            self.odd.append((self.next_line, row))
        elif text.strip(_WHITESPACE):
            self.rejected.append(self.next_line)
        self.next_line += 1


def _pieces(block: bytes) -> Iterator[bytes]:
    """The lines of a block in pieces that are decoded at once: small, so that one bad line costs little."""
    start = 0
    while start < len(block):
        end = block.find(b"\n", start + _PIECE_BYTES) + 1 or len(block)
        yield block[start:end]
        start = end


@dataclass(frozen=True)
class _Key:
    """A key of rows: the type by which its values are decoded, and whether every row has it."""

    kind: Any
    always: bool


class _Shape:
    """The keys that rows have had, and the decoder of rows that fit."""

    def __init__(self, keys: Mapping[str, _Key], *, keep_extra: bool) -> None:
        self.keys = keys
        self._keep_extra = keep_extra
        self._attributes = {key: key if key in FIELD_OF else f"x{at}" for at, key in enumerate(keys)}
        fields = [
            (self._attributes[name], key.kind)
            if key.always
            else (self._attributes[name], key.kind, msgspec.UNSET)
            for name, key in keys.items()
        ]
        struct = msgspec.defstruct(
            "Row",
            fields,
            forbid_unknown_fields=True,
            gc=False,
            kw_only=True,
            rename={attribute: key for key, attribute in self._attributes.items()},
        )
        self._decoder = msgspec.json.Decoder(struct)

    def decode(self, lines: bytes) -> "tuple[int, _Values] | None":
        """How many rows there are and their values; None unless every line is one that fits, no key given twice."""
        if not lines.startswith(b"{"):
            return None
        try:
            rows = self._decoder.decode_lines(lines)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        data = np.frombuffer(lines.removesuffix(b"\n"), np.uint8)
        if data[-1] != ord("}") or len(rows) != 1 + _objects_apart(data):
            return None
        quotes = data[:-1] == _QUOTE
        if (quotes & (data[1:] <= _SPACE)).any() and _SPACED_COLON.search(lines):
            return None
        counted, values = self._take_apart(rows)
        return (len(rows), values) if counted == np.count_nonzero(quotes & (data[1:] == _COLON)) else None

    def _take_apart(self, rows: Sequence[Any]) -> "tuple[int, _Values]":
        """How many different keys the rows have, those inside values too; and the values that are kept."""
        count, values = len(rows) * len(self.keys), {}
        for name, key in self.keys.items():
            ours = name in FIELD_OF
            if not ours and key.always and key.kind is not Any and not self._keep_extra:
                continue
            column = _COLUMNS[name](rows) if ours else [*map(attrgetter(self._attributes[name]), rows)]
            if not key.always:
                count -= column.count(msgspec.UNSET)
            if key.kind is Any:
                count += sum(_inner_keys(value) for value in column if isinstance(value, (dict, list)))
            if ours or self._keep_extra:
                values[name] = column
        return count, values

    def widened(self, row: Mapping[str, Any]) -> "_Shape | None":
        """A shape that this row fits too; None when this one cannot be widened for it."""
        keys = {name: key if name in row else _Key(key.kind, always=False) for name, key in self.keys.items()}
        for name, value in row.items():
            known = self.keys.get(name)
            if known is None:
                keys[name] = _Key(_kind(name, value), always=not self.keys)
            elif name not in FIELD_OF and isinstance(value, (dict, list)):
                keys[name] = _Key(Any, known.always)
        if keys == self.keys or len(keys) > _MOST_KEYS or any(map(_ESCAPED_KEY.search, keys)):
            return None
        return _Shape(keys, keep_extra=self._keep_extra)


def _column_of(key: str) -> Callable[[Sequence[Any]], list[Any]]:
    """What collects a key's values; a comprehension is three times as fast as mapping ``attrgetter``."""
    scope: dict[str, Any] = {}
    exec(f"def column(rows): return [row.{key} for row in rows]", scope)  # noqa: S102 - keys of ours
    column: Callable[[Sequence[Any]], list[Any]] = scope["column"]
    return column


_COLUMNS = {key: _column_of(key) for key in FIELD_OF}


def _columns(shape: _Shape, values: "_Values", lines: Any) -> pa.Table:
    """The columns of rows of a shape."""
    count = len(lines)
    columns: dict[str, pa.Array] = {"line": pa.array(lines, pa.int64())}
    faults: list[str | None] = []
    for name, spellings in SPELLINGS.items():
        kind = READ.field(name).type
        given = [spelling for spelling in spellings if values.get(spelling)]
        if len(given) == 1:
            (spelling,) = given
            first = pa.bool_() if shape.keys[spelling].kind == bool | None else kind
            columns[name] = pa.array(_without_unset(shape, spelling, values), first).cast(kind)
        elif given:
            merged, differ = _merge([_without_unset(shape, spelling, values) for spelling in given])
            columns[name] = pa.array(merged, kind)
            faults = _blame(faults or [None] * count, differ, conflict(name))
        else:
            columns[name] = pa.nulls(count, kind)
    columns["fault"] = pa.array(faults, pa.string()) if faults else pa.nulls(count, pa.string())
    extra = {name: column for name, column in values.items() if name not in FIELD_OF}
    columns["extra"] = pa.array(_extra_texts(extra), pa.string()) if extra else pa.nulls(count, pa.string())
    return pa.table(columns, schema=READ)


def _extra_texts(extra: "_Values") -> Iterator[str | None]:
    """The fields that are none of ours of each row, as JSON."""
    for values in zip(*extra.values(), strict=True):
        row = zip(extra, values, strict=True)
        yield extra_text({name: value for name, value in row if value is not msgspec.UNSET})


def _objects_apart(data: "np.ndarray[tuple[int], np.dtype[np.uint8]]") -> int:
    """How many lines end with a brace and are followed by one that begins with a brace; 0 if any do not."""
    (feeds,) = np.nonzero(data == ord("\n"))
    if not feeds.size:
        return 0
    apart = (data[feeds - 1] == ord("}")) & (data[feeds + 1] == ord("{"))
    return feeds.size if apart.all() else -1


def _exact(text: bytes) -> dict[str, Any] | None:
    """The object of a line, read by the strict decoder; None when the line is none."""
    try:
        value = decode_json(text.decode("utf-8"))
    except (UnicodeDecodeError, RejectedJsonError):
        return None
    return value if isinstance(value, dict) else None


def _exact_columns(rows: Sequence[tuple[int, dict[str, Any]]]) -> pa.Table:
    return pa.Table.from_pylist([{"line": line, **read_row(row)} for line, row in rows], schema=READ)


def _kind(key: str, value: Any) -> Any:
    """The type by which the decoder takes the values of a key; another is left to the exact decoder."""
    name = FIELD_OF.get(key)
    if name is None:
        return Any if isinstance(value, (dict, list)) else _SCALAR
    if name in TEXTS:
        return str | None
    if name in COUNTS:
        return _COUNT
    if name in FLAGS and (isinstance(value, bool) or value is None):
        return bool | None
    return float | None


def _inner_keys(value: Any) -> int:
    """How many keys the objects inside a value have."""
    count, pending = 0, [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            count += len(item)
            pending += item.values()
        elif isinstance(item, list):
            pending += item
    return count


def _without_unset(shape: _Shape, key: str, values: _Values) -> list[Any]:
    """The values of a key, with None where there is none."""
    if shape.keys[key].always:
        return values[key]
    return [None if value is msgspec.UNSET else value for value in values[key]]


def _merge(columns: Sequence[Sequence[Any]]) -> tuple[list[Any], list[bool]]:
    """One column of several spellings, and where these differ."""
    merged, differ = [], []
    for values in zip(*columns, strict=True):
        given = {value for value in values if value is not None}
        first = next(iter(given), None)
        merged.append(float(first) if isinstance(first, bool) else first)
        differ.append(len(given) > 1)
    return merged, differ


def _blame(faults: list[str | None], where: Sequence[bool], reason: str) -> list[str | None]:
    return [
        ("; ".join(filter(None, (fault, reason))) if at else fault)
        for fault, at in zip(faults, where, strict=True)
    ]
