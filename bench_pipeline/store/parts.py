"""Append-only rows in immutable Parquet parts: what verdicts and candidates have in common.

What belongs here: appending, merging, and finding the rows of many keys. What does not: which of a key's rows
counts (``verdicts``, ``candidates``).

Parts are named ``<sequence>-<a or m>-<token>.parquet``, for appended or merged. Every few appends the small parts
are merged into one, and parts of a size into a larger one, so that reading stays fast however rows came in. A merge
puts the new part in place before it removes the old ones: a crash in between leaves rows twice, and readers count a
row once by its key and sequence.
"""

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench_pipeline.errors import CorruptPartError, StoreError
from bench_pipeline.store import parquet, scan
from bench_pipeline.store.files import FileInfo, Files
from bench_pipeline.store.locks import LockHeldError, Locks
from bench_pipeline.store.quarantine import Quarantine
from bench_pipeline.store.schemas import Layout

# So many parts of a size are merged into one: a reader finds fewer, a row is rewritten once per size.
_FAN_IN: Final = 6
# Parts below the first size, a few thousand rows, are merged into one each time: rewriting that costs about as much
# as making a few parts durable.
_SIZES: Final = (0, 256 << 10, 2 << 20, 16 << 20)
# A merge holds its rows in memory, several times their size in the file.
MERGE_BYTES: Final = 64 << 20
# Above this a part is scanned by DuckDB, which streams; below, reading it whole is faster than opening it
# twice.
_LARGE: Final = 8 << 20
# Small parts that are matched at once; bounds memory.
_BATCH_BYTES: Final = 32 << 20
_READERS: Final = 4
# Decoded parts kept in memory, per kind of part.
_REMEMBERED_BYTES: Final = 32 << 20
# A reader starts over when a merge removed a part under it. Each time the merge has made progress.
_RESTARTS: Final = 100


@dataclass(frozen=True)
class Surroundings:
    """What a set of parts needs from its store."""

    files: Files
    locks: Locks
    quarantine: Quarantine
    read_only: bool

    def refuse_read_only(self, tried: str) -> None:
        """Raise StoreError when the store was opened to read only."""
        if self.read_only:
            raise StoreError(tried, "the store was opened to read only", "open it for writing")


class _ChangedUnderwayError(Exception):
    """A part went away while it was read: merged, forgotten or put aside by another process."""


