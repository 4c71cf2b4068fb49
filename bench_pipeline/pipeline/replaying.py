"""Replays: which cells have a recording, what came of replaying them, and whether that is what was recorded.

What belongs here: choosing a cell's recording, and comparing its replay with the try that it is of. What does not: the
recording itself (``execution.gateway``). A replay is kept beside the verdicts (``store.replays``) and is none: it says
that the recording still leads to the same candidate, and measures nothing again.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bench_pipeline.pipeline.actions import decide_actions
from bench_pipeline.pipeline.collecting import binary_keys
from bench_pipeline.store.schemas import VERDICT

if TYPE_CHECKING:
    from bench_pipeline.evaluations import Setup
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.planning import Plan
    from bench_pipeline.pipeline.selection import RunOptions
    from bench_pipeline.store import Store

Row = dict[str, object]

REPLAY, UNRECORDED = "replay", "unrecorded"
_SUFFIX: Final = ".recording"
_ASKS_NOTHING: Final = "its tools ask no model API, so there is nothing to replay"
_NEVER: Final = "nothing was recorded of it: run it without --no-record"


@dataclass(frozen=True)
class Recorded:
    """A try that was recorded: the digest of each step's recording, and what came of it."""

    recordings: Mapping[str, str]
    overlay: str | None
    outcome: str | None

    def difference(self, row: Mapping[str, Any]) -> str | None:
        """How a replay, by its row, came to something else; None when it came to the same."""
        overlay = dict(row["artifacts"]).get("overlay")
        if self.overlay is not None and row["outcome_class"] == VERDICT and overlay != self.overlay:
            return "its candidate is another than the recorded one"
        if self.outcome is not None and row["outcome"] != self.outcome:
            why = f": {row['reason']}" if row["reason"] else ""
            return f"{row['outcome']} in place of the recorded {self.outcome}{why}"
        return None


def recorded_steps(setup: "Setup") -> list[str]:
    """The names of the uses of tools in a setup that ask a model API."""
    return [leaf.name or "tool" for leaf in setup.leaves() if leaf.definition.model_apis]


def recorded_try(store: "Store", identity: str, run_key: str, steps: Sequence[str]) -> Recorded | None:
    """The try whose recording a replay of the cell answers from: of its newest verdict, else of its newest candidate.

    A candidate is of the cell's run key, so it may have been checked under another identity. A try that failed is
    taken when there is nothing else. None when no try was recorded in all of ``steps``.
    """
    tried = store.verdicts.history(identity).to_pylist()[::-1]
    candidates = store.candidates.history(run_key).to_pylist()[::-1]
    verdicts, failures = (
        [row for row in tried if (row["outcome_class"] == VERDICT) is good] for good in (True, False)
    )
    for row in (*verdicts, *candidates, *failures):
        artifacts = dict(row["artifacts"] or ())
        found = {step: artifacts[f"{step}{_SUFFIX}"] for step in steps if f"{step}{_SUFFIX}" in artifacts}
        if len(found) == len(steps):
            return Recorded(found, artifacts.get("overlay"), row.get("outcome"))
    return None


def decide(bench: "Bench", plan: "Plan", cells: pa.Table, options: "RunOptions") -> pa.Table:
    """``cells`` with the columns ``action`` and ``action_reason``: what a run with these options does with each."""
    if not options.replay:
        tries = bench.project.config.tries
        return decide_actions(bench.store, cells, tries=tries, fresh=options.fresh, retry=options.retry > 0)
    reasons = [_unreplayable(bench.store, plan, *key) for key in _keys(cells)]
    actions = [REPLAY if reason is None else UNRECORDED for reason in reasons]
    return cells.append_column("action", pa.array(actions, pa.string())).append_column(
        "action_reason", pa.array(reasons, pa.string())
    )


def _keys(cells: pa.Table) -> Iterator[tuple[str, str, str, str]]:
    names = ("evaluation", "setup_digest", "identity", "run_key")
    return zip(*(cells[name].to_pylist() for name in names), strict=True)


def _unreplayable(
    store: "Store", plan: "Plan", evaluation: str, setup: str, identity: str, run_key: str
) -> str | None:
    steps = recorded_steps(plan.setups[evaluation, setup].setup)
    if not steps:
        return _ASKS_NOTHING
    return _NEVER if recorded_try(store, identity, run_key, steps) is None else None


def replay_row(row: Row, recorded: Recorded) -> Row:
    """The row of a replay: it costs nothing, whatever its tool believes, and names the recording that answered."""
    artifacts = row["artifacts"]
    assert isinstance(artifacts, dict)
    recordings = {f"{step}{_SUFFIX}": digest for step, digest in recorded.recordings.items()}
    free = {"tool_ran": False, "cost_reported_usd": None, "cost_is_real": None}
    return {**row, **free, "artifacts": {**artifacts, **recordings}}


def summary(bench: "Bench", cells: pa.Table, evaluation: str | None, run_id: str) -> dict[str, Any]:
    """What came of a run that replayed ``cells``.

    Of the ``replayed``, the ``same`` ended as recorded, with the same candidate; ``not_replayed`` have no recording or
    were not reached. ``differences`` are (cells, reason) of all others, most cells first.
    """
    ran = bench.store.tables.read("run_cells", run_id=run_id)
    ran = ran.filter(pc.is_in(ran["identity"], value_set=pc.unique(cells["identity"])))
    reasons = ran.filter(pc.equal(ran["action"], "replayed"))["reason"]
    rows = bench.store.replays.log.find(binary_keys(pc.unique(ran["identity"])), ["run_id", "outcome"])
    outcomes = rows.filter(pc.equal(rows["run_id"], run_id))["outcome"].to_pylist()
    return {
        "evaluation": evaluation,
        "cells": ran.num_rows,
        "replayed": len(reasons),
        "same": reasons.null_count,
        "not_replayed": ran.num_rows - len(reasons),
        "outcomes": dict(Counter(outcomes)),
        "cost_usd": 0.0,
        "differences": Counter(each for each in ran["reason"].to_pylist() if each is not None).most_common(5),
    }


def dry_run(actions: pa.Table, evaluation: str | None, digest: str) -> dict[str, Any]:
    """What a run that replays would do: for each setup how many cells have a recording, and why others have none."""
    rows = actions.select(["setup", "action", "action_reason"]).to_pylist()
    setups = [
        {
            "setup": label,
            **_counted([row for row in rows if row["setup"] == label]),
            "reasons": sorted({row["action_reason"] for row in rows if row["setup"] == label} - {None}),
        }
        for label in dict.fromkeys(row["setup"] for row in rows)
    ]
    return {"evaluation": evaluation, "plan_digest": digest, **_counted(rows), "setups": setups}


def _counted(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    actions = [row["action"] for row in rows]
    return {"cells": len(rows), **{name: actions.count(name) for name in (REPLAY, UNRECORDED)}}
