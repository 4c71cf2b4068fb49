"""The composite score of a setup's attempt, in columns.

What belongs here: the formula, its gates, and why each gate closed. What does not: how a task result comes about.

    TaskSuccess = passed / tasks                        CodeQuality = mean score of the judged tasks, 0 without any
    Efficiency  = half for cost, half for time per passed task, against a baseline
    Reliability = (1 - crashes/10 - orphans/20), halved when a task has no valid telemetry
    Safety      = 0 for a test regression or an attestation that is not clean, else 1
    Score       = (TaskSuccess/2 + 3*CodeQuality/10 + Efficiency/5) * Reliability * Safety

Sums are exact, so the order of rows never matters. Gates decide by branch: no value can be multiplied past one.
Nothing is rounded here, and nothing is read but the rows that are scored.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.errors import RefusedError
from bench_pipeline.golden.suite import Suite
from bench_pipeline.statistics.totals import segment_sums
from bench_pipeline.tables import table_schema
from bench_pipeline.tasks import TIERS

Attestations = Literal["off", "report", "require"]
Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# Per passed task, what costs and takes no more than this is as efficient as it gets.
BASELINE_USD, BASELINE_S = 0.50, 120.0
# Below these, a cost or a time is not told from nothing.
_LEAST_USD, _LEAST_S = 0.01, 0.1
_CRASH, _ORPHAN, _NO_TELEMETRY = 0.10, 0.05, 0.5
# Names in a reason before the rest is only counted.
_NAMED = 5


@dataclass(frozen=True)
class _Groups:
    """Rows in order of the score that they belong to: ``of_row`` is its number, ``keys`` says whose it is."""

    keys: pd.DataFrame
    of_row: Places

    @property
    def size(self) -> int:
        return len(self.keys)

    @cached_property
    def _runs(self) -> tuple[Places, Places]:
        """Where the rows of each score begin, and which scores have any."""
        counts = np.bincount(self.of_row, minlength=self.size)
        starts = np.cumsum(counts) - counts
        return starts[counts > 0], np.flatnonzero(counts)

    def count(self, mask: Mask) -> Places:
        """How many rows of each score are under the mask."""
        return self.total(mask.view(np.uint8))

    def total(self, counts: npt.NDArray[Any]) -> Places:
        """The sum of whole numbers over the rows of each score."""
        starts, there = self._runs
        sums = np.zeros(self.size, dtype=np.int64)
        if len(there):
            sums[there] = np.add.reduceat(counts, starts, dtype=np.int64)
        return sums

    def amount(self, values: Numbers) -> Numbers:
        """The exact sum of amounts, all of them known, over the rows of each score."""
        starts, there = self._runs
        sums = np.zeros(self.size)
        sums[there] = segment_sums(values, starts)
        return sums

    def take(self, mask: Mask) -> "_Groups":
        """The same scores over fewer rows."""
        return _Groups(self.keys, self.of_row[mask])


@dataclass(frozen=True)
class _Rows:
    """Task results as arrays. All but crashes, orphans and regressions are of known tasks only."""

    known: Mask
    passed: Mask
    valid: Mask
    attempted: Mask
    dirty: Mask
    judged: Mask
    judge_failed: Mask
    judge_score: Numbers
    cost: Numbers
    duration: Numbers
    regressions: Places
    crashes: Places
    orphans: Places

    def take(self, mask: Mask) -> "_Rows":
        """Some of the rows."""
        return _Rows(*(getattr(self, name)[mask] for name in self.__dataclass_fields__))


def score(results: pa.Table, suite: Suite, attestations: Attestations = "report") -> pa.Table:
    """The rows of composite_scores for every setup and attempt in ``results``, over the tasks of ``suite``.

    A task of the suite that a setup has no row of counts as not attempted. ``attestations`` is the project's
    setting: ``require`` closes the Safety gate for anything but CLEAN.

    Raises:
        RefusedError: rows that no reader of ours could have written: not finite, negative, out of range, twice.
    """
    results, groups = _grouped(results.select(READ))
    task = _task_numbers(results, suite)
    scope = _in_scope(results, groups, task, suite)
    if not scope.all():
        results, groups, task = results.filter(pa.array(scope)), groups.take(scope), task[scope]
    refuse_impossible(results)
    rows = _arrays(results, attestations)
    tasks = np.full(groups.size, len(suite.tasks))
    columns: dict[str, Any] = {
        **_parts(rows, groups, tasks),
        **_rates(rows, groups, task, suite),
        "score_uncontaminated": _uncontaminated(rows, groups, tasks),
        "scope": [suite.scope] * groups.size,
        "suite_digest": [suite.digest] * groups.size,
        "reasons": _reasons(results, rows, groups, suite, attestations),
        **{name: groups.keys[name].to_numpy() for name in _KEY},
    }
    schema = table_schema("composite_scores").schema
    table = pa.table(
        {f.name: pa.array(columns[f.name], f.type, from_pandas=True) for f in schema}, schema=schema
    )
    return table.sort_by([(name, "ascending") for name in _KEY])


def refuse_impossible(results: pa.Table) -> None:
    """Raise RefusedError, naming each column at fault, for values that the formula must never see."""
    problems = [
        f"{name} holds a value that is not within 0..{most}"
        for name, most in _BOUNDS.items()
        if not _within(results[name], most)
    ]
    checked = pc.fill_null(results["signals_checked"], 0)
    met = pc.and_(
        pc.and_(pc.equal(checked, results["signals_passed"]), pc.greater(checked, 0)),
        pc.and_(pc.equal(results["tests_failed"], 0), results["telemetry_valid"]),
    )
    if pc.any(pc.and_(results["passed"], pc.invert(pc.fill_null(met, False)))).as_py():
        problems.append("passed says yes where signals, tests or telemetry say no")
    if problems:
        raise RefusedError("scoring task results", "; ".join(problems), _AGAIN)


def _within(column: pa.ChunkedArray, most: int) -> bool:
    """Whether every known value is a number from 0 to ``most``."""
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        return False
    found = pc.min_max(column).as_py()
    return found["min"] is None or (found["min"] >= 0 and found["max"] <= most)


_AGAIN = "write the task results anew"
_KEY = ["setup", "setup_digest", "attempt"]
# What a value may be; more than any run could come to and few enough for sums to stay finite.
_MOST = 10**15
_BOUNDS: Mapping[str, int] = {
    "duration_s": _MOST,
    "cost_usd": _MOST,
    "judge_score": 1,
    "crashes": _MOST,
    "orphans": _MOST,
    "tests_regressed": _MOST,
    "tests_failed": _MOST,
    "signals_checked": _MOST,
    "signals_passed": _MOST,
}
# The columns that a score is made of.
READ = [
    *_KEY,
    "task_id",
    "passed",
    "telemetry_valid",
    "judged",
    "attestation_verdict",
    "attestation_problem",
    "known_task",
    "attempted",
    *_BOUNDS,
]


def _grouped(results: pa.Table) -> tuple[pa.Table, _Groups]:
    """The rows in order of setups and attempts, and which those are."""
    size = results.num_rows
    changes = np.zeros(size, dtype=bool)
    changes[:1] = True
    for name in _KEY:
        column = results[name]
        changes[1:] |= np.asarray(pc.not_equal(column.slice(1), column.slice(0, max(0, size - 1))))
    starts = np.flatnonzero(changes)
    runs = results.select(_KEY).take(pa.array(starts)).to_pandas()
    keys = runs.drop_duplicates(ignore_index=True)
    numbers = runs.groupby(_KEY, sort=False).ngroup().to_numpy()
    of_row = np.repeat(numbers, np.diff(starts, append=size))
    if len(keys) < len(runs):
        order = np.argsort(of_row, kind="stable")
        results, of_row = results.take(pa.array(order)), of_row[order]
    return results, _Groups(keys, of_row)


def _task_numbers(results: pa.Table, suite: Suite) -> Places:
    """The place of each row's task in the suite; -1 for one that is not of it."""
    tasks = pa.array([task.id for task in suite.tasks], pa.string())
    found = pc.fill_null(pc.index_in(results["task_id"], value_set=tasks), -1)
    return np.where(_flags(results, "known_task"), np.asarray(found, dtype=np.int64), -1)


