"""One cell where it runs: its candidate, then its verdict, each stored before the next step.

What belongs here: what happens on the machine of a cell, be it this one or a worker of a cluster. What does not:
which cells are run, in what order and at what cost (``measuring``), and where they run (``engines``).
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bench_pipeline.pipeline.material import job_of, keep_records, refusal
from bench_pipeline.pipeline.replaying import recorded_steps, recorded_try, replay_row
from bench_pipeline.store.schemas import CANDIDATE_PARTS, VERDICT_PARTS

if TYPE_CHECKING:
    from bench_pipeline.execution.job import CellJob
    from bench_pipeline.execution.record import Produced
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.planning import Plan
    from bench_pipeline.pipeline.selection import ModelUse

Row = dict[str, object]


@dataclass(frozen=True)
class Item:
    """One distinct identity of the selection, and what is to be done with it."""

    identity: str
    run_key: str
    action: str
    reason: str | None
    setup: str
    setup_digest: str
    task_id: str
    attempt: int
    evaluation: str


@dataclass(frozen=True)
class Done:
    """What came of working on a cell: the stored row, and sentences that a person should read.

    ``row`` is None where nothing came of it; ``why`` says then what ended it. ``difference`` is how a replay came to
    something else than was recorded.
    """

    row: Row | None
    said: tuple[str, ...] = ()
    why: str = "interrupted"
    difference: str | None = None


class CellWork:
    """Works on cells of one plan, on this machine; safe to share between threads.

    ``model_use`` is what these cells together may do with model APIs.
    """

    def __init__(self, bench: "Bench", plan: "Plan", run_id: str, model_use: "ModelUse") -> None:
        self._bench, self._plan, self._run_id, self._replays = bench, plan, run_id, model_use.replay
        self._kit = bench.kit(model_use)

    def refusal(self, item: Item) -> str | None:
        """Why the cell cannot be run here at all, or None; asked before anything is spent."""
        return refusal(self._bench, self._job(item), self._kit, replay=self._replays)

    def execute(self, item: Item) -> Done:
        """Run the tool and check what it made."""
        from bench_pipeline.execution.cell import produce

        job = self._job(item)
        produced = produce(job, self._kit)
        if produced.interrupted:
            return Done(None)
        if produced.overlay is not None:
            row = produced.candidate_row(self._run_id)
            self._bench.store.candidates.append(CANDIDATE_PARTS.from_rows([row]))
        return self._judge(item, job, produced, tuple(produced.not_enforced))

    def reverify(self, item: Item) -> Done | None:
        """Check the stored candidate; None when it cannot be read any more, so that the tool has to run."""
        from bench_pipeline.execution.cell import restore

        job = self._job(item)
        produced = restore(job, self._bench.store)
        return None if produced is None else self._judge(item, job, produced, ())

    def replay(self, item: Item) -> Done:
        """Run the tool on the recorded answers, and check what it made; kept beside the verdicts."""
        from bench_pipeline.execution.cell import judge, produce

        job, store = self._job(item), self._bench.store
        recorded = recorded_try(store, item.identity, item.run_key, recorded_steps(job.setup))
        if recorded is None:
            return Done(None, why="its recording is not there any more")
        recordings = {step: store.artifacts.get(digest) for step, digest in recorded.recordings.items()}
        judged = judge(job, produce(replace(job, recordings=recordings), self._kit), self._kit)
        if judged.interrupted:
            return Done(None)
        row = replay_row(judged.verdict_row(self._run_id, {}), recorded)
        store.replays.append(VERDICT_PARTS.from_rows([row]))
        return Done(row, difference=recorded.difference(row))

    def _job(self, item: Item) -> "CellJob":
        return job_of(self._bench, self._plan, item)

    def _judge(self, item: Item, job: "CellJob", produced: "Produced", said: tuple[str, ...]) -> Done:
        from bench_pipeline.execution.cell import judge
        from bench_pipeline.pipeline.attesting import seal_measured

        records = keep_records(self._bench, self._plan, item)
        judged = judge(job, produced, self._kit)
        if judged.interrupted:
            return Done(None, said)
        row = judged.verdict_row(self._run_id, records)
        self._bench.store.verdicts.append(VERDICT_PARTS.from_rows([row]))
        problem = seal_measured(self._bench, item.task_id, row)
        return Done(row, said if problem is None else (*said, problem))
