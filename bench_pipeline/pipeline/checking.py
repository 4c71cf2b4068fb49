"""What must hold of a table that was written, whoever wrote it: its schema, its keys, its denominators.

The checks read the files back, so that a fault of the writer or of the disk shows as well.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.ledgers.routes import KINDS
from bench_pipeline.tables import TableSchema, table_schema
from bench_pipeline.tasks import TIERS

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


# The columns that are shares or probabilities, in whatever table.
_SHARES = (
    *("rate", "pass_rate", "rate_low", "rate_high", "p_value", "p_holm"),
    *("score", "task_success", "code_quality", "efficiency", "reliability", "safety", "score_uncontaminated"),
    *(f"rate_{tier}" for tier in TIERS),
    *("judge_score", "left_winrate", "winrate_low", "winrate_high"),
    *("avg_partial", "avg_f2p"),
)

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
    columns = [name for name in _SHARES if name in table.column_names]
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


def _failures(_: TableSchema, table: pa.Table) -> tuple[int, str]:
    """A known task that did not pass has a kind of failure, and no other row has."""
    failed = pc.and_(table["known_task"], pc.invert(pc.fill_null(table["passed"], False)))
    agrees = pc.equal(failed, pc.is_valid(table["failure_category"]))
    known = pc.equal(pc.is_valid(table["passed"]), table["telemetry_valid"])
    return _count_false(pc.and_(agrees, known)), "rows whose pass mark, telemetry and failure disagree"


def _gates(_: TableSchema, table: pa.Table) -> tuple[int, str]:
    """A closed gate takes the whole score, and every loss of safety or reliability has its reason."""
    reasons = pc.binary_join(table["reasons"], "\n")
    unsafe = pc.equal(pc.fill_null(table["safety"], 1.0), 0.0)
    unreliable = pc.less(pc.fill_null(table["reliability"], 1.0), 1.0)
    zero = pc.or_(pc.invert(unsafe), pc.equal(table["score"], 0.0))
    explained = pc.and_(
        pc.or_(pc.invert(unsafe), pc.match_substring(reasons, "safety 0:")),
        pc.or_(pc.invert(unreliable), pc.match_substring(reasons, "reliability")),
    )
    return _count_false(pc.and_(zero, explained)), "rows whose gates are not explained"


def _score_counts(_: TableSchema, table: pa.Table) -> tuple[int, str]:
    measured = pc.subtract(table["tasks"], table["without_telemetry"])
    fits = pc.and_(pc.less_equal(table["passed"], measured), pc.less_equal(table["cost_unknown"], measured))
    return _count_false(
        pc.and_(fits, pc.less_equal(table["judged"], table["tasks"]))
    ), "rows whose counts do not add up"


def _calls(_: TableSchema, table: pa.Table) -> tuple[int, str]:
    """What no run of a policy can have counted; a pooled row sums several."""
    right = pc.and_(
        pc.less_equal(pc.add(table["correct"], table["errors"]), table["attempted"]),
        pc.less_equal(table["attempted"], table["total"]),
    )
    kept = pc.and_(
        pc.less_equal(table["attempted"], table["calls"]), pc.less_equal(table["calls"], table["call_budget"])
    )
    return _count_false(pc.and_(right, kept)), "rows whose counts do not add up"


def _scored(_: TableSchema, table: pa.Table) -> tuple[int, str]:
    """Passed is within both caps with nothing missing, and over a cap is what the counts say."""
    within = pc.and_(
        pc.less_equal(table["steps"], table["max_steps"]),
        pc.less_equal(table["seconds"], table["max_seconds"]),
    )
    whole = pc.equal(pc.list_value_length(table["missing_evidence"]), 0)
    agrees = pc.equal(table["passed"], pc.and_(within, whole))
    over = pc.equal(pc.or_(table["over_steps"], table["over_seconds"]), pc.invert(within))
    return _count_false(pc.and_(agrees, over)), "rows whose pass mark, caps and evidence disagree"


def _votes(_: TableSchema, table: pa.Table) -> tuple[int, str]:
    """Every pair is a win of a side, a tie or no vote, and what was inconsistent is among the ties."""
    sides = pc.add(table["left_wins"], table["right_wins"])
    adds = pc.equal(pc.add(pc.add(sides, table["ties"]), table["no_votes"]), table["pairs"])
    return _count_false(
        pc.and_(adds, pc.less_equal(table["inconsistent"], table["ties"]))
    ), "rows whose counts do not add up"


def _one_kind(_: TableSchema, table: pa.Table) -> tuple[int, str]:
    """A route has one kind, so no number of its row is about several."""
    known = pc.is_in(table["kind"], value_set=pa.array(KINDS))
    kinds = table.group_by(["ledger", "route", "kind"]).aggregate([]).num_rows
    mixed = kinds - table.group_by(["ledger", "route"]).aggregate([]).num_rows
    return _count_false(known) + mixed, "rows of an unknown kind, or of a route that has several"


def _one_row_per_route(schema: TableSchema, table: pa.Table) -> tuple[int, str]:
    """No row adds up routes: each route of a ledger stands once, with a kind of its own."""
    mixed, fault = _one_kind(schema, table)
    repeated = table.num_rows - table.group_by(["ledger", "route"]).aggregate([]).num_rows
    return mixed + repeated, f"{fault}, or a route that stands twice"


def _ledger_counts(_: TableSchema, table: pa.Table) -> tuple[int, str]:
    ordered = pc.and_(
        pc.less_equal(table["passes"], table["valid"]), pc.less_equal(table["valid"], table["rows"])
    )
    for name in ("partial", "f2p"):
        count = table[f"{name}_n"]
        known = pc.equal(pc.is_valid(table[f"avg_{name}"]), pc.greater(count, 0))
        ordered = pc.and_(ordered, pc.and_(known, pc.less_equal(count, table["valid"])))
    return _count_false(ordered), "rows whose counts do not add up"


def _reasons(_: TableSchema, table: pa.Table) -> tuple[int, str]:
    agrees = pc.equal(table["valid"], pc.is_null(table["invalid_reason"]))
    return _count_false(agrees), "rows that are valid with a reason why not, or invalid without one"


def _count_false(mask: pa.ChunkedArray | pa.Array) -> int:
    return len(mask) - int(pc.sum(pc.fill_null(mask, False).cast(pa.int64())).as_py() or 0)


_COMMON: Mapping[str, tuple[str, Check]] = {
    "schema": ("Columns, types and nulls are those of the table's schema.", _schema),
    "unique_keys": ("No key stands twice.", _unique_keys),
}
_CALLS_ADD_UP = "correct + errors <= attempted <= total, and attempted <= calls <= call_budget."
_OWN: Mapping[str, Mapping[str, tuple[str, Check]]] = {
    "ledger_rows": {
        "one_kind": ("A route is of one kind.", _one_kind),
        "reasons": ("A row is valid, or says why not.", _reasons),
    },
    "ledger_summaries": {
        "no_cross_kind_averages": ("Each row is about one route, of one kind.", _one_row_per_route),
        "denominators": ("passes <= valid <= rows, and an average has rows that it is over.", _ledger_counts),
        "unit_range": ("Averages are null or within 0..1.", _unit_range),
    },
    "verdicts": {"outcomes": ("Outcome, class and pass mark agree in every row.", _outcomes)},
    "evaluation_rankings": {
        "denominators": (
            "passed <= measured <= attempted <= total, and costs are known or unknown.",
            _denominators,
        ),
        "unit_range": ("Rates are null or within 0..1.", _unit_range),
    },
    "task_results": {
        "failures": ("What did not pass has one kind of failure, and nothing else has.", _failures),
        "unit_range": ("Marks of judges are null or within 0..1.", _unit_range),
    },
    "composite_scores": {
        "unit_range": ("The score, its parts and its rates are null or within 0..1.", _unit_range),
        "gates": ("A closed gate makes the score 0, and every gate has its reason.", _gates),
        "denominators": ("passed <= measured <= tasks, and judged <= tasks.", _score_counts),
    },
    "scenario_results": {
        "scored": ("Passed is within both caps and nothing missing.", _scored),
    },
    "judge_reports": {
        "denominators": ("Wins, ties and no votes add up to the pairs.", _votes),
        "unit_range": ("Win rates are null or within 0..1.", _unit_range),
    },
    "paired_comparisons": {"unit_range": ("Probabilities are null or within 0..1.", _unit_range)},
    "policy_receipts": {"denominators": (_CALLS_ADD_UP, _calls)},
    "policy_leaderboard": {
        "denominators": (_CALLS_ADD_UP, _calls),
        "unit_range": ("Rates are null or within 0..1.", _unit_range),
    },
}


def checks_of(name: str) -> dict[str, str]:
    """The checks of a table: name -> what must hold."""
    return {check: text for check, (text, _) in {**_COMMON, **_OWN.get(name, {})}.items()}


def check_table(
    store: "Store", name: str, partitions: Sequence[Mapping[str, str | int]] = ()
) -> list[CheckOutcome]:
    """Run every check of a table over the given partitions, each as its columns; over all when none are given."""
    schema = table_schema(name)
    checks = {**_COMMON, **_OWN.get(name, {})}
    rows, faulty, faults = 0, dict.fromkeys(checks, 0), dict.fromkeys(checks, "")
    for table in _pieces(store, name, partitions):
        rows += table.num_rows
        for check, (_, look) in checks.items():
            found, fault = look(schema, table)
            faulty[check] += found
            faults[check] = fault if found else faults[check]
    return [
        CheckOutcome(
            check,
            not faulty[check],
            f"{faulty[check]} {faults[check]}" if faulty[check] else text,
            rows,
            faulty[check],
        )
        for check, (text, _) in checks.items()
    ]


def _pieces(store: "Store", name: str, partitions: Sequence[Mapping[str, str | int]]) -> Iterator[pa.Table]:
    """The rows of a table, or of some partitions: at once, but those of ledgers, which are many, file by file."""
    schema = table_schema(name)
    if "segment" in schema.partitions:
        ledgers = {str(part["ledger"]) for part in partitions}
        for part in store.tables.partitions(name):
            if not ledgers or part["ledger"] in ledgers:
                yield store.tables.read(name, None, **part)
    else:
        yield _read(store, name, partitions) if schema.partitions and partitions else store.tables.read(name)


def _read(store: "Store", name: str, partitions: Sequence[Mapping[str, str | int]]) -> pa.Table:
    """The rows of some partitions, read tier by tier: each reading lists the folder, which is not free."""
    attempts: dict[str | None, set[int]] = {}
    for part in partitions:
        tier = part.get("tier")
        attempts.setdefault(None if tier is None else str(tier), set()).add(int(part["attempt"]))
    tables = []
    for tier, wanted in attempts.items():
        narrowed: dict[str, str | int] = {} if tier is None else {"tier": tier}
        if len(wanted) == 1:
            narrowed["attempt"] = min(wanted)
        table = store.tables.read(name, None, **narrowed)
        tables.append(table.filter(pc.is_in(table["attempt"], value_set=pa.array(sorted(wanted)))))
    return pa.concat_tables(tables)


def check_documents(bench: "Bench") -> list[str]:
    """Every problem of the project's documents, as sentences."""
    return [str(problem) for problem in bench.plan().problems]


def check_telemetry(bench: "Bench") -> list[str]:
    """Every problem of the project's telemetry and judgements, as sentences."""
    from bench_pipeline.pipeline.golden_results import gather

    gathered = gather(bench)
    return [str(problem) for problem in (*gathered.problems, *gathered.conflicts)]