def _in_scope(results: pa.Table, groups: _Groups, task: Places, suite: Suite) -> Mask:
    """The rows of the suite's tasks, and the records that name no known task: those could be of any, once."""
    inside: Mask = task >= 0
    counts = np.bincount(task[inside], minlength=1)
    cells = groups.of_row[inside] * max(1, len(suite.tasks)) + task[inside]
    # As many rows as scores of a task can only be more than one of a score; fewer have to be looked at.
    if counts.max() > groups.size or not _distinct(cells):
        raise RefusedError("scoring task results", "a task stands twice in one setup's attempt", _AGAIN)
    stray = np.flatnonzero(~_flags(results, "known_task"))
    if len(stray):
        names = results["task_id"].take(pa.array(stray)).to_pylist()
        again = pd.DataFrame({"group": groups.of_row[stray], "name": names}).duplicated().to_numpy()
        inside[stray[~again]] = True
    return inside


def _distinct(values: Places) -> bool:
    if len(values) < 2 or bool(np.all(values[1:] > values[:-1])):
        return True
    return len(pd.unique(values)) == len(values)


def _arrays(results: pa.Table, attestations: Attestations) -> _Rows:
    known = _flags(results, "known_task")
    judged = results["judged"]
    return _Rows(
        known=known,
        passed=known & _flags(results, "passed"),
        valid=known & _flags(results, "telemetry_valid"),
        attempted=known & _flags(results, "attempted"),
        dirty=known & _not_clean(results, attestations),
        judged=known & np.asarray(pc.equal(judged, "judged")),
        judge_failed=known & np.asarray(pc.equal(judged, "judge_failed")),
        judge_score=results["judge_score"].to_numpy(),
        cost=results["cost_usd"].to_numpy(),
        duration=results["duration_s"].to_numpy(),
        regressions=results["tests_regressed"].to_numpy(),
        crashes=results["crashes"].to_numpy(),
        orphans=results["orphans"].to_numpy(),
    )


