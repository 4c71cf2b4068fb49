"""The task_results of the golden lane: what cells measured and what telemetry tells, one row a task.

What belongs here: gathering from store and project, and writing the table. What does not: what a row says (``golden``)
and scores (``golden_scores``).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.errors import Problem
from bench_pipeline.evaluations.labels import file_safe
from bench_pipeline.golden import judgements, telemetry
from bench_pipeline.golden.judgements import Judgements, read_judgements
from bench_pipeline.golden.measured import UNMEASURED, measured_row, told_apart
from bench_pipeline.golden.results import complete, settle
from bench_pipeline.golden.suite import Suite
from bench_pipeline.golden.telemetry import Row, TelemetryFile, find_files, read_telemetry
from bench_pipeline.identity import digest
from bench_pipeline.pipeline.attesting import attested
from bench_pipeline.pipeline.cells import in_partition
from bench_pipeline.pipeline.collecting import repriced
from bench_pipeline.pipeline.provenance import made
from bench_pipeline.pipeline.selection import Partition
from bench_pipeline.pipeline.tables import Written, write_table
from bench_pipeline.tables import table_schema
from bench_pipeline.tasks import TIERS

if TYPE_CHECKING:
    from bench_pipeline.attestation import Attested
    from bench_pipeline.pipeline.bench import Bench

_IMPORTED_RECIPE = "imported-setup/1"


@dataclass(frozen=True)
class Gathered:
    """The task results of some attempts, and what is wrong with the files that they were made from.

    ``conflicts`` are tasks that a setup's attempt has both a cell and a record of; which of them is meant is for a
    person to say, so their rows are invalid.
    """

    results: pa.Table
    problems: tuple[Problem, ...]
    conflicts: tuple[Problem, ...]


def gather(bench: "Bench", attempts: Sequence[int] | None = None) -> Gathered:
    """The task results of ``attempts``, or of all that there are any of, read now; nothing is written."""
    verdicts = _golden_verdicts(bench, attempts)
    attestations = attested(bench, verdicts)
    cells = told_apart(verdicts.to_pylist())
    labels = {file_safe(row["setup"]): row["setup"] for row in cells}
    judged, problems = _judgements(bench, labels, attempts)
    executed = [
        measured_row(row, bench.golden.by_id[row["task_id"]], _of(judged, row), bench.store.artifacts.get)
        | _attestation(attestations, row)
        for row in cells
    ]
    imported, announced, more = _imported(bench, labels, attempts, _digests(executed))
    imported = [row | _of(judged, row).columns(row["task_id"], None) for row in imported]
    rows, conflicts = _together(executed, imported)
    problems += _judged_in_vain(judged, [*rows, *announced])
    table = settle(table_schema("task_results").from_rows(rows))
    everything = Suite.of(bench.golden.tasks, TIERS)
    return Gathered(complete(table, everything, announced), (*problems, *more), conflicts)


def write_results(bench: "Bench", partitions: Sequence[Partition]) -> dict[Partition, Written]:
    """Write the task results of the given partitions; results of what is no longer there leave the table."""
    with made(bench, "task_results", [(part.tier, str(part.attempt)) for part in partitions]):
        gathered = gather(bench, sorted({part.attempt for part in partitions}))
        return write_gathered(bench, gathered.results, partitions)


def write_gathered(
    bench: "Bench", results: pa.Table, partitions: Sequence[Partition]
) -> dict[Partition, Written]:
    """Write results that were gathered for the attempts of the given partitions."""
    return {
        part: write_table(
            bench.store, "task_results", in_partition(results, part), tier=part.tier, attempt=part.attempt
        )
        for part in partitions
    }


def _attestation(attestations: Mapping[str, "Attested"], row: Row) -> Row:
    """The attestation's columns of a cell that was attempted; there is nothing to attest of another."""
    found = attestations.get(row["identity"])
    if found is None or row["outcome"] in UNMEASURED:
        return {}
    return {
        "attestation": found.digest,
        "attestation_verdict": found.verdict,
        "attestation_problem": found.problem,
    }


def _golden_verdicts(bench: "Bench", attempts: Sequence[int] | None) -> pa.Table:
    """The verdicts about golden tasks, at today's prices."""
    verdicts = bench.store.tables.read("verdicts")
    wanted = pc.is_in(verdicts["task_id"], value_set=pa.array(list(bench.golden.by_id), pa.string()))
    if attempts is not None:
        wanted = pc.and_(wanted, pc.is_in(verdicts["attempt"], value_set=pa.array(attempts, pa.int64())))
    return repriced(bench.store, bench.prices, verdicts.filter(wanted))


