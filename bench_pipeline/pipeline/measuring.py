"""Measuring: run what has no verdict, and write what is known of every cell.

The order is what makes a kill harmless: a candidate is stored before it is checked, a verdict before it is
reported, and the tables are made from the store afterwards, so they are the same however often a run was cut off.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.pipeline.bench import CellEvent
from bench_pipeline.pipeline.cell_work import Done, Item, Row
from bench_pipeline.pipeline.cells import in_partition
from bench_pipeline.pipeline.collecting import binary_keys, collect_verdicts
from bench_pipeline.pipeline.engines import Work, open_engine
from bench_pipeline.pipeline.planning import Plan, select
from bench_pipeline.pipeline.pricing import priced, total
from bench_pipeline.pipeline.replaying import REPLAY, UNRECORDED, decide
from bench_pipeline.pipeline.running import labels_to_run, refuse_other_plan
from bench_pipeline.pipeline.selection import Partition, RunOptions
from bench_pipeline.pipeline.spending import budget_of
from bench_pipeline.pipeline.tables import Written, write_table
from bench_pipeline.pipeline.telling import not_told_before
from bench_pipeline.pipeline.working import work
from bench_pipeline.store.locks import LEASE_TERM_S, LockHeldError
from bench_pipeline.store.schemas import VERDICT_PARTS
from bench_pipeline.tables import table_schema

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench

# First pause before an execution failure is tried again; it doubles with every try of the same cell.
_BACKOFF_S = 1.0
_MAX_BACKOFF_S = 60.0
# How long to wait for another process's cell before a stop is looked at: on an object store longer than a lease,
# which only a waiter that saw it unchanged for its whole term may take over.
_LOCAL_WAIT_S = 0.5
_LEASE_WAIT_S = 1.5 * LEASE_TERM_S


@dataclass(frozen=True)
class Deed:
    """What a run did with one identity."""

    item: Item
    action: str
    outcome: str
    reason: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    cost_usd: float | None = None


@dataclass(frozen=True)
class Measured:
    """The files of the verdicts table that were written, and what the run did with the cells of each."""

    written: Mapping[Partition, Written]
    deeds: pa.Table = field(repr=False)

    def counts(self, partition: Partition) -> dict[str, int | float | None]:
        """Counts of one partition, as numbers that can be charted over time."""
        table = self.written[partition].table
        classes, deeds = table["outcome_class"], in_partition(self.deeds, partition)["action"]
        reused = int(pc.sum(pc.equal(deeds, "reused")).as_py() or 0)
        cost, known, unknown = total(table["cost_usd"])
        return {
            "cells": table.num_rows,
            "measured": int(pc.sum(pc.equal(classes, "verdict")).as_py() or 0),
            "execution_failures": int(pc.sum(pc.equal(classes, "execution_failure")).as_py() or 0),
            "passed": int(pc.sum(pc.fill_null(table["passed"], False)).as_py() or 0),
            "hits": reused,
            "misses": len(deeds) - reused,
            "hit_rate": reused / len(deeds) if len(deeds) else None,
            "cost_usd": cost if known else None,
            "cost_unknown": unknown,
        }


def write_verdicts(
    bench: "Bench",
    options: RunOptions,
    *,
    partitions: Sequence[Partition],
    run_id: str,
    log: Callable[[str], None],
) -> Measured:
    """Measure the selected cells of ``partitions`` and write the verdicts of all their cells.

    ``log`` receives one line per finished cell. Raises StoreError when the store cannot keep what was measured
    and RefusedError for a cap that could not be kept; whatever was finished before is durable.
    """
    plan = bench.plan()
    covered = _covered(plan.cells, partitions)
    actions = decide(bench, plan, select(covered, options.selection), options)
    refuse_other_plan(actions, options.plan)
    run = _Run(bench, plan, options, run_id, log)
    run.budget.check(labels_to_run(actions))
    items = _items(actions)
    deeds = {item.identity: _left_alone(item) for item in items}
    try:
        for deed in run.measure(items):
            deeds[deed.item.identity] = deed
    finally:
        bench.left_usd = run.budget.left_usd
        written = _write_tables(bench, covered, partitions)
        table = _deeds_table(actions, deeds, run_id)
        write_table(bench.store, "run_cells", table, run_id=run_id)
    return Measured(written, table)


def _covered(cells: pa.Table, partitions: Sequence[Partition]) -> pa.Table:
    return pa.concat_tables([in_partition(cells, part) for part in partitions])


def _write_tables(
    bench: "Bench", cells: pa.Table, partitions: Sequence[Partition]
) -> dict[Partition, Written]:
    verdicts = collect_verdicts(bench.store, bench.prices, cells)
    return {
        part: write_table(
            bench.store, "verdicts", in_partition(verdicts, part), tier=part.tier, attempt=part.attempt
        )
        for part in partitions
    }


def _deeds_table(actions: pa.Table, deeds: Mapping[str, Deed], run_id: str) -> pa.Table:
    """One run_cells row per selected cell; cells that share an identity share what was done."""
    rows = []
    for cell in actions.select(["identity", "evaluation", "tier", "attempt", "action_reason"]).to_pylist():
        deed = deeds[cell["identity"]]
        first = deed.item.evaluation == cell["evaluation"]
        rows.append(
            {
                "run_id": run_id,
                "identity": cell["identity"],
                "action": deed.action if first or deed.action == "skipped" else "reused",
                "reason": deed.reason,
                "started_at": deed.started_at,
                "ended_at": deed.ended_at,
                "cost_usd": deed.cost_usd if first else None,
                "evaluation": cell["evaluation"],
                "tier": cell["tier"],
                "attempt": cell["attempt"],
            }
        )
    return table_schema("run_cells").from_rows(rows)


class _Run:
    """The measuring part of one run: its budget, its kit, and one cell after another."""

    def __init__(
        self, bench: "Bench", plan: Plan, options: RunOptions, run_id: str, log: Callable[[str], None]
    ) -> None:
        self.bench, self.plan, self.options, self.run_id, self.log = bench, plan, options, run_id, log
        self._said: set[str] = set()
        self._saying = threading.Lock()
        self.budget = budget_of(bench, options)

    def measure(self, items: Sequence[Item]) -> Iterator[Deed]:
        """Run or check again what needs it; yields what was done with each of these as it ends.

        Cells that another process works on come last, so that two runs at once share the work.
        """
        todo = [item for item in items if item.action in ("run", "reverify", REPLAY)]
        if not todo:
            return
        stop = self.bench.stop
        busy: list[Item] = []
        use = self.options.model_use
        with open_engine(self.bench, self.plan, self.run_id, use) as engine, self.bench.interrupts(stop):
            workers = self.options.concurrency or engine.workers
            # Lazy: the second pool starts when the first is done, and ``busy`` is complete.
            first = work(
                todo, lambda item: self._unless_busy(item, engine.work, busy), workers=workers, stop=stop
            )
            second = work(
                busy, lambda item: self._after_the_other(item, engine.work), workers=workers, stop=stop
            )
            done = 0
            for deed in chain(first, second):
                if deed is not None:
                    done += 1
                    self._report(deed, done, len(todo))
                    yield deed

    def _report(self, deed: Deed, done: int, of: int) -> None:
        item = deed.item
        event = CellEvent(
            setup=item.setup,
            task_id=item.task_id,
            attempt=item.attempt,
            action=deed.action,
            outcome=deed.outcome,
            reason=deed.reason,
            cost_usd=deed.cost_usd,
            done=done,
            total=of,
        )
        self.log(str(event))
        if self.bench.on_cell is not None:
            self.bench.on_cell(event)

    def _unless_busy(self, item: Item, where: Work, busy: list[Item]) -> Deed | None:
        """One identity, held against every other process meanwhile; noted as ``busy`` when one has it."""
        with ExitStack() as held:
            try:
                held.enter_context(self.bench.store.cell_lock(item.identity, wait_s=0))
            except LockHeldError:
                busy.append(item)
                return None
            return self._do(item, where, candidate=item.action == "reverify")

    def _after_the_other(self, item: Item, where: Work) -> Deed:
        """One identity that another process had: what that one stored is used, the rest is done."""
        wait_s = _LOCAL_WAIT_S if self.bench.store.root is not None else _LEASE_WAIT_S
        while not self.bench.stop.starting.is_set():
            with ExitStack() as held:
                try:
                    held.enter_context(self.bench.store.cell_lock(item.identity, wait_s=wait_s))
                except LockHeldError:
                    continue
                return self._do(item, where, candidate=not self.options.fresh)
        return Deed(item, "skipped", "not_attempted", "another run had it when this one was stopped")

    def _do(self, item: Item, where: Work, *, candidate: bool) -> Deed:
        """Measure one identity, which is held; ``candidate``: there may be one that only needs its check."""
        why = where.refusal(item)
        if why is not None:
            self._say_once([f"{item.setup} is not run: {why}"])
            return Deed(item, "skipped", "not_attempted", why)
        started = datetime.now(UTC)
        if item.action == REPLAY:
            return replace(self._replay(item, where), started_at=started, ended_at=datetime.now(UTC))
        reusable = self.plan.row(item.evaluation, item.identity)["reusable"]
        if not self.options.fresh and reusable and self._known(item):
            return Deed(item, "reused", "known", "measured by another run meanwhile")
        deed = self._reverify(item, where) if candidate and reusable else None
        deed = deed or self._execute(item, where)
        return replace(deed, started_at=started, ended_at=datetime.now(UTC))

    def _say_once(self, sentences: Iterable[str]) -> None:
        """Record what this machine cannot enforce, each thing once a run; tell people once for the project."""
        with self._saying:
            new = set(sentences) - self._said
            self._said |= new
            for sentence in sorted(new):
                self.log(sentence)
            for sentence in not_told_before(self.bench, new) if new else ():
                self.bench.on_notice(f"{sentence} (said once; `bench doctor` says it again)")

    def _known(self, item: Item) -> bool:
        """Whether a verdict of the identity has appeared since the plan was made."""
        newest = self.bench.store.verdicts.newest(binary_keys(pa.array([item.identity])))
        return bool(newest["outcome_class"].to_pylist() == ["verdict"])

    def _execute(self, item: Item, where: Work) -> Deed:
        """Run the tool, within the budget, again after execution failures as often as was asked for."""
        costs: list[float | None] = []
        last: Row = {}
        pause = _BACKOFF_S
        for remaining in range(self.options.retry, -1, -1):
            reservation = self.budget.reserve(item.setup_digest, again=bool(costs))
            if reservation.stopped_by is not None:
                if costs:
                    break
                return Deed(item, "skipped", "not_attempted", f"{reservation.stopped_by} reached")
            # Reserving may have waited, and been overtaken by a stop.
            stopped = not costs and self.bench.stop.starting.is_set()
            done = Done(None) if stopped else where.execute(item)
            self._say_once(done.said)
            if done.row is None:
                self.budget.give_back(reservation)
                if costs:
                    break
                return Deed(item, "skipped", "not_attempted", done.why)
            last = done.row
            costs.append(self._cost(last))
            self.budget.settle(reservation, costs[-1])
            if last["outcome_class"] == "verdict" or not remaining or self.bench.stop.starting.wait(pause):
                break
            pause = min(pause * 2, _MAX_BACKOFF_S)
        return Deed(item, "executed", str(last["outcome"]), _text(last["reason"]), cost_usd=_sum(costs))

    def _reverify(self, item: Item, where: Work) -> Deed | None:
        """Check the stored candidate; None when it cannot be read any more, so that the tool has to run."""
        done = where.reverify(item)
        if done is None:
            return None
        self._say_once(done.said)
        if done.row is None:
            return Deed(item, "skipped", "not_attempted", done.why)
        return Deed(item, "reverified", str(done.row["outcome"]), _text(done.row["reason"]), cost_usd=0.0)

    def _replay(self, item: Item, where: Work) -> Deed:
        """Run the tool on the recorded answers; nothing is spent."""
        done = where.replay(item)
        if done.row is None:
            return Deed(item, "skipped", "not_attempted", done.why)
        return Deed(item, "replayed", str(done.row["outcome"]), done.difference, cost_usd=0.0)

    def _cost(self, row: Row) -> float | None:
        table = VERDICT_PARTS.from_rows([row])
        cost: float | None = priced(table, self.bench.prices)["cost_usd"][0].as_py()
        return cost


def _items(actions: pa.Table) -> list[Item]:
    """The distinct identities in the order in which they are measured: a task over all setups, then the next.

    First attempts of all tasks come first. A run that a cap or a person ends leaves setups with the same tasks,
    but for the last one.
    """
    columns = [
        "identity",
        "run_key",
        "action",
        "action_reason",
        "setup",
        "setup_digest",
        "task_id",
        "attempt",
        "evaluation",
    ]
    seen: dict[str, Item] = {}
    for row in zip(*(actions[name].to_pylist() for name in columns), strict=True):
        seen.setdefault(row[0], Item(*row))
    place = {task: number for number, task in enumerate(dict.fromkeys(i.task_id for i in seen.values()))}
    return sorted(seen.values(), key=lambda item: (item.attempt, place[item.task_id]))


def _left_alone(item: Item) -> Deed:
    """The deed of an identity that nothing is done with, or not yet."""
    if item.action == "reuse":
        return Deed(item, "reused", "known")
    if item.action in ("exhausted", UNRECORDED):
        return Deed(item, "skipped", item.action, item.reason)
    return Deed(item, "skipped", "not_attempted", "stopped before it started")


def _sum(costs: Iterable[float | None]) -> float | None:
    import math

    known = list(costs)
    return None if None in known else math.fsum(cost for cost in known if cost is not None)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
