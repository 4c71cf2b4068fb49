"""Comparing setups in pairs, over the tasks that both measured.

What belongs here: finding a setup by what a person wrote, the rows of paired_comparisons, flips and sums side
by side, and what a plan could show. What does not: the estimators (``statistics``), whether a difference is
good enough (``gating``), the wording on a terminal (``reports``).
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.errors import NotFoundError, UsageError
from bench_pipeline.pipeline.outcomes import QUANTITIES, Outcomes, by_evaluation, joined, known, outcomes_of
from bench_pipeline.statistics.bootstrap import RESAMPLES, SEED
from bench_pipeline.statistics.intervals import CONFIDENCE, mean
from bench_pipeline.statistics.multiplicity import holm
from bench_pipeline.statistics.paired import PairedDifference, TestResult, compare_scores, paired_difference
from bench_pipeline.statistics.planning import Detectable, detectable_difference
from bench_pipeline.statistics.totals import total
from bench_pipeline.tables import table_schema

if TYPE_CHECKING:
    from bench_pipeline.tasks import Task

# A shorter prefix of a digest is more likely a misspelt label.
_MIN_PREFIX = 4
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True)
class Flip:
    """A task on which the two setups' scores differ; scores are passed over measured attempts."""

    task_id: str
    score_a: float
    score_b: float


@dataclass(frozen=True)
class SideBySide:
    """One quantity summed over the ``cells`` of ``of`` shared measured cells where both sides know it."""

    quantity: str
    a: float | None
    b: float | None
    cells: int
    of: int


