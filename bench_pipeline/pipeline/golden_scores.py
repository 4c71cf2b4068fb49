"""The composite scores of the golden lane: the table, and what ``bench golden run`` shows and keeps.

What belongs here: which scopes are scored, writing scores and run files. What does not: the formula
(``golden.scoring``) and gathering results (``golden_results``).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.documents import one_of
from bench_pipeline.errors import DocumentError, NotFoundError
from bench_pipeline.golden.comparing import Comparison, compare
from bench_pipeline.golden.gating import title
from bench_pipeline.golden.results import complete
from bench_pipeline.golden.runs import Run, Skipped, new_run, newest_run, write_run
from bench_pipeline.golden.scoring import score
from bench_pipeline.golden.suite import DEFAULT_TIERS, Suite
from bench_pipeline.pipeline.golden_results import Gathered, gather, write_gathered
from bench_pipeline.pipeline.provenance import made
from bench_pipeline.pipeline.querying import json_rows
from bench_pipeline.pipeline.selection import rectangle
from bench_pipeline.pipeline.tables import Written, write_table
from bench_pipeline.tables import table_schema
from bench_pipeline.tasks import TIERS

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench


@dataclass(frozen=True)
class ScoreRequest:
    """What to score: tiers (all but adversarial when none is named), one setup, one attempt."""

    tiers: tuple[str, ...] = DEFAULT_TIERS
    setup: str | None = None
    attempt: int | None = None
    compare: bool = False
    save: bool = True


@dataclass(frozen=True)
class Scored:
    """One score: its row of composite_scores, its run, and the comparison with an earlier run of the setup."""

    row: dict[str, Any]
    run: Run
    comparison: Comparison | None = None


@dataclass
class Scores:
    """All scores that were asked for, and what a person has to know beside them."""

    scores: list[Scored] = field(default_factory=list)
    gathered: Gathered | None = None
    skipped: list[Skipped] = field(default_factory=list)

    @property
    def worse(self) -> dict[str, tuple[str, ...]]:
        """By score, the tasks that passed in the run that it is compared with and fail now."""
        return {title(item.row): item.comparison.worse for item in self.scores if item.comparison}


def make_scores(bench: "Bench", request: ScoreRequest, now: datetime | None = None) -> Scores:
    """Score what cells and telemetry tell, and keep it unless that is not wanted.

    Raises:
        DocumentError: a golden task that cannot be read, or a task with two results: the score would be over
            something else than what is meant.
        NotFoundError: there is no such setup.
    """
    refuse_broken_suite(bench)
    attempts = None if request.attempt is None else [request.attempt]
    gathered = gather(bench, attempts)
    if gathered.conflicts:
        raise DocumentError(gathered.conflicts)
    suite = Suite.of(bench.golden.tasks, request.tiers)
    table = _scored(bench, gathered.results, suite)
    rows = [dict(row) for row in json_rows(_of_setup(table, request.setup))]
    made = Scores(gathered=gathered)
    moment = now or datetime.now(UTC)
    for row in rows:
        run = new_run(row, _own(gathered.results, row), suite, moment)
        earlier = None
        if request.compare:
            earlier, skipped = _earlier(bench, run)
            made.skipped += [item for item in skipped if item not in made.skipped]
        made.scores.append(Scored(row, run, None if earlier is None else compare(run, earlier)))
    if request.save:
        _save(bench, made, suite.scope, attempts)
    return made


def write_scores(bench: "Bench", attempts: Iterable[int], scopes: Sequence[str] = ()) -> dict[int, Written]:
    """Write composite_scores of the given attempts from the task results that are in the store.

    Scored are the default scope, ``scopes``, and every scope that the table has: one that was asked for once stays
    as current as the results.

    Raises:
        DocumentError: a golden task that cannot be read.
    """
    refuse_broken_suite(bench)
    written = {}
    for attempt in attempts:
        with (
            bench.store.lock(f"golden-scores-{attempt}"),
            made(bench, "composite_scores", [(str(attempt),)]),
        ):
            written[attempt] = _write_attempt(bench, attempt, scopes)
    return written


def refuse_broken_suite(bench: "Bench") -> None:
    """Raise DocumentError when a golden task cannot be read: without it, a score would look better than it is."""
    if bench.golden.problems:
        raise DocumentError(bench.golden.problems)


def _write_attempt(bench: "Bench", attempt: int, scopes: Sequence[str]) -> Written:
    default = Suite.of(bench.golden.tasks)
    results = bench.store.tables.read("task_results", attempt=attempt)
    results = complete(results, Suite.of(bench.golden.tasks, TIERS))
    stored = bench.store.tables.read("composite_scores", ["scope"], attempt=attempt)["scope"]
    wanted = sorted({default.scope, *scopes, *stored.to_pylist()})
    suites = [Suite.of_scope(bench.golden.tasks, scope) for scope in wanted]
    tables = [_scored(bench, results, suite) for suite in suites]
    table = pa.concat_tables([table_schema("composite_scores").empty(), *tables])
    return write_table(bench.store, "composite_scores", table, attempt=attempt)


def _scored(bench: "Bench", results: pa.Table, suite: Suite) -> pa.Table:
    return score(results, suite, bench.project.config.attestation)


def _of_setup(table: pa.Table, setup: str | None) -> pa.Table:
    if setup is None:
        return table
    own = table.filter(pc.equal(table["setup"], setup))
    if not own.num_rows:
        known = sorted(set(table["setup"].to_pylist()))
        raise NotFoundError(f"scoring {setup!r}", "there is no result of it", one_of(setup, known, "setups"))
    return own


def _own(results: pa.Table, row: dict[str, Any]) -> pa.Table:
    mask = results["known_task"]
    for name in ("setup", "setup_digest", "attempt"):
        mask = pc.and_(mask, pc.equal(results[name], row[name]))
    return results.filter(mask)


def _earlier(bench: "Bench", run: Run) -> tuple[Run | None, list[Skipped]]:
    """The newest run of the same setup and attempt, else of the same setup."""
    found, skipped = newest_run(
        bench.store, lambda other: (other.setup, other.attempt) == (run.setup, run.attempt)
    )
    if found is None:
        found, skipped = newest_run(bench.store, lambda other: other.setup == run.setup)
    return found, skipped


def _save(bench: "Bench", made: Scores, scope: str, attempts: list[int] | None) -> None:
    """Write the tables of what was gathered, and a run file for each score that is over anything."""
    assert made.gathered is not None
    results = made.gathered.results
    if attempts is None:
        stored = {int(part["attempt"]) for part in bench.store.tables.partitions("task_results")}
        attempts = sorted(stored | set(results["attempt"].to_pylist()))
    write_gathered(bench, results, rectangle(TIERS, attempts))
    write_scores(bench, attempts, [scope])
    made.scores = [
        Scored(item.row, write_run(bench.store, item.run), item.comparison) if item.row["tasks"] else item
        for item in made.scores
    ]
