"""Which artifacts something still refers to.

What belongs here: finding digests in rows, tables and documents. What does not: removing anything.

A reference is a digest anywhere: in the artifact map or overlay of a part, as one of a row's keys (the record
behind a key is kept under it), in a text column of a table, or written in a JSON document that is itself
referred to.
"""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from bench_pipeline.store.store import Store

# Documents that name digests are small; anything larger is evidence, such as a transcript.
_DOCUMENT_BYTES: Final = 4 << 20
_DOCUMENT_FOLDERS: Final = ("runs", "attestations", "lineage", "audit")
_DIGESTS: Final = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def digests_of_rows(rows: pa.Table) -> set[str]:
    """The artifacts that rows of a part name: what ``artifacts`` maps to, and the overlay."""
    found = set(_map_values(rows["artifacts"]).unique().to_pylist())
    if "overlay" in rows.schema.names:
        found |= set(rows["overlay"].unique().to_pylist())
    return {digest for digest in found if digest is not None and _DIGESTS.fullmatch(digest.encode())}


class Unreferenced:
    """Artifacts of ``among`` that nothing was found to refer to yet; ``kept`` are all (digest -> path)."""

    def __init__(self, store: "Store", kept: dict[str, str], among: Iterable[str] | None = None) -> None:
        self._store = store
        self._all = kept
        self.left = {digest: kept[digest] for digest in (kept if among is None else among)}

    def kept(self, digest: str) -> bool:
        """Whether the artifact is in the store."""
        return digest in self._all

    def strike_everything_referred_to(self, roots: Iterable[str] = ()) -> None:
        """Strike out ``roots`` and what parts, tables and documents refer to, directly or through JSON."""
        reached = [digest for digest in roots if digest in self._all]
        for digest in reached:
            self.left.pop(digest, None)
        for found in self._direct():
            reached += self._strike(found)
        while reached and self.left:
            reached = self._strike(self._inside(reached))

    def reached_from(self, roots: Iterable[str]) -> set[str]:
        """The kept artifacts among ``roots``, and those that they name, directly or through JSON."""
        reached: set[str] = set()
        fresh = {digest for digest in roots if digest in self._all}
        while fresh:
            reached |= fresh
            fresh = {digest for digest in self._inside(fresh) if digest in self._all} - reached
        return reached

    def _strike(self, digests: Iterable[str]) -> list[str]:
        """Those of ``digests`` that were not struck out before."""
        return [digest for digest in digests if self.left.pop(digest, None) is not None]

    def _direct(self) -> Iterator[list[str]]:
        for log in self._store.logs:
            for info in log.parts():
                rows = log.read(info)
                if rows is not None:
                    yield from self._in_columns(rows)
        for name in sorted(self._table_names()):
            yield from self._in_columns(self._store.tables.read(name))
        for folder in _DOCUMENT_FOLDERS:
            for info in self._store.files.list(folder):
                if info.size <= _DOCUMENT_BYTES:
                    yield _digests(self._read(info.path))

    def _table_names(self) -> set[str]:
        from bench_pipeline.tables import TABLES

        return {info.path.split("/")[1] for info in self._store.files.list("tables")} & set(TABLES)

    def _in_columns(self, rows: pa.Table) -> Iterator[list[str]]:
        """Per column, the artifacts still left that it names; a column may have millions of values."""
        for field in rows.schema:
            column = rows[field.name]
            if pa.types.is_map(field.type) and pa.types.is_string(field.type.item_type):
                column = _map_values(column)
            if not self.left:
                return
            if pa.types.is_string(column.type):
                left = pa.array(list(self.left), pa.string())
            elif column.type == pa.binary(32):
                left = pa.array([bytes.fromhex(digest) for digest in self.left], pa.binary(32))
            else:
                continue
            hits = left.filter(pc.is_in(left, value_set=pc.unique(column))).to_pylist()
            yield [hit.hex() if isinstance(hit, bytes) else hit for hit in hits]

    def _inside(self, digests: Iterable[str]) -> Iterator[str]:
        for digest in digests:
            path = self._all[digest]
            info = self._store.files.info(path) if path.endswith(".json") else None
            if info is not None and info.size <= _DOCUMENT_BYTES:
                yield from _digests(self._read(path))

    def _read(self, path: str) -> bytes:
        try:
            return self._store.files.read(path)
        except FileNotFoundError:
            return b""


def _map_values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    chunks = [chunk.items for chunk in column.chunks]
    return pa.chunked_array(chunks, column.type.item_type)


def _digests(data: bytes) -> list[str]:
    return [found.decode() for found in _DIGESTS.findall(data)]
