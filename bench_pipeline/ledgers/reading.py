"""A whole ledger, or what was appended to it, read once in bounded memory.

What belongs here: going through blocks, the tail that is still being written, a large file in ranges. What does not:
where the rows go (a callback takes them).
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from bench_pipeline.documents.files import open_regular, unreadable
from bench_pipeline.ledgers.blocks import Block, Readable, blocks, compression, open_lines
from bench_pipeline.ledgers.parsing import Parser, Scanning, compiled
from bench_pipeline.ledgers.routes import Routes
from bench_pipeline.ledgers.summary import Summary
from bench_pipeline.ledgers.validity import judge

# To load the compiled pass takes the time in which the exact decoder reads about this much.
_BYTES_TO_COMPILE = 16 << 20
# What a compressed ledger grows to, about.
_UNPACKED = 8
_MOST_THREADS = 4


def scanning_for(size: int, start: bytes, on_slow: Callable[[], None] | None = None) -> Scanning | None:
    """The compiled pass where it pays for ``size`` bytes of a ledger, which begin with ``start``."""
    if size * (_UNPACKED if compression(start) else 1) < _BYTES_TO_COMPILE:
        return None
    return compiled(on_slow)


class Reader:
    """Adds up the blocks of a ledger in order; ``on_rows`` receives the judged rows of each."""

    def __init__(
        self,
        routes: Routes,
        *,
        summary: Summary | None = None,
        on_rows: Callable[[pa.Table], None] | None = None,
        scanning: Scanning | None = None,
    ) -> None:
        self.summary = summary or Summary()
        self._routes = routes
        self._on_rows = on_rows
        self._parser = Parser(keep=on_rows is not None, scanning=scanning)

    def add(self, block: Block) -> None:
        """Add the next block."""
        summary = self.summary
        first = summary.lines + 1
        if block.too_long:
            summary.lines += 1
            self._reject([first], block)
            return
        parsed = self._parser.parse(block.data, first)
        summary.lines += parsed.lines
        self._reject(parsed.rejected, block)
        judged = [judge(rows, self._routes) for rows in parsed.rows]
        for rows in judged:
            summary.add_rows(rows)
        if judged and self._on_rows is not None:
            self._on_rows(pa.concat_tables([rows.table() for rows in judged]).sort_by("line"))

    def _reject(self, lines: list[int], block: Block) -> None:
        if block.ended:
            self.summary.reject(lines)
        elif lines:
            self.summary.incomplete_tail = True


def summarize(
    path: Path,
    routes: Routes,
    *,
    threads: int | None = None,
    scanning: Scanning | None = None,
    on_slow: Callable[[], None] | None = None,
) -> Summary:
    """The summary of a ledger file; a large one is read by the compiled pass and by several threads.

    ``threads`` and ``scanning`` say so whatever its size. ``on_slow`` is called when that pass must be compiled first.

    Raises:
        DocumentError: the file cannot be read.
        BenchError: it is compressed, and damaged.
    """
    with open_regular(path) as raw:
        size, start = os.fstat(raw.fileno()).st_size, raw.read(4)
    scanning = scanning or scanning_for(size, start, on_slow)
    count = threads or (min(os.cpu_count() or 1, _MOST_THREADS) if scanning else 1)
    try:
        if count == 1 or compression(start):
            with open_lines(path) as stream:
                return _read(stream, Reader(routes, scanning=scanning))
        return _in_ranges(path, size, [Reader(routes, scanning=scanning) for _ in range(count)])
    except OSError as error:
        raise unreadable(path, error) from None


def _read(stream: Readable, reader: Reader, *, at_start: bool = True, size: int | None = None) -> Summary:
    """The summary of a stream's lines; see ``blocks``."""
    for block in blocks(stream, at_start=at_start, size=size):
        reader.add(block)
    if getattr(stream, "cut_off", False):
        reader.summary.incomplete_tail = True
    return reader.summary


def _in_ranges(path: Path, size: int, readers: Sequence[Reader]) -> Summary:
    """The summary of a file of ``size`` bytes by several readers, each over a range of whole lines."""
    count = len(readers)
    bounds = [0, *(_line_start(path, size * at // count) for at in range(1, count)), size]
    with ThreadPoolExecutor(count) as pool:
        whole, *others = pool.map(partial(_range, path), pairwise(bounds), readers)
    for other in others:
        whole.append(other)
    return whole


def _range(path: Path, bounds: tuple[int, int], reader: Reader) -> Summary:
    start, end = bounds
    with open_regular(path) as stream:
        stream.seek(start)
        return _read(stream, reader, at_start=start == 0, size=end - start)


def _line_start(path: Path, offset: int) -> int:
    """The first place at or after ``offset`` where a line begins, or the end of the file."""
    with open_regular(path) as stream:
        stream.seek(max(offset - 1, 0))
        while data := stream.readline(1 << 20):
            if data.endswith(b"\n"):
                break
        return stream.tell()
