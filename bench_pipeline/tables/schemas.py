"""The schemas of the evaluation lane's tables; other lanes add theirs beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa

from bench_pipeline.errors import NotFoundError

TEXT, INT, FLOAT, BOOL = pa.string(), pa.int64(), pa.float64(), pa.bool_()
TIME = pa.timestamp("us", tz="UTC")
TEXT_MAP = pa.map_(pa.string(), pa.string())


@dataclass(frozen=True)
class TableSchema:
    """A table's name, schema version, columns and the columns that identify a row.

    ``partitions`` names the columns that appear in the path (they are in the file too); ``required`` the
    columns that are never null.
    """

    name: str
    version: int
    schema: pa.Schema
    key: tuple[str, ...]
    partitions: tuple[str, ...] = ()
    required: tuple[str, ...] = ()

    def empty(self) -> pa.Table:
        """A table of this schema without rows."""
        return self.schema.empty_table()

    def from_rows(self, rows: Sequence[Mapping[str, object]]) -> pa.Table:
        """Rows as a table of this schema; a key that is no column is an error, a missing one is null."""
        unknown = {key for row in rows for key in row} - set(self.schema.names)
        if unknown:
            raise KeyError(f"{self.name} has no columns {sorted(unknown)}")
        return pa.Table.from_pylist([dict(row) for row in rows], schema=self.schema)


def _table(
    name: str,
    columns: Mapping[str, pa.DataType],
    *,
    key: tuple[str, ...],
    partitions: tuple[str, ...] = (),
    required: tuple[str, ...] = (),
) -> TableSchema:
    never_null = {*key, *partitions, *required}
    schema = pa.schema([pa.field(n, t, nullable=n not in never_null) for n, t in columns.items()])
    return TableSchema(name, 1, schema, key, partitions, tuple(n for n in columns if n in never_null))


_CELL = {
    "identity": TEXT,
    "run_key": TEXT,
    "verify_key": TEXT,
    "evaluation": TEXT,
    "tier": TEXT,
    "attempt": INT,
}

EVALUATION_CELLS = _table(
    "evaluation_cells",
    {
        **_CELL,
        "task_id": TEXT,
        "setup": TEXT,
        "setup_digest": TEXT,
        "tool": TEXT,
        "tool_version": TEXT,
        "model": TEXT,
        "model_id": TEXT,
        "effort": TEXT,
        "options": TEXT_MAP,
        "steps": TEXT_MAP,
        "task_digest": TEXT,
        "environment_digest": TEXT,
        "pre_digest": TEXT,
        "reusable": BOOL,
        "not_reusable_reason": TEXT,
        "prediction_digest": TEXT,
        "verify_digest": TEXT,
    },
    key=("evaluation", "identity"),
    partitions=("tier", "attempt"),
    required=("run_key", "verify_key", "task_id", "setup", "setup_digest", "tool", "reusable"),
)

VERDICTS = _table(
    "verdicts",
    {
        **_CELL,
        "task_id": TEXT,
        "setup": TEXT,
        "setup_digest": TEXT,
        "outcome": TEXT,
        "outcome_class": TEXT,
        "passed": BOOL,
        "reason": TEXT,
        "exit_code": INT,
        "signal": INT,
        "duration_s": FLOAT,
        "verify_s": FLOAT,
        "cost_usd": FLOAT,
        "cost_reported_usd": FLOAT,
        "tokens_input": INT,
        "tokens_cache_read": INT,
        "tokens_cache_write": INT,
        "tokens_output": INT,
        "turns": INT,
        "tool_calls": INT,
        "patch_files": INT,
        "patch_lines": INT,
        "tests_run": INT,
        "tests_passed": INT,
        "orphans": INT,
        "tries": INT,
        "measured_at": TIME,
        "artifacts": TEXT_MAP,
    },
    key=("evaluation", "identity"),
    partitions=("tier", "attempt"),
    required=(
        "run_key",
        "verify_key",
        "task_id",
        "setup",
        "setup_digest",
        "outcome",
        "outcome_class",
        "tries",
    ),
)

RUN_CELLS = _table(
    "run_cells",
    {
        "run_id": TEXT,
        "identity": TEXT,
        "action": TEXT,
        "reason": TEXT,
        "started_at": TIME,
        "ended_at": TIME,
        "cost_usd": FLOAT,
        "evaluation": TEXT,
        "tier": TEXT,
        "attempt": INT,
    },
    key=("run_id", "evaluation", "identity"),
    partitions=("run_id",),
    required=("action", "tier", "attempt"),
)

EVALUATION_RANKINGS = _table(
    "evaluation_rankings",
    {
        "evaluation": TEXT,
        "ranked": BOOL,
        "rank": INT,
        "band_low": INT,
        "band_high": INT,
        "setup": TEXT,
        "setup_digest": TEXT,
        "shared_tasks": INT,
        "total": INT,
        "attempted": INT,
        "measured": INT,
        "passed": INT,
        "pass_rate": FLOAT,
        "rate_low": FLOAT,
        "rate_high": FLOAT,
        "method": TEXT,
        "pass_at_k": pa.map_(pa.int64(), pa.float64()),
        "pass_hat_k": pa.map_(pa.int64(), pa.float64()),
        "cost_usd": FLOAT,
        "cost_known": INT,
        "cost_unknown": INT,
        "tokens": INT,
        "patch_lines": INT,
        "duration_s": FLOAT,
        "missing": pa.list_(pa.string()),
    },
    key=("evaluation", "setup_digest"),
    required=("ranked", "setup", "shared_tasks", "total", "attempted", "measured", "passed"),
)

PAIRED_COMPARISONS = _table(
    "paired_comparisons",
    {
        "evaluation": TEXT,
        "setup_a": TEXT,
        "setup_b": TEXT,
        "shared_tasks": INT,
        "only_a": INT,
        "only_b": INT,
        "difference": FLOAT,
        "diff_low": FLOAT,
        "diff_high": FLOAT,
        "p_value": FLOAT,
        "p_holm": FLOAT,
        "method": TEXT,
    },
    key=("evaluation", "setup_a", "setup_b"),
    required=("shared_tasks", "only_a", "only_b"),
)

TABLES: Mapping[str, TableSchema] = MappingProxyType(
    {
        table.name: table
        for table in (EVALUATION_CELLS, VERDICTS, RUN_CELLS, EVALUATION_RANKINGS, PAIRED_COMPARISONS)
    }
)


def table_schema(name: str) -> TableSchema:
    """The schema of the table ``name``; raises NotFoundError, naming the known ones."""
    try:
        return TABLES[name]
    except KeyError:
        raise NotFoundError(
            "opening a table", f"there is no table {name!r}", f"known: {', '.join(TABLES)}"
        ) from None