@dataclass(frozen=True)
class Comparison:
    """Two setups side by side.

    ``row`` is a row of paired_comparisons, a - b; in it ``only_a`` and ``only_b`` count the tasks that only
    one of them measured, which are named here. ``measured`` and ``passed`` are each side's attempts,
    ``rates`` the mean task scores, over the shared tasks. ``mixed`` are tasks that cannot be compared because
    their content changed between their cells.
    """

    row: Mapping[str, object]
    difference: PairedDifference
    test: TestResult
    flips: tuple[Flip, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    mixed: tuple[str, ...]
    measured: tuple[int, int]
    passed: tuple[int, int]
    rates: tuple[float | None, float | None]
    sums: tuple[SideBySide, ...]

    def document(self) -> dict[str, object]:
        """The row and everything beside it as a JSON-able document."""
        sides = {
            f"{name}_{side}": value
            for name, values in (("measured", self.measured), ("passed", self.passed), ("rate", self.rates))
            for side, value in zip("ab", values, strict=True)
        }
        return {
            **self.row,
            **sides,
            "flips": [{"task_id": flip.task_id, "a": flip.score_a, "b": flip.score_b} for flip in self.flips],
            "sums": [asdict(item) for item in self.sums],
            "tasks_only_a": list(self.only_a),
            "tasks_only_b": list(self.only_b),
            "tasks_mixed": list(self.mixed),
        }


def resolve_setup(cells: pa.Table, text: str) -> str:
    """The digest of the setup that ``text`` names: its label, or a prefix of its digest that is unique.

    Raises:
        NotFoundError: no such setup; names the nearest.
        UsageError: several setups answer to it; names their digests.
    """
    pairs = cells.group_by(["setup", "setup_digest"]).aggregate([]).to_pylist()
    found = {pair["setup_digest"]: pair["setup"] for pair in pairs if pair["setup"] == text}
    prefix = text.lower()
    if not found and len(prefix) >= _MIN_PREFIX and set(prefix) <= _HEX:
        found = {
            pair["setup_digest"]: pair["setup"] for pair in pairs if pair["setup_digest"].startswith(prefix)
        }
    if len(found) == 1:
        return str(next(iter(found)))
    if found:
        listed = ", ".join(f"{digest[:12]} ({label})" for digest, label in sorted(found.items()))
        raise UsageError(
            f"finding setup {text!r}", f"it names {len(found)} setups", f"use a digest: {listed}"
        )
    labels = sorted({str(pair["setup"]) for pair in pairs})
    near = difflib.get_close_matches(text, labels, n=3, cutoff=0.3) or labels[:5]
    remedy = f"nearest: {', '.join(near)}" if near else "run an evaluation first: bench run"
    raise NotFoundError(
        f"finding setup {text!r}", "no setup has this label or a digest that starts so", remedy
    )


def compare_setups(
    cells: pa.Table,
    verdicts: pa.Table,
    a: str,
    b: str,
    *,
    evaluation: str | None = None,
    clusters: Mapping[str, str] | None = None,
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> list[Comparison]:
    """Compare two setups in each evaluation that has both, by name of evaluation.

    When no evaluation has both, the cells of all evaluations are pooled and the row's evaluation is their
    names joined by ``+``: a task is comparable wherever it was measured, as long as its content is the same.

    Args:
        cells: an evaluation_cells table.
        verdicts: a verdicts table.
        a: label or digest prefix of the first setup; differences are a - b.
        b: label or digest prefix of the second setup.
        evaluation: only within this one.
        clusters: repository by task; a task that it does not name stands alone. None: all do.
        seed: of the permutation test, where it draws at random.
        resamples: of the same test.

    Raises:
        NotFoundError, UsageError: a setup that is not there, is named twice, or the same one on both sides.
    """
    frame = joined(cells, verdicts)
    if evaluation is not None:
        frame, cells = frame[frame["evaluation"] == evaluation], _of_evaluation(cells, evaluation)
    first, second = resolve_setup(cells, a), resolve_setup(cells, b)
    if first == second:
        raise UsageError("comparing setups", f"{a!r} and {b!r} are the same setup", "name two")
    pair = Pairing(clusters, seed, resamples)
    holding = (
        frame[frame["setup_digest"].isin([first, second])].groupby("evaluation")["setup_digest"].nunique()
    )
    common = sorted(holding.index[holding == 2])
    if not common:
        mine = frame[frame["setup_digest"].isin([first, second])]
        pool = outcomes_of(mine, "+".join(sorted(mine["evaluation"].unique())))
        return [pair.comparison(pool, pool.index(first), pool.index(second))]
    results = []
    for name in common:
        outcomes = outcomes_of(frame[frame["evaluation"] == name], str(name))
        places = outcomes.index(first), outcomes.index(second)
        results.append(pair.comparison(outcomes, *places, family=pair.all_pairs(outcomes)))
    return results


def compare_all(
    cells: pa.Table,
    verdicts: pa.Table,
    *,
    clusters: Mapping[str, str] | None = None,
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> pa.Table:
    """The paired_comparisons table: every pair of setups inside each evaluation, labels in order.

    ``p_holm`` is corrected over all pairs of the same evaluation. Arguments as in ``compare_setups``.
    """
    pair = Pairing(clusters, seed, resamples)
    rows = [
        row
        for outcomes in by_evaluation(joined(cells, verdicts))
        for row in pair.all_pairs(outcomes).values()
    ]
    return table_schema("paired_comparisons").from_rows(rows)


def task_repositories(tasks: Iterable["Task"], default_remote: str | None) -> dict[str, str]:
    """The repository of each task that comes from one: what ``clusters`` means to ``compare_setups``."""
    remotes = {task.id: getattr(task.source, "remote", None) or default_remote for task in tasks}
    directories = {task.id for task in tasks if not hasattr(task.source, "remote")}
    return {task: remote for task, remote in remotes.items() if remote and task not in directories}


def detectable_by_evaluation(cells: pa.Table) -> dict[str, Detectable]:
    """What each evaluation's planned tasks and attempts could show, on the stated assumptions.

    ``cells`` needs the columns evaluation, task_id and attempt.
    """
    frame = cells.select(["evaluation", "task_id", "attempt"]).to_pandas()
    return {
        str(name): detectable_difference(int(group["task_id"].nunique()), int(group["attempt"].nunique()))
        for name, group in frame.groupby("evaluation", sort=True)
    }


@dataclass(frozen=True)
class Pairing:
    """How pairs of one evaluation's setups are compared.

    ``clusters`` maps tasks to repositories (None: all tasks are independent); ``seed`` and ``resamples`` are
    of the permutation test; ``confidence`` is the two-sided level of the interval.
    """

    clusters: Mapping[str, str] | None = None
    seed: int = SEED
    resamples: int = RESAMPLES
    confidence: float = CONFIDENCE

    def all_pairs(self, outcomes: Outcomes) -> dict[tuple[int, int], dict[str, object]]:
        """The rows of every pair (a before b in the order of labels), with Holm's correction over them."""
        rows = {pair: self._row(outcomes, *pair)[0] for pair in combinations(range(len(outcomes.digests)), 2)}
        adjusted = holm([row["p_value"] for row in rows.values()])  # type: ignore[misc]
        for row, p_holm in zip(rows.values(), adjusted, strict=True):
            row["p_holm"] = p_holm
        return rows

    def comparison(
        self,
        outcomes: Outcomes,
        a: int,
        b: int,
        *,
        family: Mapping[tuple[int, int], Mapping[str, object]] | None = None,
    ) -> Comparison:
        """Everything about one pair; without a family of pairs its ``p_holm`` is the p-value itself."""
        row, difference, test = self._row(outcomes, a, b)
        row["p_holm"] = family[min(a, b), max(a, b)]["p_holm"] if family else row["p_value"]
        has_a, has_b = outcomes.measured[a] > 0, outcomes.measured[b] > 0
        both = has_a & has_b
        shared = _chosen(outcomes.tasks, both)
        scores = outcomes.scores(a, both), outcomes.scores(b, both)
        return Comparison(
            row=row,
            difference=difference,
            test=test,
            flips=tuple(Flip(task, x, y) for task, x, y in zip(shared, *scores, strict=True) if x != y),
            only_a=_chosen(outcomes.tasks, has_a & ~has_b),
            only_b=_chosen(outcomes.tasks, has_b & ~has_a),
            mixed=outcomes.mixed,
            measured=(int(outcomes.measured[a, both].sum()), int(outcomes.measured[b, both].sum())),
            passed=(int(outcomes.passed[a, both].sum()), int(outcomes.passed[b, both].sum())),
            rates=(mean(scores[0]), mean(scores[1])),
            sums=_sums(outcomes.cells, a, b, shared),
        )

    def _row(
        self, outcomes: Outcomes, a: int, b: int
    ) -> tuple[dict[str, object], PairedDifference, TestResult]:
        has_a, has_b = outcomes.measured[a] > 0, outcomes.measured[b] > 0
        both = has_a & has_b
        scores = outcomes.scores(a, both), outcomes.scores(b, both)
        groups = None
        if self.clusters is not None:
            groups = [self.clusters.get(task, f"task {task}") for task in _chosen(outcomes.tasks, both)]
        difference = paired_difference(*scores, clusters=groups, confidence=self.confidence)
        single = outcomes.single_attempts(a, both) and outcomes.single_attempts(b, both)
        test = compare_scores(*scores, single_attempts=single, seed=self.seed, resamples=self.resamples)
        interval = difference.interval
        row = {
            "evaluation": outcomes.evaluation,
            "setup_a": outcomes.labels[a],
            "setup_b": outcomes.labels[b],
            "shared_tasks": int(both.sum()),
            "only_a": int((has_a & ~has_b).sum()),
            "only_b": int((has_b & ~has_a).sum()),
            "difference": difference.difference,
            "diff_low": interval.low if interval else None,
            "diff_high": interval.high if interval else None,
            "p_value": test.p_value,
            "p_holm": None,
            "method": f"{difference.method}; {test.method}",
        }
        return row, difference, test


def _of_evaluation(cells: pa.Table, evaluation: str) -> pa.Table:
    return cells.filter(pc.equal(cells["evaluation"], evaluation))


def _chosen(tasks: Sequence[str], mask: npt.NDArray[np.bool_]) -> tuple[str, ...]:
    return tuple(tasks[int(column)] for column in np.flatnonzero(mask))


def _sums(cells: pd.DataFrame, a: int, b: int, tasks: Sequence[str]) -> tuple[SideBySide, ...]:
    """Each quantity over the cells (task and attempt) that both measured and where both know it."""
    usable = cells[cells["measured"].to_numpy(dtype=bool) & cells["task_id"].isin(tasks)]
    left, right = usable[usable["setup"] == a], usable[usable["setup"] == b]
    both = left.merge(right, on=["task_id", "attempt"], suffixes=("_a", "_b"))
    sums = []
    for name in QUANTITIES:
        pairs = both[[f"{name}_a", f"{name}_b"]].dropna()
        totals = [total(known(pairs[column])).complete for column in pairs.columns]
        sums.append(SideBySide(name, totals[0], totals[1], len(pairs), len(both)))
    return tuple(sums)
