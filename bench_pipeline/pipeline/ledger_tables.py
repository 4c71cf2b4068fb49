"""The tables of ledgers: the rows of one, read from where the last reading ended, and the summaries of all.

What belongs here: reading into the store. What does not: which ledgers are read when (``ledger_watch``).
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa

from bench_pipeline.errors import NotFoundError
from bench_pipeline.identity import digest
from bench_pipeline.ledgers.blocks import blocks, decompressed
from bench_pipeline.ledgers.reading import Reader, scanning_for
from bench_pipeline.ledgers.routes import Routes
from bench_pipeline.ledgers.summary import Summary
from bench_pipeline.pipeline.ledger_files import LedgerFolder
from bench_pipeline.pipeline.ledger_reading import project_routes
from bench_pipeline.pipeline.ledger_records import (
    Known,
    Record,
    read_record,
    read_records,
    read_state,
    write_record,
)
from bench_pipeline.pipeline.tables import Written, write_table
from bench_pipeline.tables import table_schema

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.store import Store

# Some ten megabytes while they are written.
_SEGMENT_ROWS = 50_000
_CHUNK = 1 << 20
_PREVIEWED = 8
_RECIPE = "ledger/1"


@dataclass(frozen=True)
class LedgerRead:
    """What a reading came to: the table's part, and numbers for charts. ``read_rows`` counts those read just now."""

    written: Written
    numbers: dict[str, int]


def routes_digest(routes: Routes) -> str:
    """What changes when a project's kinds of routes do."""
    return digest({"recipe": _RECIPE, "routes": routes.own})


def write_ledger_rows(bench: "Bench", ledger: str) -> LedgerRead:
    """Bring the rows of a ledger up to date with its file.

    Raises:
        NotFoundError: the ledger or its file is not there.
        DocumentError: the file cannot be read, or the project's routes are wrong.
    """
    routes = project_routes(bench.project)
    with bench.store.lock(f"ledger-{ledger}"):
        known = read_state(bench.store).ledgers.get(ledger)
        if known is None:
            remedy = "its partition is added when its file is seen; remove this one"
            raise NotFoundError("reading a ledger", f"no file is known as {ledger}", remedy)
        with LedgerFolder(bench.project).open(known.name) as (raw, size):
            source = _Source(raw, size)
            before = read_record(bench.store, ledger)
            reading = _resumed(bench.store, before, source, routes) if before else None
            if reading is None:
                source.restart()
                reading = _Reading(bench.store, ledger, routes, source)
            record = reading.read(known)
        write_record(bench.store, record)
        return reading.report(record)


def write_ledger_summaries(bench: "Bench") -> Written:
    """Write the summaries of all ledgers that were read."""
    with bench.store.lock("ledger-summaries"):
        rows = [row for record in read_records(bench.store) for row in record.rows]
        table = table_schema("ledger_summaries").from_rows(rows)
        return write_table(bench.store, "ledger_summaries", table)


def unread_ledgers(bench: "Bench", ledgers: Sequence[str]) -> list[str]:
    """Those of the given ledgers, or of all, that were not read since their content changed."""
    state = read_state(bench.store).ledgers
    wanted = {key: state[key] for key in ledgers or state if key in state}
    read = {key: read_record(bench.store, key) for key in wanted}
    return [
        key for key, known in wanted.items() if (record := read[key]) is None or record.change < known.change
    ]


