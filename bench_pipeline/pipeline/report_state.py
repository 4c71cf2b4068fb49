"""What the tables say at one moment, small enough to be kept with every report, and the kept ones.

What belongs here: reading a state off the tables, keeping it, finding an earlier one. What does not: what changed
between two (``report_changes``). States are the tables report_cells and report_measures, so a report needs nothing but
the store: Dagster's database may be deleted.

A state is named by its moment and its content. The same content is not kept twice, so that a report that is made again
is the same report, and what it calls new stays new until something else changes.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.errors import NotFoundError
from bench_pipeline.identity import digest
from bench_pipeline.pipeline.querying import run_queries
from bench_pipeline.tables import table_schema

if TYPE_CHECKING:
    from bench_pipeline.store import Store

# Two months of nights.
_KEPT = 60
_FORM = "%Y%m%dT%H%M%S.%fZ"
_DIGITS = 12
# A shorter start of a name is more likely a slip.
_MIN_PREFIX = 4
_CELLS, _MEASURES = "report_cells", "report_measures"

# Left out of a state's digest: its own name.
_CELLS_NOW = """
select c.evaluation, left(c.identity, 16) as cell, c.setup, c.task_id, c.attempt,
    coalesce(v.outcome, 'not_attempted') as outcome, coalesce(v.outcome_class, 'not_attempted') as outcome_class,
    v.passed
from evaluation_cells c left join verdicts v using (evaluation, identity)
order by evaluation, cell
"""
_MEASURES_NOW = """
select * from (
    select 'pass_rate' as measure, evaluation as scope, setup as name, setup_digest as digest, 0::bigint as attempt,
        pass_rate as value, rate_low as low, rate_high as high, shared_tasks as n
    from evaluation_rankings
    union all
    select 'score', scope, setup, setup_digest, attempt, score, null, null, tasks from composite_scores
    union all
    select 'correct_rate', comparison, harness, '', coalesce(attempt, 0), rate, rate_low, rate_high, attempted
    from policy_leaderboard
    union all
    select 'win_rate', comparison, "left" || ' against ' || "right", judge, attempt, left_winrate, winrate_low,
        winrate_high, pairs
    from judge_reports
    union all
    select 'ledger_rows', ledger, coalesce(route, ''), kind || if(route is null, ', no route', ''), 0, rows, null, null,
        rows
    from ledger_summaries
) order by measure, scope, name, digest, attempt
"""
# What a state is read off, with the columns that it needs.
_READ = {
    "evaluation_cells": ("evaluation", "identity", "setup", "task_id", "attempt"),
    "verdicts": ("evaluation", "identity", "outcome", "outcome_class", "passed"),
    "evaluation_rankings": None,
    "composite_scores": None,
    "policy_leaderboard": None,
    "judge_reports": None,
    "ledger_summaries": None,
}


@dataclass(frozen=True)
class State:
    """What a report knew: ``cells`` and ``measures`` are rows of report_cells and report_measures."""

    name: str
    cells: pa.Table
    measures: pa.Table

    @property
    def moment(self) -> datetime:
        """When it was first seen."""
        return moment_of(self.name)


def moment_of(name: str) -> datetime:
    """The moment in a state's name."""
    return datetime.strptime(name.partition("-")[0], _FORM).replace(tzinfo=UTC)


def current_state(store: "Store", now: datetime) -> State:
    """The state of the tables, under the name that it has if it is the newest kept one, else under a new one."""
    tables = {name: store.tables.read(name, columns) for name, columns in _READ.items()}
    found = run_queries(tables, {_CELLS: _CELLS_NOW, _MEASURES: _MEASURES_NOW})
    content = digest({"recipe": "report/1"} | {name: _content(table) for name, table in found.items()})
    kept = kept_states(store)
    if kept and kept[-1].endswith(f"-{content[:_DIGITS]}"):
        name = kept[-1]
    else:
        # A clock that was set back must not put the newest state before an older one.
        moment = max(now, moment_of(kept[-1]) + timedelta(microseconds=1)) if kept else now
        name = f"{moment.astimezone(UTC).strftime(_FORM)}-{content[:_DIGITS]}"
    cells, measures = (_named(kind, table, name) for kind, table in found.items())
    return State(name, cells, measures)


def keep_state(store: "Store", state: State) -> None:
    """Keep a state unless it is the newest one, and drop the oldest beyond those that are kept."""
    kept = kept_states(store)
    if kept and kept[-1] == state.name:
        return
    # The cells last: a state is there when they are.
    store.tables.write(_MEASURES, state.measures, report=state.name)
    store.tables.write(_CELLS, state.cells, report=state.name)
    for name in kept[: max(0, len(kept) + 1 - _KEPT)]:
        store.tables.delete(_CELLS, report=name)
        store.tables.delete(_MEASURES, report=name)


def kept_states(store: "Store") -> list[str]:
    """The names of the kept states, oldest first."""
    return sorted(part["report"] for part in store.tables.partitions(_CELLS))


def read_state(store: "Store", name: str) -> State:
    """A kept state."""
    return State(name, *(store.tables.read(kind, report=name) for kind in (_CELLS, _MEASURES)))


def earlier_state(store: "Store", current: str, since: str | None) -> str | None:
    """The name of the state to compare with: the newest one before ``current``, or that of ``since``.

    ``since`` is a report or a run, or the start of the name of one; with a run it is what was known before it began.

    Raises:
        NotFoundError: there is no such report or run, or nothing was kept before it.
    """
    others = [name for name in kept_states(store) if name != current]
    if since is None:
        return others[-1] if others else None
    named = [name for name in [*others, current] if _starts(name, since)]
    if len(named) == 1:
        return named[0]
    began = _began(store, since)
    before = [name for name in others if began is not None and moment_of(name) < began]
    if before:
        return before[-1]
    wrong = f"no report was kept before run {since} began"
    if began is None:
        wrong = f"{len(named)} reports start so" if named else "no report or run of the store is called so"
    known = f"the newest kept reports: {', '.join(others[-3:])}" if others else "no earlier report is kept"
    raise NotFoundError(f"comparing with {since!r}", wrong, known)


def _began(store: "Store", run: str) -> datetime | None:
    """When a run of the store began."""
    runs = {part["run_id"] for part in store.tables.partitions("run_cells")}
    named = [name for name in runs if _starts(name, run)]
    if len(named) != 1:
        return None
    started = pc.min(store.tables.read("run_cells", ["started_at"], run_id=named[0])["started_at"]).as_py()
    assert started is None or isinstance(started, datetime)
    return started


def _starts(name: str, wanted: str) -> bool:
    return name == wanted or (len(wanted) >= _MIN_PREFIX and name.startswith(wanted))


def _named(kind: str, table: pa.Table, name: str) -> pa.Table:
    schema = table_schema(kind).schema
    columns = {column: table[column] for column in table.column_names}
    columns["report"] = pa.repeat(pa.scalar(name), table.num_rows)
    return pa.table({column: columns[column] for column in schema.names}).cast(schema)


def _content(table: pa.Table) -> str:
    from bench_pipeline.store.content import content_digest

    return content_digest(table.combine_chunks(), ())
