"""A project's comparisons as the tables policy_receipts and policy_calls, attempt by attempt.

What belongs here: which attempts are run and which are reused, rows. What does not: ``bench policy run`` over files
(``policy_running``), the leaderboard (``policy_leaderboards``). A stored attempt is reused while its cases, its model
configuration, its budget, its time and its policies are those of the comparison, so that nothing is paid for twice. An
attempt that is cut off goes on where it ended (``policy_answers``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.errors import BenchError
from bench_pipeline.pipeline.policy_answers import KeptAnswers
from bench_pipeline.pipeline.policy_running import most_calls, receipt_rows
from bench_pipeline.pipeline.tables import Written, write_table
from bench_pipeline.policies.comparing import Attempt, run_attempt
from bench_pipeline.policies.comparison import Comparison
from bench_pipeline.tables import table_schema

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench


@dataclass
class AttemptDone:
    """What came of one partition: its file, how many comparisons were run or reused, and what kept others back."""

    written: Written
    counts: Mapping[str, int]
    failures: list[BenchError] = field(default_factory=list)


def check_comparisons(bench: "Bench") -> list[str]:
    """Every problem of the project's comparisons, as sentences."""
    return [str(problem) for problem in bench.policy_comparisons[1]]


def calls_to_make(bench: "Bench") -> dict[str, int]:
    """The comparisons that would ask a live model, and the most calls of each; what is stored is not asked."""
    found: dict[str, int] = {}
    for comparison in bench.policy_comparisons[0]:
        if comparison.config.endpoint is None:
            continue
        anew = [n for n in range(1, comparison.repeat + 1) if _stored(bench, n).of(comparison) is None]
        if anew:
            kept = sum(len(KeptAnswers(bench.store, comparison, attempt)) for attempt in anew)
            found[comparison.name] = len(anew) * most_calls(comparison.cases, comparison.terms) - kept
    return found


def write_receipts(
    bench: "Bench", attempts: Sequence[int], *, names: Iterable[str] = (), fresh: bool = False
) -> dict[int, AttemptDone]:
    """Run or reuse every comparison for the attempts, and write their receipts and calls.

    ``names`` are the comparisons that may be run, none for all; the others keep what is stored. What one comparison
    refuses (a key that is not there) is handed back and stops no other.
    """
    comparisons, _ = bench.policy_comparisons
    wanted = set(names) or {comparison.name for comparison in comparisons}
    return {attempt: _write_attempt(bench, comparisons, attempt, wanted, fresh) for attempt in attempts}


def _write_attempt(
    bench: "Bench", comparisons: Sequence[Comparison], attempt: int, wanted: set[str], fresh: bool
) -> AttemptDone:
    before = _stored(bench, attempt)
    receipts, calls, failures, finished = [], [], [], []
    counts = {"hits": 0, "misses": 0}
    for comparison in (each for each in comparisons if attempt <= each.repeat):
        kept = before.of(comparison)
        if kept is None or (fresh and comparison.name in wanted):
            if comparison.name not in wanted or bench.stop.starting.is_set():
                continue
            answers = KeptAnswers(bench.store, comparison, attempt)
            try:
                done = _ask(bench, comparison, attempt, answers)
            except BenchError as error:
                failures.append(error)
                continue
            cut_off = done.cancelled and bench.stop.starting.is_set()
            if not cut_off:
                finished.append(answers)
            if kept is None or not cut_off:
                kept = _tables(done, comparison.name)
            counts["misses"] += 1
        else:
            counts["hits"] += 1
        receipts.append(kept[0])
        calls.append(kept[1])
    write_table(bench.store, "policy_calls", _joined("policy_calls", calls), attempt=attempt)
    written = write_table(
        bench.store, "policy_receipts", _joined("policy_receipts", receipts), attempt=attempt
    )
    for answers in finished:
        answers.drop()
    return AttemptDone(written, counts, failures)


def _ask(bench: "Bench", comparison: Comparison, attempt: int, answers: KeptAnswers) -> Attempt:
    with bench.interrupts(bench.stop):
        return run_attempt(
            comparison.cases,
            comparison.open_model(answers),
            comparison.terms,
            attempt,
            stop=bench.stop.starting,
            begun=answers.begun,
        )


def _joined(name: str, tables: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables([table_schema(name).empty(), *tables])


@dataclass(frozen=True)
class _Stored:
    """What the tables hold of an attempt."""

    receipts: pa.Table
    calls: pa.Table

    def of(self, comparison: Comparison) -> tuple[pa.Table, pa.Table] | None:
        """The rows of a comparison where they say what a run would be about, and none was cancelled."""
        receipts, calls = (
            table.filter(pc.equal(table["comparison"], comparison.name))
            for table in (self.receipts, self.calls)
        )
        terms = comparison.terms
        same: dict[str, Any] = {
            "dataset_sha256": comparison.cases.sha256,
            "model_config_sha256": comparison.config.sha256,
            "call_budget": terms.budget,
            "timeout_s": terms.timeout_s,
        }
        rows = receipts.to_pylist()
        names = [policy.name for policy in terms.policies]
        if sorted(row["policy"] for row in rows) != sorted(names) or sum(row["calls"] for row in rows) != len(
            calls
        ):
            return None
        if any(row["state"] == "cancelled" or any(row[name] != same[name] for name in same) for row in rows):
            return None
        return receipts, calls


def _stored(bench: "Bench", attempt: int) -> _Stored:
    names = ("policy_receipts", "policy_calls")
    return _Stored(*(bench.store.tables.read(name, attempt=attempt) for name in names))


def _tables(attempt: Attempt, comparison: str) -> tuple[pa.Table, pa.Table]:
    receipts = table_schema("policy_receipts").from_rows(receipt_rows(attempt, comparison))
    return receipts, pa.concat_tables(_call_columns(attempt, comparison))


def _call_columns(attempt: Attempt, comparison: str) -> list[pa.Table]:
    """The calls of each policy as columns: there may be ten thousand of each."""
    schema = table_schema("policy_calls").schema
    tables = []
    for result in attempt.results:
        calls = result.tally.calls
        case_ids, tries, prompts, answers, failures, correct, started, latencies, tokens_in, tokens_out = (
            zip(*calls, strict=True) if calls else [()] * 10
        )
        columns: dict[str, Any] = {
            "comparison": [comparison] * len(calls),
            "attempt": [attempt.number] * len(calls),
            "harness": [result.policy.name] * len(calls),
            "case_id": case_ids,
            "try": tries,
            "prompt": prompts,
            "answer": answers,
            "failed": [failure is not None for failure in failures],
            "failure": failures,
            "correct": correct,
            "latency_s": latencies,
            "tokens_input": tokens_in,
            "tokens_output": tokens_out,
            "started_at": started,
            "position": range(1, len(calls) + 1),
        }
        tables.append(
            pa.table(
                {name: pa.array(columns[name], schema.field(name).type) for name in schema.names}, schema
            )
        )
    return tables
