"""Leaderboards of a project's comparisons, from the tables of receipts and calls.

What belongs here: rows to entries, and writing policy_leaderboard. What does not: order, refusal and statistics
(``policies``).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bench_pipeline.errors import RefusedError
from bench_pipeline.pipeline.provenance import made
from bench_pipeline.pipeline.tables import Written, write_table
from bench_pipeline.policies.certainty import rows
from bench_pipeline.policies.entries import Entry
from bench_pipeline.policies.leaderboard import Leaderboard, leaderboards
from bench_pipeline.tables import table_schema

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench


def write_leaderboard(bench: "Bench") -> Written:
    """Rank the policies of every stored comparison, and write the table."""
    with made(bench, "policy_leaderboard"):
        ranked = [
            row
            for name, boards in stored_leaderboards(bench).items()
            for board in boards
            for row in rows(board, name)
        ]
        table = table_schema("policy_leaderboard").from_rows(ranked)
        return write_table(bench.store, "policy_leaderboard", table)


def stored_leaderboards(bench: "Bench", names: Iterable[str] = ()) -> dict[str, list[Leaderboard]]:
    """The leaderboards of each stored comparison, or of those named: of each attempt, and pooled.

    Attempts that were measured under other terms than the rest have a leaderboard each and none that pools them.
    """
    receipts = bench.store.tables.read("policy_receipts")
    outcomes = _outcomes(
        bench.store.tables.read("policy_calls", ["comparison", "attempt", "harness", "case_id", "correct"])
    )
    entries: dict[str, list[Entry]] = {}
    for row in receipts.to_pylist():
        key = (row["comparison"], row["attempt"], row["harness"])
        entries.setdefault(row["comparison"], []).append(_entry(row, outcomes.get(key, {})))
    wanted = set(names) or set(entries)
    return {name: _boards(entries[name]) for name in sorted(entries) if name in wanted}


def _boards(entries: list[Entry]) -> list[Leaderboard]:
    try:
        return leaderboards(entries)
    except RefusedError:
        attempts = sorted({entry.attempt for entry in entries if entry.attempt is not None})
        return [board for n in attempts for board in leaderboards([e for e in entries if e.attempt == n])]


def _entry(row: dict[str, Any], outcomes: dict[str, float]) -> Entry:
    names = (
        "harness correct attempted errors total state calls call_budget dataset_sha256 model_config_sha256 scope model "
        "attempt"
    )
    return Entry(**{name: row[name] for name in names.split()}, outcomes=outcomes)


def _outcomes(calls: pa.Table) -> dict[tuple[str, int, str], dict[str, float]]:
    """Whether each case is correct, by comparison, attempt and harness: any correct call of it is its last."""
    found: dict[tuple[str, int, str], dict[str, float]] = {}
    grouped = calls.group_by(["comparison", "attempt", "harness", "case_id"], use_threads=False)
    merged = grouped.aggregate([("correct", "max")])
    columns = [
        merged[name].to_pylist() for name in ("comparison", "attempt", "harness", "case_id", "correct_max")
    ]
    for comparison, attempt, harness, case, correct in zip(*columns, strict=True):
        found.setdefault((comparison, attempt, harness), {})[case] = float(correct)
    return found


def check_traces(bench: "Bench", attempts: Sequence[int] = ()) -> list[str]:
    """The stored receipts, of all attempts or of some, whose counters do not follow from their calls."""
    wanted = attempts or [int(part["attempt"]) for part in bench.store.tables.partitions("policy_receipts")]
    return [
        f"{row['harness']} of {row['comparison']}, attempt {row['attempt']}"
        for attempt in wanted
        for row in _contradicting(
            *(bench.store.tables.read(name, attempt=attempt) for name in ("policy_receipts", "policy_calls"))
        )
    ]


def _contradicting(receipts: pa.Table, calls: pa.Table) -> Iterator[dict[str, Any]]:
    harness, case = ["comparison", "harness"], ["comparison", "harness", "case_id"]
    cases = calls.sort_by("position").group_by(case, use_threads=False)
    last = cases.aggregate([("failed", "last"), ("correct", "last"), ("try", "count")])
    sums = last.group_by(harness).aggregate(
        [("failed_last", "sum"), ("correct_last", "sum"), ("try_count", "sum"), ("case_id", "count")]
    )
    found = {
        (row["comparison"], row["harness"]): (
            row["failed_last_sum"],
            row["correct_last_sum"],
            row["try_count_sum"],
            row["case_id_count"],
        )
        for row in sums.to_pylist()
    }
    for row in receipts.to_pylist():
        told = (row["errors"], row["correct"], row["calls"], row["attempted"])
        if told != found.get((row["comparison"], row["harness"]), (0, 0, 0, 0)):
            yield row
