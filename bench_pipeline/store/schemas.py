"""The columns of verdict and candidate parts, and how parts of older versions become current.

What belongs here: what a stored part holds and its version. What does not: the tables that people read
(``bench_pipeline.tables``) and where parts are kept. Keys are 32 bytes; timestamps UTC microseconds; null is
unknown; ``artifacts`` maps a name ("patch", "stdout", ...) to the SHA-256 of an artifact.

A new column or another meaning takes a new version and a step in MIGRATIONS; a sample of each older version
stays in the tests.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from bench_pipeline.store.text import clean_text
from bench_pipeline.tables import TableSchema

VERDICT: Final = "verdict"
EXECUTION_FAILURE: Final = "execution_failure"

KEY = pa.binary(32)
_TEXT, _INT, _FLOAT, _BOOL = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_TIME = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class Layout:
    """A kind of Parquet file: the name and version in its footer, and its columns.

    ``distinct`` names columns whose values hardly repeat: compressing them only makes them slower to read.
    """

    name: str
    version: int
    schema: pa.Schema
    distinct: frozenset[str] = frozenset()

    def from_rows(self, rows: Sequence[Mapping[str, object]]) -> pa.Table:
        """Rows as a table: text cleaned, a missing column null; KeyError for a key that is no column."""
        unknown = {key for row in rows for key in row} - set(self.schema.names)
        if unknown:
            raise KeyError(f"{self.name} parts have no columns {sorted(unknown)}")
        cleaned = [{key: _clean(value) for key, value in row.items()} for row in rows]
        return pa.Table.from_pylist(cleaned, schema=self.schema)


def _clean(value: object) -> object:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, Mapping):
        return [(_clean(key), _clean(item)) for key, item in value.items()]
    return value


_USAGE: Mapping[str, pa.DataType] = {
    "exit_code": _INT,
    "signal": _INT,
    "duration_s": _FLOAT,
    "cost_reported_usd": _FLOAT,
    "cost_is_real": _BOOL,
    "model_id": _TEXT,
    "tokens_input": _INT,
    "tokens_cache_read": _INT,
    "tokens_cache_write": _INT,
    "tokens_output": _INT,
    "turns": _INT,
    "tool_calls": _INT,
    "patch_files": _INT,
    "patch_lines": _INT,
    "orphans": _INT,
    "step_usage": _TEXT,
    "phases": pa.map_(_TEXT, _FLOAT),
    "artifacts": pa.map_(_TEXT, _TEXT),
    "measured_at": _TIME,
    "run_id": _TEXT,
}


_DISTINCT = frozenset({"run_key", "measured_at", "duration_s", "verify_s", "sequence"})


def _schema(columns: Mapping[str, pa.DataType], required: set[str]) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=name not in required) for name, kind in columns.items()])


# ``sequence`` is the store's own and the only order of a key's rows: nanoseconds at the append, and above those of
# every row that the key had then, so that a clock that is set back reorders nothing. With the key it names one row
# for ever, so a row that stands in two parts after a crash is counted once.
VERDICT_PARTS = Layout(
    "verdict-part",
    1,
    _schema(
        {
            "identity": KEY,
            "run_key": KEY,
            "verify_key": KEY,
            "outcome": _TEXT,
            "outcome_class": _TEXT,
            "passed": _BOOL,
            "reason": _TEXT,
            **_USAGE,
            "verify_s": _FLOAT,
            "tests_run": _INT,
            "tests_passed": _INT,
            "tool_ran": _BOOL,
            "sequence": _INT,
        },
        {
            "identity",
            "run_key",
            "verify_key",
            "outcome",
            "outcome_class",
            "measured_at",
            "tool_ran",
            "sequence",
        },
    ),
    distinct=_DISTINCT | {"identity"},
)

CANDIDATE_PARTS = Layout(
    "candidate-part",
    1,
    _schema(
        {
            "run_key": KEY,
            "overlay": _TEXT,
            "empty": _BOOL,
            "tool_outcome": _TEXT,
            "reason": _TEXT,
            **_USAGE,
            "sequence": _INT,
        },
        {"run_key", "empty", "measured_at", "sequence"},
    ),
    distinct=_DISTINCT,
)


def table_layout(table: TableSchema) -> Layout:
    """The layout of a table that people read."""
    return Layout(f"table-{table.name}", table.version, table.schema)


def _sequence_from_time(part: pa.Table) -> pa.Table:
    """Version 0 counted nothing: the time of measuring, in nanoseconds, orders its rows as it did then."""
    import pyarrow.compute as pc

    times = part["measured_at"].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    return part.append_column("sequence", pc.multiply(times, 1000))


def _verdicts_0_to_1(part: pa.Table) -> pa.Table:
    """Version 0 had no re-verification, no workflows, and did not tell a real cost from a guess."""
    count = part.num_rows
    part = _sequence_from_time(part)
    part = part.append_column("tool_ran", pa.array([True] * count, pa.bool_()))
    part = part.append_column("step_usage", pa.nulls(count, pa.string()))
    return part.append_column("cost_is_real", pa.nulls(count, pa.bool_()))


def _candidates_0_to_1(part: pa.Table) -> pa.Table:
    """See verdicts."""
    count = part.num_rows
    part = _sequence_from_time(part)
    part = part.append_column("step_usage", pa.nulls(count, pa.string()))
    return part.append_column("cost_is_real", pa.nulls(count, pa.bool_()))


Migration = Callable[[pa.Table], pa.Table]

# layout name -> version -> the step that makes the next version of it.
MIGRATIONS: Mapping[str, Mapping[int, Migration]] = MappingProxyType(
    {
        VERDICT_PARTS.name: MappingProxyType({0: _verdicts_0_to_1}),
        CANDIDATE_PARTS.name: MappingProxyType({0: _candidates_0_to_1}),
    }
)
