"""What comes of every cell of the example project, really run: hidden tests against base, reference, every setup."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench_pipeline.evaluations import Setup, load_evaluation, resolve
from bench_pipeline.execution.cell import judge, produce
from bench_pipeline.execution.job import CellJob, Kit
from bench_pipeline.execution.overlay import Overlay, overlay_from_patch
from bench_pipeline.execution.verification import Verification, verify_candidate
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.material import project_files, read_predictions
from bench_pipeline.tasks import Task

DATA = Path(__file__).resolve().parents[2] / "data"
P, F, N, G, A = "passed", "failed", "no_changes", "guard_violation", "patch_apply_failed"
KEY = "0" * 64

MODELS = ("careful-large", "quick-small", "overeager", "template-bot")
RECORDED = {
    "archive-path-escape": (F, F, P, A),
    "backup-names-with-spaces": (P, P, F, F),
    "billing-month-end": (P, P, P, P),
    "delimited-last-field": (P, F, P, A),
    "directory-known-answers": (P, F, G, F),
    "invoice-rounding": (P, P, F, F),
    "log-rotation-newest": (F, P, P, A),
    "lru-eviction-order": (P, P, G, P),
    "retry-last-error": (P, P, G, N),
    "ticket-counter-race": (P, F, F, N),
    "timesheet-grouping": (P, P, P, N),
}
# Golden tasks: their signals decide, also for an empty change.
RECORDED_GOLDEN = {"leap-years": (P, F, F, A), "receipt-refunds": (P, P, F, F)}
AGENTS_GOLDEN = {"leap-years": (F, F, F, F), "receipt-refunds": (P, P, P, P)}
# care=quick, care=thorough; then the planners rulebook-s and rulebook-l.
AGENTS = {
    "archive-path-escape": (N, N, N, N),
    "backup-names-with-spaces": (F, P, N, P),
    "billing-month-end": (P, P, P, P),
    "delimited-last-field": (F, P, N, P),
    "directory-known-answers": (F, F, F, F),
    "invoice-rounding": (F, P, N, P),
    "log-rotation-newest": (P, P, P, P),
    "lru-eviction-order": (F, P, N, P),
    "retry-last-error": (F, P, P, P),
    "ticket-counter-race": (N, N, N, N),
    "timesheet-grouping": (P, P, P, P),
}
IDS = sorted(RECORDED)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A copy of the example, so that nothing is written into the checkout."""
    root = tmp_path_factory.mktemp("example") / "data"
    shutil.copytree(DATA, root, ignore=shutil.ignore_patterns(".bench"))
    made = Bench(root, backend="process")
    with made.workspaces:
        yield made


@pytest.fixture(scope="module")
def kit(bench: Bench) -> Kit:
    return bench.kit()


def setups_of(bench: Bench, evaluation: str) -> tuple[Setup, ...]:
    return resolve(bench.project, bench.registry, load_evaluation(bench.project, evaluation)).setups


def checked(bench: Bench, kit: Kit, task: Task, patch: bytes | None) -> Verification:
    base, _ = bench.base_tree(task)
    overlay: Overlay | None = None if patch is None else overlay_from_patch(base, patch)
    limits = bench.limits(task, wall_s=task.verify.timeout_s)
    return verify_candidate(task, base, overlay, kit=kit, limits=limits, setup_limits=limits)


def outcome(bench: Bench, kit: Kit, task: Task, setup: Setup) -> str:
    base, _ = bench.base_tree(task)
    job = CellJob(
        identity=KEY,
        run_key=KEY,
        verify_key=KEY,
        task=task,
        setup=setup,
        attempt=1,
        base_tree=base,
        limits=bench.limits(task),
        verify_limits=bench.limits(task, wall_s=task.verify.timeout_s),
        predictions={
            step: rows.get(task.id) for step, rows in read_predictions(bench.project, setup).items()
        },
        tool_files={
            leaf.definition.name: project_files(bench, leaf.definition)[0]
            for leaf in setup.leaves()
            if leaf.definition.files
        },
    )
    produced = produce(job, kit)
    judged = judge(job, produced, kit)
    assert judged.decision.outcome_class == "verdict", judged.decision
    return judged.decision.outcome


def test_the_tables_name_every_task(bench: Bench) -> None:
    assert [task.id for task in bench.tasks.tasks] == IDS == sorted(AGENTS)
    runs = [task.id for task in bench.golden.tasks if task.workspace is not None and not task.packaged]
    assert sorted(runs) == sorted(RECORDED_GOLDEN) == sorted(AGENTS_GOLDEN)
    assert bench.golden.problems == ()


def test_the_ranking_is_the_one_that_the_tour_tells() -> None:
    recorded = [*RECORDED.values(), *RECORDED_GOLDEN.values()]
    agents = [*AGENTS.values(), *AGENTS_GOLDEN.values()]
    assert [[row[i] for row in recorded].count(P) for i in range(4)] == [11, 8, 5, 2]
    assert [[row[i] for row in agents].count(P) for i in range(4)] == [4, 9, 5, 9]
    assert {result for row in RECORDED.values() for result in row} == {P, F, N, G, A}


@pytest.mark.parametrize("task_id", IDS)
def test_the_base_fails_hidden_tests_that_really_run(bench: Bench, kit: Kit, task_id: str) -> None:
    found = checked(bench, kit, bench.tasks.get(task_id), None)
    assert found.problem is None
    assert found.results is not None
    assert found.results.problem is None
    assert found.results.failed
    assert not found.passed


@pytest.mark.parametrize("task_id", IDS)
def test_the_reference_passes(bench: Bench, kit: Kit, task_id: str) -> None:
    task = bench.tasks.get(task_id)
    found = checked(bench, kit, task, task.reference_patch)
    assert found.passed
    assert found.results is not None
    assert found.results.failed == ()


def task_of(bench: Bench, task_id: str) -> Task:
    return bench.tasks.get(task_id) if task_id in IDS else bench.golden.get(task_id).as_task()


@pytest.mark.parametrize("task_id", [*IDS, *RECORDED_GOLDEN])
def test_recorded_patches_come_out_as_listed(bench: Bench, kit: Kit, task_id: str) -> None:
    task = task_of(bench, task_id)
    setups = {setup.model: setup for setup in setups_of(bench, "models")}
    expected = (RECORDED | RECORDED_GOLDEN)[task_id]
    assert tuple(outcome(bench, kit, task, setups[model]) for model in MODELS) == expected


@pytest.mark.parametrize("task_id", [*IDS, *AGENTS_GOLDEN])
def test_the_toy_agent_and_its_workflow_come_out_as_listed(bench: Bench, kit: Kit, task_id: str) -> None:
    task = task_of(bench, task_id)
    setups = (*setups_of(bench, "care"), *setups_of(bench, "pair"))
    expected = (AGENTS | AGENTS_GOLDEN)[task_id]
    assert tuple(outcome(bench, kit, task, setup) for setup in setups) == expected
