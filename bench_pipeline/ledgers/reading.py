"""A whole ledger, or what was appended to it, read once in bounded memory.

What belongs here: going through blocks, the tail that is still being written, several processes for a large file. What
does not: where the rows go (a callback takes them).
"""

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa

from bench_pipeline.documents.files import open_regular, unreadable
from bench_pipeline.ledgers.blocks import Block, Readable, blocks, compression, open_lines
from bench_pipeline.ledgers.parsing import Parser
from bench_pipeline.ledgers.routes import Routes
from bench_pipeline.ledgers.summary import Summary
from bench_pipeline.ledgers.validity import judge

# A process takes half a second to start, in which one reads this much.
_BYTES_PER_PROCESS = 64 << 20
_MOST_PROCESSES = 4


class Reader:
    """Adds up the blocks of a ledger in order; ``on_rows`` receives the judged rows of each."""

    def __init__(
        self,
        routes: Routes,
        *,
        summary: Summary | None = None,
        on_rows: Callable[[pa.Table], None] | None = None,
    ) -> None:
        self.summary = summary or Summary()
        self._routes = routes
        self._on_rows = on_rows
        self._parser = Parser(keep_extra=on_rows is not None)

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
        if parsed.rows.num_rows:
            rows = judge(parsed.rows, self._routes)
            summary.add_rows(rows)
            if self._on_rows is not None:
                self._on_rows(rows)

    def _reject(self, lines: list[int], block: Block) -> None:
        if block.ended:
            self.summary.reject(lines)
        elif lines:
            self.summary.incomplete_tail = True


def read_stream(
    stream: Readable, routes: Routes, *, at_start: bool = True, size: int | None = None
) -> Summary:
    """The summary of a stream's lines; see ``blocks``."""
    reader = Reader(routes)
    for block in blocks(stream, at_start=at_start, size=size):
        reader.add(block)
    if getattr(stream, "cut_off", False):
        reader.summary.incomplete_tail = True
    return reader.summary


def summarize(path: Path, routes: Routes, *, processes: int | None = None) -> Summary:
    """The summary of a ledger file; a large one is read by several processes, unless ``processes`` says how many.

    Raises:
        DocumentError: the file cannot be read.
        BenchError: it is compressed, and damaged.
    """
    with open_regular(path) as raw:
        size, packed = os.fstat(raw.fileno()).st_size, compression(raw.read(4))
    count = processes or min(os.cpu_count() or 1, _MOST_PROCESSES, size // _BYTES_PER_PROCESS)
    try:
        if count <= 1 or packed:
            with open_lines(path) as stream:
                return read_stream(stream, routes)
        return _in_ranges(path, routes, size, count)
    except OSError as error:
        raise unreadable(path, error) from None


def _in_ranges(path: Path, routes: Routes, size: int, count: int) -> Summary:
    """The summary of a file of ``size`` bytes by ``count`` processes, each over a range of whole lines."""
    bounds = [0, *(_line_start(path, size * at // count) for at in range(1, count)), size]
    # Not forked: this process may have threads.
    with ProcessPoolExecutor(count - 1, mp_context=get_context("spawn")) as pool:
        ranges = [(start, end) for start, end in pairwise(bounds) if start < end]
        others = [pool.submit(_range, path, routes.own, start, end) for start, end in ranges[1:]]
        whole = _range(path, routes.own, *ranges[0])
        for other in others:
            whole.append(other.result())
    return whole


def _range(path: Path, own_routes: dict[str, str], start: int, end: int) -> Summary:
    with open_regular(path) as stream:
        stream.seek(start)
        return read_stream(stream, Routes(own_routes), at_start=start == 0, size=end - start)


def _line_start(path: Path, offset: int) -> int:
    """The first place at or after ``offset`` where a line begins, or the end of the file."""
    with open_regular(path) as stream:
        stream.seek(offset - 1)
        while data := stream.readline(1 << 20):
            if data.endswith(b"\n"):
                break
        return stream.tell()