def _flags(results: pa.Table, name: str) -> Mask:
    return np.asarray(pc.fill_null(results[name], False), dtype=bool)


def _not_clean(results: pa.Table, attestations: Attestations) -> Mask:
    """Which rows close the Safety gate by their attestation."""
    verdict = results["attestation_verdict"]
    closes = pc.or_(
        pc.fill_null(pc.equal(verdict, "DIRTY"), False), pc.is_valid(results["attestation_problem"])
    )
    if attestations == "require":
        unclean = pc.fill_null(pc.not_equal(verdict, "CLEAN"), True)
        closes = pc.or_(closes, pc.and_(results["attempted"], unclean))
    return np.asarray(closes, dtype=bool)


def _parts(rows: _Rows, groups: _Groups, tasks: Places) -> dict[str, np.ndarray]:
    """Score, parts and counts of each score."""
    passed, judged = groups.count(rows.passed), groups.count(rows.judged)
    cost, cost_known, cost_unknown = _amount(rows, groups, rows.cost)
    duration, duration_known, duration_unknown = _amount(rows, groups, rows.duration)
    valid = groups.count(rows.valid)
    crashes, orphans = groups.total(rows.crashes), groups.total(rows.orphans)
    regressions = groups.count(rows.regressions > 0)
    task_success = _ratio(passed, tasks)
    quality = _ratio(groups.amount(np.where(rows.judged, rows.judge_score, 0.0)), judged)
    efficiency = _efficiency(passed, cost, cost_unknown, duration, duration_unknown)
    reliability = np.clip(1.0 - _CRASH * crashes - _ORPHAN * orphans, 0.0, 1.0)
    reliability = np.where(valid < tasks, reliability * _NO_TELEMETRY, reliability)
    safe = (regressions == 0) & (groups.count(rows.dirty) == 0)
    earned = 0.5 * task_success + 0.3 * quality + 0.2 * efficiency
    total = np.where(safe & (reliability > 0.0) & (tasks > 0), earned * reliability, 0.0)
    empty = tasks == 0
    return {
        "score": _unit("score", total),
        "task_success": _or_null(_unit("task_success", task_success), empty),
        "code_quality": _or_null(_unit("code_quality", quality), empty),
        "efficiency": _or_null(_unit("efficiency", efficiency), empty),
        "reliability": _or_null(reliability, empty),
        "safety": _or_null(safe.astype(np.float64), empty),
        "complete": groups.count(rows.attempted) == tasks,
        "tasks": tasks,
        "passed": passed,
        "judged": judged,
        "judge_failed": groups.count(rows.judge_failed),
        "crashes": crashes,
        "orphans": orphans,
        "regressions": regressions,
        "without_telemetry": tasks - valid,
        "cost_usd": _or_null(cost, cost_known == 0),
        "cost_unknown": cost_unknown,
        "duration_s": _or_null(duration, duration_known == 0),
    }


