"""Blocks of lines to columns: which lines are rows, and their values.

What belongs here: the two ways of reading a line. What does not: cutting a file into blocks (``blocks``) and what
values mean (``validity``).

The strict decoder of ``documents`` has the last word. Of a large ledger it sees only the odd lines: the others are read
by one compiled pass (``scanning``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Timer
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from bench_pipeline.documents.jsonl import RejectedJsonError, decode_json
from bench_pipeline.ledgers.fields import (
    COUNTS,
    FLAGS,
    NUMBERS,
    SHARES,
    SPELLINGS,
    TEXTS,
    extra_text,
    read_row,
)
from bench_pipeline.ledgers.rows import Rows

_WHITESPACE = b" \t\r"
# Rows and odd lines that are read at once; few enough to stay in a processor's cache.
_MOST_ROWS, _MOST_ODD = 8192, 1024
_KEPT = (*TEXTS, "extra")
# To load what is compiled takes half of this.
_SLOW_S = 2.0

Line = tuple[int, bytes]


class Scanning(Protocol):
    """What is used of the module ``scanning``."""

    WORK_SHAPE: tuple[int, int]
    FLAG: int
    SHARE: int
    COUNT: int
    TEXT: int
    scan: Callable[..., tuple[int, int, int, int]]


def compiled(on_slow: Callable[[], None] | None = None) -> Scanning:
    """The compiled pass. ``on_slow`` is called when it takes long to have it: it was not compiled before."""
    slow = Timer(_SLOW_S, on_slow or (lambda: None))
    slow.start()
    try:
        from bench_pipeline.ledgers import scanning
    finally:
        slow.cancel()
    return scanning


@dataclass(frozen=True)
class Parsed:
    """What a block holds: its rows in some pieces, how many lines it has, and those that are no rows."""

    rows: list[Rows]
    lines: int
    rejected: list[int]


class Parser:
    """Reads blocks of a ledger. ``keep``: also labels and the fields that are none of ours.

    ``scanning``: the pass that reads all but odd lines; without it, all are.
    """

    def __init__(self, *, keep: bool = False, scanning: Scanning | None = None) -> None:
        self._texts = _KEPT if keep else _KEPT[:1]
        self._scanner = None if scanning is None else _Scanner(scanning, self._texts)

    def parse(self, block: bytes, first_line: int) -> Parsed:
        """The rows of a block that ends where a line ends; ``first_line`` is the number of its first line."""
        pieces: list[Rows] = []
        if self._scanner is None:
            texts = block.removesuffix(b"\n").split(b"\n")
            count, odd = len(texts), [*enumerate(texts, first_line)]
        else:
            pieces, count, odd = self._scanner.read(block, first_line)
        rows, lines, rejected = [], [], []
        for line, text in odd:
            row = _exact(text)
            if row is not None:
                rows.append(read_row(row))
                lines.append(line)
            elif text.strip(_WHITESPACE):
                rejected.append(line)
        if rows:
            pieces.append(Rows.of(rows, lines, self._texts))
        return Parsed(pieces, count, rejected)


def _exact(text: bytes) -> dict[str, Any] | None:
    """The object of a line, read by the strict decoder; None when the line is none."""
    try:
        value = decode_json(text.decode("utf-8"))
    except (UnicodeDecodeError, RejectedJsonError):
        return None
    return value if isinstance(value, dict) else None


class _Scanner:
    """The compiled pass, and the arrays that it reads from and writes to."""

    def __init__(self, scanning: Scanning, texts: Sequence[str]) -> None:
        self._scan = scanning.scan
        self._texts = texts
        self._work = np.empty(scanning.WORK_SHAPE, dtype=np.int64)
        kinds = {
            **dict.fromkeys(FLAGS, scanning.FLAG),
            **dict.fromkeys(SHARES, scanning.SHARE),
            **dict.fromkeys(COUNTS, scanning.COUNT),
            **dict.fromkeys(TEXTS, scanning.TEXT),
        }
        columns = (*NUMBERS, *texts)
        spelled = [(name, field) for field in columns for name in SPELLINGS.get(field, ())]
        table, start = [], 0
        for name, field in spelled:
            table.append((start, len(name), columns.index(field), kinds[field]))
            start += len(name)
        names = "".join(name for name, _ in spelled).encode()
        self._fields = (names, np.ascontiguousarray(np.array(table, dtype=np.int64).T))

    def read(self, block: bytes, first_line: int) -> tuple[list[Rows], int, list[Line]]:
        """The rows of a block, how many lines it has, and those that are odd."""
        if not block.endswith(b"\n"):
            block += b"\n"
        pieces: list[Rows] = []
        odd: list[Line] = []
        at = count = 0
        while at < len(block):
            at, lines, rows = self._next(block, at, first_line + count, odd)
            count += lines
            if rows is not None:
                pieces.append(rows)
        return pieces, count, odd

    def _next(self, block: bytes, at: int, first_line: int, odd: list[Line]) -> tuple[int, int, Rows | None]:
        """Where to go on, how many lines were read, and their rows."""
        values = np.empty((len(NUMBERS) + len(self._texts), _MOST_ROWS))
        texts = np.empty((len(self._texts), len(block)), dtype=np.uint8)
        ends = np.zeros((len(self._texts), _MOST_ROWS + 1), dtype=np.int64)
        lines = np.empty(_MOST_ROWS, dtype=np.int64)
        found = np.empty((3, _MOST_ODD), dtype=np.int64)
        at, passed, rows, odds = self._scan(
            block, at, 0, 0, self._fields, self._work, lines, (values, texts, ends), found
        )
        odd += [(first_line + line, block[start:end]) for line, start, end in found[:, :odds].T.tolist()]
        if not rows:
            return at, passed, None
        given = values[len(NUMBERS) :, :rows]
        columns = {
            name: _strings(texts[number], ends[number, : rows + 1], given[number])
            for number, name in enumerate(self._texts)
        }
        if "extra" in columns:
            columns["extra"] = _spelled_as_ours(columns["extra"], given[-1])
        return at, passed, Rows(first_line + lines[:rows], values[: len(NUMBERS), :rows], columns)


def _strings(text: Any, ends: Any, given: Any) -> pa.Array:
    """A column of texts, of which each begins where the one before ends; null where NaN is given."""
    valid = np.packbits(~np.isnan(given), bitorder="little")
    # Copied, for a row is kept longer than the block that it was in.
    bytes_of = text[: ends[-1]].tobytes()
    return pa.StringArray.from_buffers(
        len(given), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(bytes_of), pa.py_buffer(valid)
    )


def _spelled_as_ours(extra: pa.Array, given: Any) -> pa.Array:
    """Objects as JSON, of which those are written anew that are spelled in another way."""
    (others,) = np.nonzero(given == 0)
    if not others.size:
        return extra
    texts = extra.to_pylist()
    for at in others.tolist():
        value = decode_json(texts[at])
        texts[at] = extra_text(value) if isinstance(value, dict) else None
    return pa.array(texts, pa.string())
