"""The bytes of a ledger in blocks of whole lines, however large it is; decompressed on the way.

What belongs here: opening, decompressing, cutting at line feeds, lines that are too long. What does not: what a line
says. A byte order mark at the beginning is dropped.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from bench_pipeline.documents.files import open_regular
from bench_pipeline.documents.jsonl import MAX_LINE_BYTES
from bench_pipeline.errors import BenchError

# Every thread holds a few of them.
BLOCK_BYTES = 2 << 20
# What is lost at most of a compressed ledger that is cut off.
_PIECE_BYTES = 1 << 14
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Readable(Protocol):
    """What blocks are read from."""

    def read(self, size: int, /) -> bytes:
        """The next ``size`` bytes, fewer at the end."""


@dataclass(frozen=True)
class Block:
    """Some whole lines, or the last line of a ledger without a line feed (``ended`` is False).

    ``too_long``: a single line of more than MAX_LINE_BYTES, of which nothing is kept.
    """

    data: bytes
    ended: bool = True
    too_long: bool = False


def compression(start: bytes) -> str | None:
    """The compression of a file, told from its first bytes; whatever it is called."""
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), None)


@contextmanager
def open_lines(path: Path) -> Iterator[Readable]:
    """The text of a ledger file as bytes, decompressed; DocumentError when it cannot be opened."""
    with open_regular(path) as raw:
        start = raw.read(4)
        raw.seek(0)
        yield decompressed(raw, start)


def decompressed(raw: Readable, start: bytes) -> Readable:
    """The text behind ``raw``, whose first bytes are ``start``."""
    name = compression(start)
    if name is None:
        return raw
    return _Decompressed(raw, name)


class _Decompressed:
    """A compressed stream as text; one that is cut off ends where its last whole piece does."""

    def __init__(self, raw: Readable, name: str) -> None:
        self._name = name
        self._stream: Any = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), name)
        self.cut_off = False

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes, fewer at the end."""
        pieces: list[bytes] = []
        while size and not self.cut_off and (piece := self._piece(min(size, _PIECE_BYTES))):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _piece(self, size: int) -> bytes:
        try:
            data: bytes = self._stream.read(size)
        except OSError as error:
            if "truncated" not in str(error).lower():
                wrong = f"not the {self._name} that its start promises: {error}"
                raise BenchError("decompressing a ledger", wrong, "copy it again") from None
            self.cut_off = True
            return b""
        return data


def blocks(stream: Readable, *, at_start: bool = True, size: int | None = None) -> Iterator[Block]:
    """The lines of a stream, or of its next ``size`` bytes; ``at_start``: a byte order mark may come first."""
    rest, left = b"", size
    while True:
        wanted = BLOCK_BYTES if left is None else min(BLOCK_BYTES, left)
        data = stream.read(wanted) if wanted else b""
        left = None if left is None else left - len(data)
        if at_start:
            data, at_start = data.removeprefix(_BYTE_ORDER_MARK), False
        if not data:
            break
        end = data.rfind(b"\n") + 1
        if not end:
            rest += data
        elif rest and len(rest) + data.find(b"\n") > MAX_LINE_BYTES:
            first = data.find(b"\n") + 1
            yield Block(b"", too_long=True)
            if end > first:
                yield Block(data[first:end])
            rest = data[end:]
        else:
            yield Block(b"".join((rest, memoryview(data)[:end])))
            rest = data[end:]
        if len(rest) > MAX_LINE_BYTES:
            # Enough to know that the line is too long.
            rest = rest[: MAX_LINE_BYTES + 1]
    if rest:
        yield Block(
            rest if len(rest) <= MAX_LINE_BYTES else b"", ended=False, too_long=len(rest) > MAX_LINE_BYTES
        )
