"""Deciding whether a candidate setup may replace a baseline.

What belongs here: the checks of a gate, in which order they decide, and the exit status. What does not: the
estimators (``statistics``) and the comparison itself (``comparing``).

A gate passes on evidence only. Nothing attempted, cells without a verdict, tasks that changed between their
cells, too few tasks or no interval are never a pass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.errors import UsageError
from bench_pipeline.pipeline.comparing import Comparison, Pairing, resolve_setup
from bench_pipeline.pipeline.outcomes import Outcomes, joined, known, outcomes_of
from bench_pipeline.pipeline.ranking import fill_command, missing_cells
from bench_pipeline.statistics.bootstrap import SEED
from bench_pipeline.statistics.paired import MIN_TASKS
from bench_pipeline.statistics.totals import total

MARGIN = 0.05
ALPHA = 0.05

# What a gate can say, and the exit status of each.
EXIT_CODES: Mapping[str, int] = {
    "passed": 0,
    "failed": 4,
    "insufficient": 3,
    "incomplete": 3,
    "mixed": 3,
    "nothing evaluated": 5,
}


@dataclass(frozen=True)
class GateTerms:
    """What is asked of the candidate; rates and margins are in 0..1, costs in USD, None is not asked."""

    margin: float = MARGIN
    alpha: float = ALPHA
    min_tasks: int = MIN_TASKS
    min_rate: float | None = None
    max_cost: float | None = None

    def __post_init__(self) -> None:
        """Refuse terms that could not be met, or could not fail."""
        wrong = [
            text
            for text, bad in (
                (f"margin {self.margin} is not within 0..1", not 0 <= self.margin < 1),
                (f"alpha {self.alpha} is not within 0..0.5", not 0 < self.alpha < 0.5),
                (f"min-tasks {self.min_tasks} is below 1", self.min_tasks < 1),
                (f"min-rate {self.min_rate} is not within 0..1", not 0 <= (self.min_rate or 0) <= 1),
                (
                    f"max-cost {self.max_cost} is negative or not finite",
                    not 0 <= (self.max_cost or 0) < float("inf"),
                ),
            )
            if bad
        ]
        if wrong:
            raise UsageError("setting up the gate", "; ".join(wrong), "see bench gate --help")


@dataclass(frozen=True)
class GateDecision:
    """The decision as a JSON-able document, and its exit status.

    ``document``: gate, passed, reason (a key of EXIT_CODES), detail (the same in words, with what to do),
    evaluation, baseline, candidate, shared_tasks, difference (candidate - baseline), diff_low, diff_high,
    method, checks [{name, value, limit, passed}].
    """

    document: Mapping[str, object]
    exit_code: int


def gate(
    cells: pa.Table,
    verdicts: pa.Table,
    *,
    evaluation: str,
    baseline: str,
    candidate: str,
    terms: GateTerms | None = None,
    clusters: Mapping[str, str] | None = None,
    seed: int = SEED,
) -> GateDecision:
    """Decide over one evaluation; setups are labels or prefixes of digests.

    The interval is two-sided at 1 - alpha, as ``bench compare`` shows it; its lower end must lie above
    -margin.

    Raises:
        NotFoundError, UsageError: setups that are not there or are the same, terms that make no sense.
    """
    terms = terms or GateTerms()
    frame = joined(cells, verdicts)
    frame = frame[frame["evaluation"] == evaluation]
    names = {
        "gate": "non-inferiority",
        "evaluation": evaluation,
        "baseline": baseline,
        "candidate": candidate,
    }
    if frame.empty:
        return _decision(
            "nothing evaluated", f"{evaluation} has no cells; run: bench run {evaluation}", names
        )
    mine = cells.filter(pc.equal(cells["evaluation"], evaluation))
    digests = resolve_setup(mine, candidate), resolve_setup(mine, baseline)
    if digests[0] == digests[1]:
        raise UsageError("setting up the gate", "baseline and candidate are the same setup", "name two")
    outcomes = outcomes_of(frame, evaluation)
    places = outcomes.index(digests[0]), outcomes.index(digests[1])
    names |= {"candidate": outcomes.labels[places[0]], "baseline": outcomes.labels[places[1]]}
    pair = Pairing(clusters, seed, confidence=1 - terms.alpha).comparison(outcomes, *places)
    reason, detail = _unfit(outcomes, places)
    checks = _checks(outcomes, places[0], pair, terms)
    if not reason:
        reason, detail = _judged(checks, pair, terms)
    return _decision(reason, detail, names, pair, checks)


def _unfit(outcomes: Outcomes, places: tuple[int, int]) -> tuple[str, str]:
    """Why this selection cannot be judged at all; empty when it can."""
    cells = outcomes.cells[outcomes.cells["setup"].isin(places)]
    if not cells["attempted"].any():
        return "nothing evaluated", f"no cell was attempted; run: bench run {outcomes.evaluation}"
    if outcomes.mixed:
        listed = ", ".join(outcomes.mixed[:5])
        return (
            "mixed",
            f"{len(outcomes.mixed)} tasks changed between their cells ({listed}); run the evaluation again",
        )
    missing = pd.concat([missing_cells(outcomes, place) for place in places])
    if len(missing):
        command = fill_command(outcomes.evaluation, missing)
        return "incomplete", f"{len(missing)} cells have no verdict; run: {command}"
    return "", ""


def _checks(
    outcomes: Outcomes, candidate: int, pair: Comparison, terms: GateTerms
) -> list[dict[str, object]]:
    """Every condition that was asked for, with its value; an unknown value does not pass."""
    row = pair.row
    low, shared = row["diff_low"], row["shared_tasks"]
    checks = [
        _check("min_tasks", shared, terms.min_tasks, isinstance(shared, int) and shared >= terms.min_tasks),
        _check("non_inferiority", low, -terms.margin, isinstance(low, float) and low > -terms.margin),
    ]
    if terms.min_rate is not None:
        rate = pair.rates[0]
        checks.append(_check("min_rate", rate, terms.min_rate, rate is not None and rate >= terms.min_rate))
    if terms.max_cost is not None:
        own = outcomes.of_setup[candidate]
        own = own[own["attempted"].to_numpy(dtype=bool)]
        cost = total(known(own["cost_usd"])).complete
        checks.append(_check("max_cost", cost, terms.max_cost, cost is not None and cost <= terms.max_cost))
    return checks


def _check(name: str, value: object, limit: float, passed: bool) -> dict[str, object]:
    return {"name": name, "value": value, "limit": limit, "passed": passed}


def _judged(checks: Sequence[Mapping[str, object]], pair: Comparison, terms: GateTerms) -> tuple[str, str]:
    """The reason and its words, from checks over a complete selection."""
    failed = {str(check["name"]): check["value"] for check in checks if not check["passed"]}
    interval, shared = pair.difference.interval, pair.difference.tasks
    broken = [name for name in ("min_rate", "max_cost") if failed.get(name) is not None]
    worse = interval is not None and interval.high <= -terms.margin
    loss = f"a loss of {terms.margin:g} or more"
    # The first that holds decides: what is shown comes before what is not known well enough.
    verdicts = (
        (bool(broken), "failed", f"the candidate does not keep {' and '.join(broken)}"),
        (worse, "failed", f"{loss} is shown"),
        (
            "max_cost" in failed,
            "insufficient",
            "the cost of some cells is unknown; add prices to pricing.yaml",
        ),
        (
            "min_tasks" in failed,
            "insufficient",
            f"{shared} shared tasks, {terms.min_tasks} needed; add tasks",
        ),
        (interval is None, "insufficient", f"{pair.difference.method}; add tasks"),
        ("non_inferiority" in failed, "failed", f"{loss} cannot be excluded; more tasks narrow the interval"),
        (True, "passed", f"{loss} is excluded"),
    )
    return next((reason, detail) for holds, reason, detail in verdicts if holds)


def _decision(
    reason: str,
    detail: str,
    names: Mapping[str, object],
    pair: Comparison | None = None,
    checks: Sequence[Mapping[str, object]] = (),
) -> GateDecision:
    row = pair.row if pair else {"shared_tasks": 0}
    document = {
        **names,
        "passed": reason == "passed",
        "reason": reason,
        "detail": detail,
        **{name: row.get(name) for name in ("shared_tasks", "difference", "diff_low", "diff_high", "method")},
        "checks": list(checks),
    }
    return GateDecision(document, EXIT_CODES[reason])