class _Source:
    """A file up to the size that it had when it was opened; its digest, whole and up to the last line feed."""

    closed = False

    def __init__(self, raw: IO[bytes], size: int) -> None:
        self._raw = raw
        self._size = size
        self.start = raw.read(4)
        self.restart()

    def restart(self) -> None:
        """Begin anew."""
        self._raw.seek(0)
        self._whole = self._prefix = hashlib.sha256()
        self.count = self.offset = 0

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes, fewer at the end; what is appended meanwhile is left for later."""
        data = self._raw.read(min(size, self._size - self.count))
        end = data.rfind(b"\n") + 1
        self._whole.update(data[:end])
        if end:
            self._prefix, self.offset = self._whole.copy(), self.count + end
        self._whole.update(data[end:])
        self.count += len(data)
        return data

    def skip(self, count: int) -> None:
        """Read on to the byte ``count``, or to the end."""
        while self.count < count and self.read(min(_CHUNK, count - self.count)):
            pass

    def drain(self) -> None:
        """Read what a decompressor left behind."""
        self.skip(self._size)

    @property
    def left(self) -> int:
        """How many bytes are still to be read."""
        return self._size - self.count

    @property
    def digest(self) -> str:
        """Of everything that was read."""
        return self._whole.hexdigest()

    @property
    def prefix(self) -> str:
        """Of everything up to ``offset``, where the last line feed is."""
        return self._prefix.hexdigest()


class _Reading:
    """One reading of a ledger, from its beginning or from where the last one ended."""

    def __init__(
        self,
        store: "Store",
        ledger: str,
        routes: Routes,
        source: _Source,
        *,
        summary: Summary | None = None,
        segments: int = 0,
    ) -> None:
        self._ledger = ledger
        self._routes = routes
        self._source = source
        self._segments = _Segments(store, ledger, segments)
        scanning = scanning_for(source.left, source.start)
        self._reader = Reader(routes, summary=summary, on_rows=self._segments.add, scanning=scanning)

    def read(self, known: Known) -> Record:
        """Read to the end, and what that came to."""
        source = self._source
        stream = decompressed(source, source.start)
        state: dict[str, Any] | None = None
        rows = 0
        appendable = stream is source
        for block in blocks(stream, at_start=source.count == 0):
            if not block.ended:
                state, rows = self._reader.summary.state(), self._segments.rows
            self._reader.add(block)
            if not block.ended and self._segments.rows != rows:
                # What comes next may change this row.
                appendable = False
        self._segments.close()
        source.drain()
        summary = self._reader.summary
        summary.incomplete_tail |= getattr(stream, "cut_off", False)
        return Record(
            ledger=self._ledger,
            name=known.name,
            digest=source.digest,
            size=source.count,
            change=known.change,
            routes=routes_digest(self._routes),
            segments=self._segments.count,
            rows=summary.table_rows(self._ledger, source.digest),
            offset=source.offset if appendable else None,
            prefix=source.prefix if appendable else "",
            summary=(state or summary.state()) if appendable else None,
        )

    def report(self, record: Record) -> LedgerRead:
        """The reading as what is told of the table."""
        summary = self._reader.summary.document()
        version = digest({"recipe": _RECIPE, "content": record.digest, "routes": record.routes})
        written = Written(self._segments.location, summary["total_rows"], version, self._segments.first)
        names = ("valid_rows", "invalid_rows", "unparsable_lines")
        return LedgerRead(
            written, {**{name: summary[name] for name in names}, "read_rows": self._segments.rows}
        )


def _resumed(store: "Store", before: Record, source: _Source, routes: Routes) -> _Reading | None:
    """A reading that goes on after the last one; None when the bytes that it read are not as they were."""
    if before.summary is None or before.offset is None or before.routes != routes_digest(routes):
        return None
    source.skip(before.offset)
    if (source.count, source.prefix) != (before.offset, before.prefix):
        return None
    if (
        before.segments
        and store.tables.digest("ledger_rows", ledger=before.ledger, segment=before.segments) is None
    ):
        # Somebody deleted the rows.
        return None
    summary = Summary.from_state(before.summary)
    return _Reading(store, before.ledger, routes, source, summary=summary, segments=before.segments)


class _Segments:
    """The files of a ledger's rows, after the first ``count``: written one by one as rows come."""

    def __init__(self, store: "Store", ledger: str, count: int) -> None:
        self._store = store
        self._ledger = ledger
        self._pending: list[pa.Table] = []
        self.count = count
        self.rows = 0
        self.first = table_schema("ledger_rows").empty()
        self.location = store.files.url(f"tables/ledger_rows/ledger={ledger}")

    def add(self, rows: pa.Table) -> None:
        """Add judged rows, in the order of lines."""
        if self.rows < _PREVIEWED:
            self.first = pa.concat_tables([self.first, self._shaped(rows.slice(0, _PREVIEWED), 1)])
        self._pending.append(rows)
        self.rows += rows.num_rows
        if sum(table.num_rows for table in self._pending) >= _SEGMENT_ROWS:
            self._write()

    def close(self) -> None:
        """Write what is left, and remove segments that an earlier reading wrote beyond these."""
        if self._pending:
            self._write()
        beyond = self.count + 1
        while self._store.tables.delete("ledger_rows", ledger=self._ledger, segment=beyond):
            beyond += 1

    def _write(self) -> None:
        self.count += 1
        table = self._shaped(pa.concat_tables(self._pending), self.count)
        self._pending = []
        self._store.tables.write("ledger_rows", table, ledger=self._ledger, segment=self.count)

    def _shaped(self, rows: pa.Table, segment: int) -> pa.Table:
        schema = table_schema("ledger_rows").schema
        own = {"ledger": pa.scalar(self._ledger), "segment": pa.scalar(segment, pa.int64())}
        columns = {
            name: pa.repeat(own[name], rows.num_rows) if name in own else rows[name] for name in schema.names
        }
        return pa.table(columns, schema=schema)
