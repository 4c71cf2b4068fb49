"""Keeping a store in shape: read everything and check it, merge small parts, bring parts to the current version.

What belongs here: work over the whole store that loses no row. What does not: removing anything that was
measured (``removal``).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from bench_pipeline.errors import CorruptPartError, StoreError
from bench_pipeline.store import parquet
from bench_pipeline.store.content import content_digest
from bench_pipeline.store.files import FileInfo
from bench_pipeline.store.parts import PartLog
from bench_pipeline.store.references import Unreferenced, digests_of_rows
from bench_pipeline.store.schemas import Layout, table_layout
from bench_pipeline.store.tables import lock_name
from bench_pipeline.tables import TABLES, TableSchema

if TYPE_CHECKING:
    from bench_pipeline.store.store import Store


@dataclass(frozen=True, order=True)
class Finding:
    """Something broken: the file, what is wrong with it, and where it was put (None: left where it is)."""

    path: str
    reason: str
    moved_to: str | None = None


@dataclass
class VerifyReport:
    """What was read whole, and what is broken."""

    verdict_rows: int = 0
    candidate_rows: int = 0
    replay_rows: int = 0
    table_rows: int = 0
    parts: int = 0
    table_files: int = 0
    artifacts: int = 0
    bytes: int = 0
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True)
class CompactReport:
    """How many parts there were and are."""

    verdict_parts_before: int
    verdict_parts: int
    candidate_parts_before: int
    candidate_parts: int
    replay_parts_before: int
    replay_parts: int


@dataclass(frozen=True)
class MigrateReport:
    """How many files were rewritten in the current version."""

    parts: int
    table_files: int


def verify(store: "Store", *, put_aside: bool = False) -> VerifyReport:
    """Read every part, table and artifact whole and check checksums, digests, schemas and references.

    ``put_aside`` moves what is proven corrupt to quarantine; otherwise nothing is moved. Raises StoreError
    when something cannot be read, NewerSchemaError for a file of a newer version.
    """
    report = VerifyReport()
    referred = Unreferenced(store, store.artifacts.digests())
    for log in store.logs:
        for info in log.parts():
            rows = _checked(store, report, info, log.layout, put_aside=put_aside)
            if rows is None:
                continue
            report.parts += 1
            if log is store.verdicts.log:
                report.verdict_rows += rows.num_rows
            elif log is store.candidates.log:
                report.candidate_rows += rows.num_rows
            else:
                report.replay_rows += rows.num_rows
            for digest in digests_of_rows(rows):
                if not referred.kept(digest) and not store.artifacts.exists(digest):
                    report.findings.append(
                        Finding(info.path, f"it refers to the artifact {digest}, which is absent")
                    )
    for info, schema in _table_files(store):
        rows = _checked(store, report, info, table_layout(schema), put_aside=put_aside, key=schema.key)
        if rows is not None:
            report.table_files += 1
            report.table_rows += rows.num_rows
    _verify_artifacts(store, report, put_aside=put_aside)
    report.findings.sort()
    return report


def compact(store: "Store") -> CompactReport:
    """Merge small parts into large ones sorted by key; rows and answers stay the same."""
    store.refuse_read_only("compacting the store")
    counts: list[int] = []
    for log in store.logs:
        with store.lock(log.lock_name):
            counts += log.compact()
    return CompactReport(*counts)


def migrate(store: "Store") -> MigrateReport:
    """Rewrite every part and table file of an older version in the current one."""
    store.refuse_read_only("migrating the store")
    parts = 0
    for log in store.logs:
        with store.lock(log.lock_name):
            parts += sum(_migrate_part(store, log, info) for info in log.parts())
    tables = sum(_migrate_table(store, info, schema) for info, schema in _table_files(store))
    return MigrateReport(parts, tables)


def _checked(
    store: "Store",
    report: VerifyReport,
    info: FileInfo,
    layout: Layout,
    *,
    put_aside: bool,
    key: tuple[str, ...] | None = None,
) -> pa.Table | None:
    """The rows of a file that is whole; a broken one is reported. ``key`` is given for tables."""
    try:
        data = store.files.read(info.path)
    except FileNotFoundError:
        return None
    report.bytes += len(data)
    try:
        rows, digest = parquet.decode(data, layout, info.path)
        if key is not None:
            _check_table(rows, layout, key, digest, info.path)
    except CorruptPartError as error:
        _report(store, report, info.path, error, data, put_aside=put_aside)
        return None
    return rows


def _check_table(rows: pa.Table, layout: Layout, key: tuple[str, ...], digest: str | None, path: str) -> None:
    try:
        parquet.check_rows(rows, layout.schema, key, path)
    except StoreError as error:
        raise CorruptPartError(f"reading {path}", error.wrong) from error
    found = content_digest(rows, key)
    if digest is not None and digest != found:
        raise CorruptPartError(
            f"reading {path}", f"its rows have the digest {found}, its footer says {digest}"
        )


def _verify_artifacts(store: "Store", report: VerifyReport, *, put_aside: bool) -> None:
    from bench_pipeline.identity import digest_bytes

    for digest, path in store.artifacts.digests().items():
        try:
            data = store.files.read(path)
        except FileNotFoundError:
            continue
        report.bytes += len(data)
        report.artifacts += 1
        if digest_bytes(data) != digest:
            error = CorruptPartError(f"reading {path}", f"its content has the digest {digest_bytes(data)}")
            _report(store, report, path, error, data, put_aside=put_aside)


def _report(
    store: "Store", report: VerifyReport, path: str, error: CorruptPartError, data: bytes, *, put_aside: bool
) -> None:
    moved_to = None
    if put_aside:
        store.refuse_read_only("putting corrupt files aside")
        moved_to = store.quarantine.put(path, error, data).moved_to
    report.findings.append(Finding(path, error.wrong, moved_to))


def _table_files(store: "Store") -> Iterator[tuple[FileInfo, TableSchema]]:
    for schema in TABLES.values():
        for info in store.files.list(f"tables/{schema.name}"):
            if info.path.endswith(".parquet"):
                yield info, schema


def _migrate_part(store: "Store", log: PartLog, info: FileInfo) -> bool:
    if not _is_older(store, info, log.layout):
        return False
    rows = log.read(info)
    if rows is None:
        return False
    log.replace([info], rows)
    return True


def _migrate_table(store: "Store", info: FileInfo, schema: TableSchema) -> bool:
    layout = table_layout(schema)
    if not _is_older(store, info, layout):
        return False
    with store.lock(lock_name(info.path)):
        rows, _ = parquet.decode(store.files.read(info.path), layout, info.path)
        digest = content_digest(rows, schema.key)
        store.files.write(info.path, parquet.encode(rows, layout, digest=digest))
    return True


def _is_older(store: "Store", info: FileInfo, layout: Layout) -> bool:
    try:
        data = store.files.read(info.path)
        name, version = parquet.identify(data, info.path)
    except FileNotFoundError:
        return False
    except CorruptPartError as error:
        store.quarantine.put(info.path, error, data)
        return False
    return name == layout.name and version is not None and version < layout.version
