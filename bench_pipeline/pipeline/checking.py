"""What must hold of a table that was written, whoever wrote it: its schema, its keys, its denominators.

The checks read the files back, so that a fault of the writer or of the disk shows as well.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.pipeline.selection import Partition
from bench_pipeline.tables import TableSchema, table_schema

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.store import Store


@dataclass(frozen=True)
class CheckOutcome:
    """One check over one reading of a table: how many rows were looked at, how many are at fault."""

    name: str
    passed: bool
    text: str
    rows: int
    faulty: int


Check = Callable[[TableSchema, pa.Table], tuple[int, str]]


def _schema(schema: TableSchema, table: pa.Table) -> tuple[int, str]:
    wrong = [
        f.name
        for f in schema.schema
        if f.name not in table.column_names or table.field(f.name).type != f.type
    ]
    nulls = {
        name: table[name].null_count
        for name in schema.required
        if name not in wrong and table[name].null_count
    }
    if wrong:
        return table.num_rows, f"columns missing or of another type: {', '.join(wrong)}"
    return sum(nulls.values()), f"nulls where none may be: {nulls}"


def _unique_keys(schema: TableSchema, table: pa.Table) -> tuple[int, str]:
    distinct = table.group_by(list(schema.key)).aggregate([]).num_rows
    return table.num_rows - distinct, f"rows that repeat a key of ({', '.join(schema.key)})"


def _unit_range(_: TableSchema, table: pa.Table) -> tuple[int, str]:
    columns = [
        name
        for name in ("pass_rate", "rate_low", "rate_high", "p_value", "p_holm")
        if name in table.column_names
    ]
    faulty = 0
    for name in columns:
        values = table[name].drop_null()
        inside = pc.and_(pc.greater_equal(values, 0.0), pc.less_equal(values, 1.0))
        faulty += len(values) - (pc.sum(inside.cast(pa.int64())).as_py() or 0)
    return faulty, f"values of {', '.join(columns)} outside 0..1"


def _outcomes(_: TableSchema, table: pa.Table) -> tuple[int, str]:
    """Attempted = verdicts + execution failures, and only a verdict says whether it passed."""
    classes = table["outcome_class"]
    known = pc.is_in(classes, value_set=pa.array(["verdict", "execution_failure", "not_attempted"]))
    judged = pc.equal(classes, "verdict")
    agrees = pc.equal(judged, pc.is_valid(table["passed"]))
    right = pc.equal(pc.fill_null(table["passed"], False), pc.equal(table["outcome"], "passed"))
    return _count_false(
        pc.and_(pc.and_(known, agrees), right)
    ), "rows whose class, outcome and pass mark disagree"


def _denominators(_: TableSchema, table: pa.Table) -> tuple[int, str]:
    ordered = pc.and_(
        pc.and_(
            pc.less_equal(table["passed"], table["measured"]),
            pc.less_equal(table["measured"], table["attempted"]),
        ),
        pc.less_equal(table["attempted"], table["total"]),
    )
    costs = pc.equal(pc.add(table["cost_known"], table["cost_unknown"]), table["attempted"])
    return _count_false(pc.and_(ordered, costs)), "rows whose counts do not add up"


def _count_false(mask: pa.ChunkedArray | pa.Array) -> int:
    return len(mask) - int(pc.sum(pc.fill_null(mask, False).cast(pa.int64())).as_py() or 0)


_COMMON: Mapping[str, tuple[str, Check]] = {
    "schema": ("Columns, types and nulls are those of the table's schema.", _schema),
    "unique_keys": ("No key stands twice.", _unique_keys),
}
_OWN: Mapping[str, Mapping[str, tuple[str, Check]]] = {
    "verdicts": {"outcomes": ("Outcome, class and pass mark agree in every row.", _outcomes)},
    "evaluation_rankings": {
        "denominators": (
            "passed <= measured <= attempted <= total, and costs are known or unknown.",
            _denominators,
        ),
        "unit_range": ("Rates are null or within 0..1.", _unit_range),
    },
    "paired_comparisons": {"unit_range": ("Probabilities are null or within 0..1.", _unit_range)},
}


def checks_of(name: str) -> dict[str, str]:
    """The checks of a table: name -> what must hold."""
    return {check: text for check, (text, _) in {**_COMMON, **_OWN.get(name, {})}.items()}


def check_table(store: "Store", name: str, partitions: Sequence[Partition] = ()) -> list[CheckOutcome]:
    """Run every check of a table over the given partitions; over all of it when none are, or it has none."""
    schema = table_schema(name)
    table = _read(store, name, partitions) if schema.partitions and partitions else store.tables.read(name)
    outcomes = []
    for check, (text, look) in {**_COMMON, **_OWN.get(name, {})}.items():
        faulty, fault = look(schema, table)
        found = text if faulty == 0 else f"{faulty} {fault}"
        outcomes.append(CheckOutcome(check, faulty == 0, found, table.num_rows, faulty))
    return outcomes


def _read(store: "Store", name: str, partitions: Sequence[Partition]) -> pa.Table:
    """The rows of some partitions, read tier by tier: each reading lists the folder, which is not free."""
    attempts: dict[str, set[int]] = {}
    for part in partitions:
        attempts.setdefault(part.tier, set()).add(part.attempt)
    tables = []
    for tier, wanted in attempts.items():
        narrowed: dict[str, str | int] = {"tier": tier}
        if len(wanted) == 1:
            narrowed["attempt"] = min(wanted)
        table = store.tables.read(name, None, **narrowed)
        tables.append(table.filter(pc.is_in(table["attempt"], value_set=pa.array(sorted(wanted)))))
    return pa.concat_tables(tables)


def check_documents(bench: "Bench") -> list[str]:
    """Every problem of the project's documents, as sentences."""
    return [str(problem) for problem in bench.plan().problems]