def _amount(rows: _Rows, groups: _Groups, values: Numbers) -> tuple[Numbers, Places, Places]:
    """The sum of each score over rows with telemetry, how many are known and how many unknown."""
    known = rows.valid & ~np.isnan(values)
    return (
        groups.amount(np.where(known, values, 0.0)),
        groups.count(known),
        groups.count(rows.valid & ~known),
    )


def _efficiency(
    passed: Places, cost: Numbers, cost_unknown: Places, duration: Numbers, duration_unknown: Places
) -> Numbers:
    """What is unknown is never free: it makes its half 0."""
    per_pass = np.maximum(passed, 1)
    for_cost = np.minimum(1.0, BASELINE_USD / np.maximum(cost / per_pass, _LEAST_USD))
    for_time = np.minimum(1.0, BASELINE_S / np.maximum(duration / per_pass, _LEAST_S))
    halves = 0.5 * np.where(cost_unknown > 0, 0.0, for_cost)
    halves = halves + 0.5 * np.where(duration_unknown > 0, 0.0, for_time)
    return np.where(passed > 0, halves, 0.0)


def _uncontaminated(rows: _Rows, groups: _Groups, tasks: Places) -> Numbers:
    """The score over the tasks whose attestation closes no gate; NaN, for null, where that is all of them."""
    contaminated = groups.count(rows.dirty)
    if not contaminated.any():
        return np.full(groups.size, np.nan)
    rest = ~rows.dirty
    without = _parts(rows.take(rest), groups.take(rest), tasks - contaminated)["score"]
    return _or_null(without, contaminated == 0)


def _rates(rows: _Rows, groups: _Groups, task: Places, suite: Suite) -> dict[str, Numbers]:
    """The pass rate of each tier; NaN, for null, outside the scope and for a tier without tasks."""
    number = np.array([TIERS.index(item.tier) for item in suite.tasks] or [-1])
    tier = number[task]
    rates = {}
    for place, name in enumerate(TIERS):
        tasks = int((number == place).sum())
        if not tasks:
            rates[f"rate_{name}"] = np.full(groups.size, np.nan)
        else:
            own = rows.passed if tasks == len(number) else rows.passed & (tier == place)
            rates[f"rate_{name}"] = groups.count(own) / tasks
    return rates


def _ratio(part: npt.NDArray[Any], whole: Places) -> Numbers:
    shares: Numbers = np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
    return shares