def _files(
    bench: "Bench", folder: str, attempts: Sequence[int] | None
) -> tuple[list[TelemetryFile], list[Problem]]:
    files, problems = find_files(bench.project.root, folder, bench.project.config.defaults.max_attempts)
    return [file for file in files if attempts is None or file.attempt in attempts], problems


def _judgements(
    bench: "Bench", labels: Mapping[str, str], attempts: Sequence[int] | None
) -> tuple[dict[tuple[str, int], Judgements], list[Problem]]:
    """The judgements of each setup's attempt, and what is wrong with them."""
    files, problems = _files(bench, judgements.FOLDER, attempts)
    found = {
        (labels.get(file.setup, file.setup), file.attempt): read_judgements(file.path, bench.golden.by_id)
        for file in files
        if file.readable
    }
    return found, problems + [problem for own in found.values() for problem in own.problems]


def _judged_in_vain(
    judged: Mapping[tuple[str, int], Judgements], results: Iterable[Row]
) -> Iterator[Problem]:
    """A problem for each judgement file of a setup's attempt that has no results: its name may be mistyped."""
    there = {(row["setup"], row["attempt"]) for row in results}
    for setup, attempt in sorted(judged.keys() - there):
        file = f"{judgements.FOLDER}/{file_safe(setup)}/{attempt}.jsonl"
        wrong = f"there are no results of {setup}, attempt {attempt}; nothing is made of its judgements"
        yield Problem(file, None, "", wrong)


def _of(judged: Mapping[tuple[str, int], Judgements], row: Row) -> Judgements:
    return judged.get((row["setup"], row["attempt"]), Judgements())


def _imported(
    bench: "Bench",
    labels: Mapping[str, str],
    attempts: Sequence[int] | None,
    digests: Mapping[str, set[str]],
) -> tuple[list[Row], list[Row], list[Problem]]:
    """The rows of all telemetry files, whose attempts those files tell of, and what is wrong with them.

    The folder of a setup that has cells is called by its label, made safe for file names. One setup under one name
    is one score, whoever ran it.
    """
    files, problems = _files(bench, telemetry.FOLDER, attempts)
    rows: list[Row] = []
    announced: list[Row] = []
    for file in files:
        setup = labels.get(file.setup, file.setup)
        own = digests.get(setup, set())
        named = {"setup": setup, "setup_digest": min(own) if len(own) == 1 else _imported_digest(setup)}
        announced.append({**named, "attempt": file.attempt})
        if file.readable:
            imported = read_telemetry(file, bench.golden.by_id)
            problems += imported.problems
            rows += [row | named for row in imported.rows]
    return rows, announced, problems


def _digests(executed: Sequence[Row]) -> dict[str, set[str]]:
    """The digests that cells have under each name of a setup."""
    digests: dict[str, set[str]] = {}
    for row in executed:
        digests.setdefault(row["setup"], set()).add(row["setup_digest"])
    return digests


def _together(executed: list[Row], imported: list[Row]) -> tuple[list[Row], tuple[Problem, ...]]:
    """All rows, one for each task of a setup's attempt, and a problem for each that has two results.

    A cell that measured nothing gives way to a record. Of two results none is valid, and both close their gates.
    """
    told = {_task_of(row): row for row in imported}
    kept: list[Row] = []
    conflicts: list[Problem] = []
    for row in executed:
        other = told.get(_task_of(row))
        if other is None:
            kept.append(row)
        elif row["attempted"]:
            conflict = _conflict(row)
            conflicts.append(conflict)
            other |= {name: other[name] + row[name] for name in ("tests_regressed", "crashes", "orphans")}
            other |= {"telemetry_valid": False, "telemetry_problem": conflict.message}
    return [*kept, *imported], tuple(conflicts)


def _task_of(row: Row) -> tuple[str, int, str]:
    return row["setup"], row["attempt"], row["task_id"]


def _conflict(row: Row) -> Problem:
    file = f"{telemetry.FOLDER}/{file_safe(row['setup'])}/{row['attempt']}.jsonl"
    text = f"{row['task_id']} is in this file and was executed by this project too; remove one of the two results"
    return Problem(file, None, "task_id", text)


def _imported_digest(setup: str) -> str:
    """What tells an imported setup apart: nothing but its name is known of it."""
    return digest({"recipe": _IMPORTED_RECIPE, "setup": setup})