class PartLog:
    """The parts of one layout in one folder, with rows found by the 32-byte column ``key``."""

    def __init__(self, surroundings: Surroundings, folder: str, layout: Layout, key: str) -> None:
        self._around = surroundings
        self.files = surroundings.files
        self.folder = folder
        self.layout = layout
        self.key = key
        self._appends = 0
        self._appending = threading.Lock()
        self._remembered = _Remembered()
        self._known_current: set[FileInfo] = set()

    @property
    def lock_name(self) -> str:
        """The lock under which parts are replaced by other parts."""
        return f"parts-{self.folder}"

    def parts(self) -> list[FileInfo]:
        """The parts by name, which is the order of their first rows; known corrupt ones are left out."""
        bad = self._around.quarantine.paths
        found = self.files.list(self.folder)
        return [info for info in found if info.path.endswith(".parquet") and info.path not in bad]

    def append(self, rows: pa.Table) -> None:
        """Store rows for good: they are on the disk when this returns.

        ``rows`` has the layout's columns; ``sequence`` is set here, absent nullable columns become null.
        Raises StoreError naming every fault of the rows, and when they cannot be written.
        """
        self._around.refuse_read_only(f"writing {self.folder}")
        rows = parquet.check_rows(
            self._with_own_columns(rows), self.layout.schema, (), f"rows to {self.folder}"
        )
        if rows.num_rows == 0:
            return
        self._put(self._numbered(rows), merged=False)
        with self._appending:
            self._appends += 1
            due = self._appends % _FAN_IN == 1
        if due:
            # The rows are stored. A merge that cannot be done now is done later, or by ``compact``.
            with suppress(StoreError):
                self._merge_sizes()

    def find(self, keys: Sequence[bytes] | pa.Array | pa.ChunkedArray, columns: Sequence[str]) -> pa.Table:
        """Every stored row of the given keys, once, in no particular order.

        The result has ``columns`` and ``sequence``, and first ``position``: the place of the row's key among
        the distinct ``keys``.
        """
        wanted = pc.unique(_key_array(keys))
        names = list(dict.fromkeys([*columns, "sequence"]))
        for _ in range(_RESTARTS):
            try:
                return _once(self._find(wanted, names))
            except _ChangedUnderwayError:
                continue
        raise StoreError(
            f"reading {self.folder}", "its parts kept changing", "wait for the other process and try again"
        )

    def read(self, info: FileInfo) -> pa.Table | None:
        """The rows of a part; None when it went away or was corrupt and has been put aside."""
        try:
            return self._read(info.path)
        except _ChangedUnderwayError:
            return None

    def replace(self, old: Sequence[FileInfo], rows: pa.Table) -> None:
        """Put ``rows``, sorted by key, in place of ``old``; the caller holds the lock."""
        if rows.num_rows:
            self._put(rows.sort_by([(self.key, "ascending"), ("sequence", "ascending")]), merged=True)
        for info in old:
            self.files.delete(info.path)

    def compact(self) -> tuple[int, int]:
        """Merge small parts into sorted ones; how many there were and are. The caller holds the lock."""
        before = self.parts()
        for group in _groups([info for info in before if info.size < MERGE_BYTES // 2], MERGE_BYTES):
            if len(group) > 1 or not _is_merged(group[0].path):
                self._merge(group)
        return len(before), len(self.parts())

    def _find(self, wanted: pa.Array, names: list[str]) -> pa.Table:
        empty = pa.schema(
            [pa.field("position", pa.int32()), *(self.layout.schema.field(name) for name in names)]
        )
        found = [empty.empty_table()]
        large, small = self._sort_out(self.parts())
        for group in _groups(small, _BATCH_BYTES):
            tables = [table for table in self._read_many(group) if table is not None]
            if tables:
                found.append(_matching(tables, self.key, wanted, names))
        if large:
            found.append(self._scan(large, wanted, names))
        return pa.concat_tables([table.cast(empty) for table in found])

    def _sort_out(self, parts: list[FileInfo]) -> tuple[list[Path], list[FileInfo]]:
        """Local parts that DuckDB can stream (large, of the current version), and those to be read whole."""
        large: list[Path] = []
        small: list[FileInfo] = []
        for info in parts:
            place = self.files.local(info.path) if info.size > _LARGE else None
            if place is not None and self._is_current(info, place):
                large.append(place)
            else:
                small.append(info)
        return large, small

    def _is_current(self, info: FileInfo, place: Path) -> bool:
        """Whether the footer says so; anything odd is settled by reading the part whole."""
        if info in self._known_current:
            return True
        try:
            name, version, _ = parquet.stamp(pq.read_schema(place).metadata)
        except FileNotFoundError as error:
            raise _ChangedUnderwayError from error
        except (pa.ArrowException, OSError, ValueError):
            return False
        if (name, version) != (self.layout.name, self.layout.version):
            return False
        self._known_current.add(info)
        return True

    def _scan(self, large: list[Path], wanted: pa.Array, names: list[str]) -> pa.Table:
        try:
            return scan.matching(large, self.key, wanted, names)
        except scan.ScanError as error:
            # DuckDB does not tell a broken disk from a broken part. Reading each part whole does.
            known = {info.path for info in self.parts()}
            for place in large:
                path = f"{self.folder}/{place.name}"
                if path not in known:
                    raise _ChangedUnderwayError from error
                if self._read(path) is None:
                    raise _ChangedUnderwayError from error
            remedy = "every part is whole; check memory, open files and the temporary folder, and try again"
            raise StoreError(f"reading {self.folder}", str(error), remedy) from error

    def _read_many(self, infos: Sequence[FileInfo]) -> Iterator[pa.Table | None]:
        if len(infos) <= _FAN_IN and self.files.local(self.folder) is not None:
            yield from map(self._read_remembered, infos)
            return
        with ThreadPoolExecutor(_READERS) as pool:
            yield from pool.map(self._read_remembered, infos)

    def _read_remembered(self, info: FileInfo) -> pa.Table | None:
        table = self._remembered.get(info)
        if table is None:
            table = self._read(info.path)
            if table is not None:
                self._remembered.put(info, table)
        return table

    def _read(self, path: str) -> pa.Table | None:
        try:
            data = self.files.read(path)
        except FileNotFoundError as error:
            raise _ChangedUnderwayError from error
        try:
            return parquet.decode(data, self.layout, path)[0]
        except CorruptPartError as error:
            self._around.quarantine.put(path, error, data)
            return None

    def _put(self, rows: pa.Table, *, merged: bool) -> None:
        first = pc.min(rows["sequence"]).as_py()
        name = f"{first:020d}-{'m' if merged else 'a'}-{secrets.token_hex(6)}.parquet"
        data = parquet.encode(rows, self.layout, sorted_by=(self.key, "sequence") if merged else ())
        self.files.write(f"{self.folder}/{name}", data)

    def _with_own_columns(self, rows: pa.Table) -> pa.Table:
        if "sequence" in rows.schema.names:
            rows = rows.drop_columns(["sequence"])
        rows = rows.append_column("sequence", pa.array(np.zeros(rows.num_rows, np.int64)))
        for field in self.layout.schema:
            if field.nullable and field.name not in rows.schema.names:
                rows = rows.append_column(field.name, pa.nulls(rows.num_rows, field.type))
        return rows

    def _numbered(self, rows: pa.Table) -> pa.Table:
        """``rows`` with sequence numbers above those of every stored row of their keys.

        The clock alone does not order them: it may have been set back since the others were stored.
        """
        stored = None
        # What was paid for is stored, also when the others cannot be read at the moment.
        with suppress(StoreError):
            stored = pc.max(self.find(rows[self.key], ())["sequence"]).as_py()
        numbers = pa.array(_clock.take(rows.num_rows, above=stored or 0), pa.int64())
        return rows.set_column(rows.schema.get_field_index("sequence"), "sequence", numbers)

    def _merge_sizes(self) -> None:
        found = self.parts()
        for smallest, limit in pairwise(_SIZES):
            group = [info for info in found if smallest <= info.size < limit]
            if len(group) >= _FAN_IN:
                with suppress(LockHeldError), self._around.locks.hold(self.lock_name, wait_s=0):
                    self._merge(next(_groups(group, MERGE_BYTES)))

    def _merge(self, group: Sequence[FileInfo]) -> None:
        read = [(info, table) for info in group if (table := self.read(info)) is not None]
        if read:
            rows = _once(pa.concat_tables([table for _, table in read]), self.key)
            self.replace([info for info, _ in read], rows)


class _Remembered:
    """Small parts that were read before; they never change, and a run asks again for every cell."""

    def __init__(self) -> None:
        self._tables: OrderedDict[FileInfo, pa.Table] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, info: FileInfo) -> pa.Table | None:
        with self._lock:
            if info in self._tables:
                self._tables.move_to_end(info)
            return self._tables.get(info)

    def put(self, info: FileInfo, table: pa.Table) -> None:
        with self._lock:
            if info in self._tables:
                return
            self._tables[info] = table
            self._bytes += table.nbytes
            while self._bytes > _REMEMBERED_BYTES:
                self._bytes -= self._tables.popitem(last=False)[1].nbytes


class _Clock:
    """Sequence numbers: nanoseconds since 1970, or above the highest one seen where the clock is behind it."""

    def __init__(self, now: Callable[[], int] = time.time_ns) -> None:
        self._now = now
        self._last = 0
        self._lock = threading.Lock()

    def take(self, count: int, *, above: int = 0) -> range:
        with self._lock:
            first = max(self._now(), self._last + 1, above + 1)
            self._last = first + count - 1
        return range(first, first + count)


_clock = _Clock()


def _once(rows: pa.Table, key: str = "position") -> pa.Table:
    """Each row once: a crash in the middle of a merge leaves rows in two parts."""
    if pc.count_distinct(rows[key]).as_py() == rows.num_rows:
        return rows
    indexed = rows.select([key, "sequence"]).append_column("row", pa.array(np.arange(rows.num_rows)))
    first = indexed.group_by([key, "sequence"], use_threads=False).aggregate([("row", "min")])["row_min"]
    return rows if len(first) == rows.num_rows else rows.take(first)


def _matching(tables: list[pa.Table], key: str, wanted: pa.Array, names: list[str]) -> pa.Table:
    """The rows whose ``key`` is in ``wanted``; looked up all at once, since each look-up hashes ``wanted``."""
    keys = pa.concat_arrays([chunk for table in tables for chunk in table[key].chunks])
    positions = pc.index_in(keys, value_set=wanted)
    hits = pa.array(np.flatnonzero(np.asarray(positions.is_valid())))
    rows = pa.concat_tables([table.select(names) for table in tables])
    return rows.take(hits).add_column(0, "position", positions.take(hits))


def _key_array(keys: Sequence[bytes] | pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(keys, pa.ChunkedArray):
        keys = keys.combine_chunks()
    if isinstance(keys, pa.Array):
        return keys if keys.type == pa.binary(32) else keys.cast(pa.binary(32))
    return pa.array(keys, pa.binary(32))


def _groups(infos: Sequence[FileInfo], limit: int) -> Iterator[list[FileInfo]]:
    """Neighbours of at most ``limit`` bytes together; a larger one is a group of its own."""
    group: list[FileInfo] = []
    size = 0
    for info in infos:
        if group and size + info.size > limit:
            yield group
            group, size = [], 0
        group.append(info)
        size += info.size
    if group:
        yield group


def _is_merged(path: str) -> bool:
    return path.rpartition("/")[2].split("-")[1:2] == ["m"]