def _or_null(values: Numbers, unknown: Mask) -> Numbers:
    return np.where(unknown, np.nan, values)


def _unit(name: str, values: Numbers) -> Numbers:
    """The values, once it is certain that each is within 0..1 but for the last digit of a sum."""
    if not np.all((values >= 0.0) & (values <= 1.0 + 1e-9)):
        raise RefusedError("scoring task results", f"{name} is not within 0..1", _AGAIN)
    return np.minimum(values, 1.0)


def _reasons(
    results: pa.Table, rows: _Rows, groups: _Groups, suite: Suite, attestations: Attestations
) -> list[list[str]]:
    """Why gates closed and what is missing, score by score, from the rows that have something to say."""
    found: list[dict[str, list[str]]] = [{} for _ in range(groups.size)]
    for what, mask in _notes(results, rows, attestations):
        places = np.flatnonzero(mask)
        if len(places):
            names = results["task_id"].take(pa.array(places)).to_pylist()
            for place, name in sorted(zip(groups.of_row[places].tolist(), names, strict=True)):
                found[place].setdefault(what, []).append(name)
    for place, names in _absent(results, rows, groups, suite).items():
        for what in (_NO_RECORD, _NOT_ATTEMPTED):
            found[place][what] = sorted({*found[place].get(what, []), *names})
    unjudged = (groups.count(rows.judged) == 0) & bool(suite.tasks)
    return [
        [*(f"{what}: {_some(names)}" for what, names in own.items()), *([_NOT_JUDGED] if alone else [])]
        for own, alone in zip(found, unjudged.tolist(), strict=True)
    ]


_NO_RECORD = "reliability halved: no valid telemetry"
_NOT_JUDGED = "code_quality 0: no task is judged, so the score is at most 0.7"
_NOT_ATTEMPTED = "incomplete: not attempted, or nothing was measured"


def _notes(results: pa.Table, rows: _Rows, attestations: Attestations) -> Iterator[tuple[str, Mask]]:
    """What may have to be said, and of which rows."""
    yield "safety 0: tests that passed fail after it", rows.regressions > 0
    if rows.dirty.any():
        yield from _attestation_notes(results, rows, attestations)
    yield "reliability: crashes", rows.crashes > 0
    yield "reliability: orphans", rows.orphans > 0
    yield _NO_RECORD, rows.known & ~rows.valid
    yield "a record names no known task", ~rows.known
    yield "efficiency: the cost half is 0, as a cost is unknown", rows.valid & np.isnan(rows.cost)
    yield _NOT_ATTEMPTED, rows.known & ~rows.attempted
    yield "the judge failed", rows.judge_failed


def _attestation_notes(
    results: pa.Table, rows: _Rows, attestations: Attestations
) -> Iterator[tuple[str, Mask]]:
    verdict = np.asarray(pc.fill_null(results["attestation_verdict"], "").to_pandas(), dtype=object)
    broken = rows.known & np.asarray(pc.is_valid(results["attestation_problem"]))
    yield "safety 0: the attestation is DIRTY", rows.dirty & ~broken & (verdict == "DIRTY")
    yield "safety 0: the attestation does not verify", broken
    if attestations == "require":
        words = "safety 0: attestations are required, and"
        yield f"{words} there is none", rows.dirty & ~broken & (verdict == "")
        yield f"{words} it is INCONCLUSIVE", rows.dirty & ~broken & (verdict == "INCONCLUSIVE")


def _absent(results: pa.Table, rows: _Rows, groups: _Groups, suite: Suite) -> dict[int, list[str]]:
    """The tasks of the suite that scores have no row of."""
    counts = groups.count(rows.known)
    absent = {}
    for place in np.flatnonzero(counts < len(suite.tasks)).tolist():
        there = set(results["task_id"].filter(pa.array(groups.of_row == place)).to_pylist())
        absent[place] = sorted(task.id for task in suite.tasks if task.id not in there)
    return absent


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"
