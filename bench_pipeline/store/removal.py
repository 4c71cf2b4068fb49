"""Removing what nothing needs, and what someone wants forgotten.

What belongs here: garbage collection and ``forget``. What does not: deciding that a cell is to be measured
again.

Rows go before the artifacts they name, so a crash in between leaves artifacts that nothing refers to, which
the next clean-up finds; never rows whose evidence is gone.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.errors import NotFoundError
from bench_pipeline.store.parts import PartLog
from bench_pipeline.store.references import Unreferenced, digests_of_rows
from bench_pipeline.store.verdicts import as_key

if TYPE_CHECKING:
    from bench_pipeline.store.store import Store

# An artifact is put before the row that names it; no cell runs for longer than this.
GRACE_S: Final = 24 * 3600.0

# Tables that hold what was measured; the plan itself (evaluation_cells) is evidence of nothing.
_MEASURED_TABLES: Final = ("verdicts", "run_cells")


@dataclass(frozen=True)
class GcReport:
    """What was removed, or with ``dry_run`` would be; ``bytes`` is their size."""

    dry_run: bool
    artifacts: int
    unfinished: int
    locks: int
    bytes: int


@dataclass(frozen=True)
class ForgetReport:
    """What of an identity was removed."""

    identity: str
    verdict_rows: int
    candidate_rows: int
    replay_rows: int
    table_rows: int
    artifacts: int


def collect_garbage(store: "Store", *, dry_run: bool = False, grace_s: float = GRACE_S) -> GcReport:
    """Remove artifacts that nothing refers to, files that a killed writer left, and locks that nobody holds.

    Only what is older than ``grace_s`` (seconds) goes. Measured rows, tables and quarantine are never
    touched.
    """
    if not dry_run:
        store.refuse_read_only("cleaning the store")
    youngest = time.time() - grace_s

    def old(modified: float | None) -> bool:
        return modified is not None and modified <= youngest

    kept = store.artifacts.digests()
    sizes = {info.path: info.size for info in store.files.list("artifacts") if old(info.modified)}
    unreferenced = Unreferenced(store, kept)
    with nullcontext() if dry_run else _parts_held(store):
        unreferenced.strike_everything_referred_to(
            digest for digest, path in kept.items() if path not in sizes
        )
    artifacts = list(unreferenced.left.values())
    unfinished = [info for info in store.files.list("", unfinished=True) if old(info.modified)]
    locks = [
        info for info in store.files.list("locks") if old(info.modified) and store.locks.is_free(info.path)
    ]
    if not dry_run:
        # Content that was put again since it was listed is young now, and needed.
        artifacts = [path for path in artifacts if (info := store.files.info(path)) and old(info.modified)]
        for path in [*artifacts, *(info.path for info in (*unfinished, *locks))]:
            store.files.delete(path)
    size = sum(sizes[path] for path in artifacts) + sum(info.size for info in (*unfinished, *locks))
    return GcReport(dry_run, len(artifacts), len(unfinished), len(locks), size)


def forget(store: "Store", identity: str) -> ForgetReport:
    """Remove every row of an identity (64 hex digits), its candidates and the evidence that only they name.

    A candidate that another identity was judged by stays, and so does evidence that others share. Raises
    NotFoundError when nothing is known of the identity.
    """
    store.refuse_read_only("forgetting a cell")
    key = as_key(identity)
    with _parts_held(store):
        rows = store.verdicts.history(key)
        named = digests_of_rows(rows) | {identity}
        removed = _without(store.verdicts.log, "identity", [key])
        alone = _keys_of_no_other(store, set(rows["run_key"].to_pylist()))
        candidates = _without(store.candidates.log, "run_key", alone)
        replays = _without(store.replays.log, "identity", [key])
        for table in (*candidates, *replays):
            named |= digests_of_rows(table)
        named |= {run_key.hex() for run_key in alone}
        from_tables = sum(_without_table(store, name, identity) for name in _MEASURED_TABLES)
        counts = _rows_in(removed), _rows_in(candidates), _rows_in(replays), from_tables
        if not any(counts):
            raise NotFoundError(
                f"forgetting {identity}", "the store knows nothing of it", "check the identity"
            )
        return ForgetReport(identity, *counts, _remove_artifacts(store, named))


@contextmanager
def _parts_held(store: "Store") -> Iterator[None]:
    """Keep parts from being merged: while references are counted, each row has to be found."""
    with ExitStack() as held:
        for log in store.logs:
            held.enter_context(store.lock(log.lock_name))
        yield


def _without(log: PartLog, column: str, keys: Iterable[bytes]) -> list[pa.Table]:
    """Rewrite the parts that hold rows of ``keys`` without them; the rows removed, per part."""
    wanted = pa.array(list(keys), pa.binary(32))
    removed = []
    for info in log.parts() if len(wanted) else []:
        rows = log.read(info)
        if rows is None:
            continue
        hit = pc.is_in(rows[column], value_set=wanted)
        if pc.any(hit).as_py():
            removed.append(rows.filter(hit))
            log.replace([info], rows.filter(pc.invert(hit)))
    return removed


def _rows_in(tables: Iterable[pa.Table]) -> int:
    return sum(table.num_rows for table in tables)


def _keys_of_no_other(store: "Store", run_keys: set[bytes]) -> set[bytes]:
    """Those run keys that no stored verdict row has any more."""
    left = set(run_keys)
    for info in store.verdicts.log.parts():
        rows = store.verdicts.log.read(info) if left else None
        if rows is not None:
            wanted = pa.array(list(left), pa.binary(32))
            left -= set(wanted.filter(pc.is_in(wanted, value_set=pc.unique(rows["run_key"]))).to_pylist())
    return left


def _without_table(store: "Store", name: str, identity: str) -> int:
    removed = 0
    for partition in store.tables.partitions(name):
        rows = store.tables.read(name, **partition)
        keep = rows.filter(pc.not_equal(rows["identity"], identity))
        if keep.num_rows < rows.num_rows:
            removed += rows.num_rows - keep.num_rows
            store.tables.write(name, keep, **partition)
    return removed


def _remove_artifacts(store: "Store", named: set[str]) -> int:
    """Remove those of ``named``, and of what they name, that nothing else refers to."""
    kept = store.artifacts.digests()
    reached = Unreferenced(store, kept).reached_from(named)
    unreferenced = Unreferenced(store, kept, among=reached)
    unreferenced.strike_everything_referred_to(set(kept) - reached)
    for path in unreferenced.left.values():
        store.files.delete(path)
    return len(unreferenced.left)
