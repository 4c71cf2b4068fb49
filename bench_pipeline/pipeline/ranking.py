"""Ranking the setups of an evaluation: who may be ranked, over which tasks, and with what certainty.

What belongs here: coverage, shared tasks, the rows of evaluation_rankings, the command that fills the gaps.
What does not: the estimators (``statistics``), the wording on a terminal (``reports``).
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from bench_pipeline.pipeline.outcomes import Outcomes, by_evaluation, joined, known
from bench_pipeline.statistics.attempts import mean_pass_at_k, mean_pass_hat_k
from bench_pipeline.statistics.bootstrap import RESAMPLES, SEED
from bench_pipeline.statistics.intervals import score_interval, wilson
from bench_pipeline.statistics.ranking import competition_ranks, rank_bands, whole_scores
from bench_pipeline.statistics.totals import total
from bench_pipeline.tables import table_schema

MIN_COVERAGE = 0.9
# A longer command is worse to read than one that looks at every task and reuses what is there.
_MAX_NAMED_TASKS = 20

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class EvaluationRanking:
    """One evaluation's rows in display order, and what stands beside them.

    ``rows`` are rows of evaluation_rankings; ``left_out`` maps a task that is not compared to why;
    ``commands`` maps a setup digest to the command that measures what it is missing.
    """

    evaluation: str
    rows: tuple[Mapping[str, object], ...]
    left_out: Mapping[str, str]
    commands: Mapping[str, str]

    def table(self) -> pa.Table:
        """The rows as an evaluation_rankings table."""
        return table_schema("evaluation_rankings").from_rows(self.rows)


def rank_evaluation(
    cells: pa.Table,
    verdicts: pa.Table,
    *,
    min_coverage: float = MIN_COVERAGE,
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> pa.Table:
    """The evaluation_rankings table of every evaluation in ``cells``; see ``rank_evaluations``."""
    rankings = rank_evaluations(cells, verdicts, min_coverage=min_coverage, seed=seed, resamples=resamples)
    return table_schema("evaluation_rankings").from_rows(
        [row for ranking in rankings for row in ranking.rows]
    )


def rank_evaluations(
    cells: pa.Table,
    verdicts: pa.Table,
    *,
    min_coverage: float = MIN_COVERAGE,
    seed: int = SEED,
    resamples: int = RESAMPLES,
) -> list[EvaluationRanking]:
    """Rank the setups of each evaluation, by name of evaluation.

    Args:
        cells: an evaluation_cells table: what is planned.
        verdicts: a verdicts table: what came of it.
        min_coverage: the share of the evaluation's cells that a setup must have measured to be ranked, 0..1.
        seed: of the bootstrap behind the rank bands.
        resamples: of the same bootstrap.
    """
    frame = joined(cells, verdicts)
    return [_Ranker(outcomes, min_coverage, seed, resamples).ranking() for outcomes in by_evaluation(frame)]


def fill_command(evaluation: str, missing: pd.DataFrame) -> str:
    """The command that measures the missing cells; execution failures need ``--retry`` to be tried again."""
    tasks = sorted(set(missing["task_id"].astype(str)))
    words = ["bench", "run", evaluation]
    if len(tasks) <= _MAX_NAMED_TASKS:
        words += [word for task in tasks for word in ("--task", task)]
    if missing["attempted"].any():
        words += ["--retry", "1"]
    return shlex.join(words)


def missing_cells(outcomes: Outcomes, setup: int) -> pd.DataFrame:
    """The cells that the evaluation plans and this setup has not measured, with their outcome so far.

    A cell that other setups have and this one does not is missing too, as ``not planned``.
    """
    own = outcomes.of_setup[setup]
    measured = own[own["measured"].to_numpy(dtype=bool)]
    gaps = outcomes.planned
    if len(measured) == len(gaps):
        return gaps.iloc[:0].assign(outcome="", attempted=False)
    on = ["task_id", "attempt"]
    due = gaps.merge(own[[*on, "outcome", "attempted", "measured"]], how="left", on=on)
    due = due[~due["measured"].eq(True)]
    return due.assign(outcome=due["outcome"].fillna("not planned"), attempted=due["attempted"].eq(True))


class _Ranker:
    """The steps of one evaluation's ranking over shared intermediate results."""

    def __init__(self, outcomes: Outcomes, min_coverage: float, seed: int, resamples: int) -> None:
        self.outcomes = outcomes
        self.seed, self.resamples = seed, resamples
        self.missing = [missing_cells(outcomes, setup) for setup in range(len(outcomes.digests))]
        self.due = len(outcomes.planned)
        self.ranked = [
            setup for setup in range(len(outcomes.digests)) if self._may_be_ranked(setup, min_coverage)
        ]
        self.shared: Mask = np.all(outcomes.measured[self.ranked] > 0, axis=0)
        if not self.ranked or not self.shared.any():
            # Without a task that all of them measured there is nothing to rank them over.
            self.ranked, self.shared = [], np.zeros(len(outcomes.tasks), dtype=np.bool_)

    def _may_be_ranked(self, setup: int, min_coverage: float) -> bool:
        """Coverage is of what the evaluation plans, so that a setup planned on one task never covers all."""
        measured = int(self.outcomes.of_setup[setup]["measured"].sum())
        tasks = int((self.outcomes.measured[setup] > 0).sum())
        # 1e-9: 0.9 * 10 must not ask for more than 9.
        enough = measured > 0 and measured >= min_coverage * self.due - 1e-9
        return enough and (tasks > 1 or len(self.outcomes.tasks) == 1)

    def ranking(self) -> EvaluationRanking:
        ranks, bands, note = self._ranks()
        rows = [
            {**self._row(setup), "rank": ranks.get(setup), "ranked": setup in ranks}
            | dict(zip(("band_low", "band_high"), bands.get(setup, (None, None)), strict=True))
            for setup in range(len(self.outcomes.digests))
        ]
        for row in rows:
            if row["ranked"] and note:
                row["method"] = f"{row['method']}; {note}"
        return EvaluationRanking(
            evaluation=self.outcomes.evaluation,
            rows=tuple(sorted(rows, key=_display_order)),
            left_out=self._left_out(),
            commands={
                self.outcomes.digests[setup]: fill_command(self.outcomes.evaluation, missing)
                for setup, missing in enumerate(self.missing)
                if len(missing)
            },
        )

    def _ranks(self) -> tuple[dict[int, int], dict[int, tuple[int, int]], str]:
        if not self.ranked:
            return {}, {}, ""
        chosen = np.ix_(np.array(self.ranked), np.flatnonzero(self.shared))
        scores, _ = whole_scores(self.outcomes.passed[chosen], self.outcomes.measured[chosen])
        ranks = competition_ranks(scores.sum(axis=1))
        bands = rank_bands(scores, seed=self.seed, resamples=self.resamples)
        found = zip(bands.low, bands.high, strict=True) if bands else ()
        return (
            {setup: int(rank) for setup, rank in zip(self.ranked, ranks, strict=True)},
            dict(zip(self.ranked, found, strict=False)),
            bands.method if bands else "no rank band: one task",
        )

    def _row(self, setup: int) -> dict[str, object]:
        outcomes = self.outcomes
        own = outcomes.of_setup[setup]
        measured = own[own["measured"].to_numpy(dtype=bool)]
        costs = total(known(own.loc[own["attempted"].to_numpy(dtype=bool), "cost_usd"]))
        quantities = {
            name: total(known(measured[name])).complete for name in ("tokens", "patch_lines", "duration_s")
        }
        mask = self.shared if setup in self.ranked else outcomes.measured[setup] > 0
        return {
            "evaluation": outcomes.evaluation,
            "setup": outcomes.labels[setup],
            "setup_digest": outcomes.digests[setup],
            "shared_tasks": int((self.shared & (outcomes.measured[setup] > 0)).sum()),
            "total": len(own),
            "attempted": int(own["attempted"].sum()),
            "measured": len(measured),
            "passed": int(measured["passed"].sum()),
            **self._rate(setup, mask),
            "cost_usd": costs.known_sum,
            "cost_known": costs.known,
            "cost_unknown": costs.unknown,
            "tokens": _whole(quantities["tokens"]),
            "patch_lines": _whole(quantities["patch_lines"]),
            "duration_s": quantities["duration_s"],
            "missing": [
                f"{task} attempt {attempt}: {outcome}"
                for task, attempt, outcome in self.missing[setup][
                    ["task_id", "attempt", "outcome"]
                ].itertuples(index=False)
            ],
        }

    def _rate(self, setup: int, mask: Mask) -> dict[str, object]:
        """The pass rate over a mask of tasks that the setup measured, its interval, and pass@k and pass^k."""
        outcomes, tasks = self.outcomes, int(mask.sum())
        if not tasks:
            return {"pass_rate": None, "rate_low": None, "rate_high": None, "method": None}
        passed, measured = outcomes.passed[setup, mask], outcomes.measured[setup, mask]
        numerators, denominator = whole_scores(passed[None, :], measured[None, :])
        if outcomes.single_attempts(setup, mask):
            interval = wilson(int(passed.sum()), tasks)
        else:
            interval = score_interval(outcomes.scores(setup, mask))
        counts = {
            task: (int(n), int(c))
            for task, n, c in zip(np.array(outcomes.tasks, dtype=object)[mask], measured, passed, strict=True)
        }
        depth = range(1, outcomes.attempts + 1)
        method = interval.method if interval else f"no interval: no variance over tasks n={tasks}"
        return {
            "pass_rate": float(Fraction(int(numerators.sum()), denominator * tasks)),
            "rate_low": interval.low if interval else None,
            "rate_high": interval.high if interval else None,
            "method": method if setup in self.ranked else f"{method}, own tasks, not ranked",
            "pass_at_k": {k: mean_pass_at_k(counts, k).value for k in depth},
            "pass_hat_k": {k: mean_pass_hat_k(counts, k).value for k in depth},
        }

    def _left_out(self) -> dict[str, str]:
        outcomes = self.outcomes
        reasons = dict.fromkeys(
            outcomes.mixed, "the task changed between its cells; run the evaluation again"
        )
        if not self.ranked:
            return reasons
        for column in np.flatnonzero(~self.shared):
            without = [outcomes.labels[s] for s in self.ranked if outcomes.measured[s, column] == 0]
            reasons[outcomes.tasks[column]] = f"not measured by {_names(without)}"
        return dict(sorted(reasons.items()))


def _names(labels: Sequence[str], limit: int = 3) -> str:
    shown = ", ".join(labels[:limit])
    return shown if len(labels) <= limit else f"{shown} and {len(labels) - limit} more"


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _display_order(row: Mapping[str, object]) -> tuple[object, ...]:
    """Ranked rows by rank, then cheapest, smallest and fastest with the unknown last, then by label."""
    cost = row["cost_usd"] if row["cost_unknown"] == 0 else None
    keys: list[object] = [not row["ranked"], row["rank"] or 0]
    for value in (cost, row["tokens"], row["patch_lines"], row["duration_s"]):
        keys += [value is None, value if isinstance(value, (int, float)) else 0.0]
    return (*keys, row["setup"], row["setup_digest"])
