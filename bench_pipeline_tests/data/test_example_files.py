"""The files of the example project: they parse, they agree with one another, and they give nothing away."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from bench_pipeline.evaluations import list_evaluations, load_evaluation, resolve
from bench_pipeline.project import Project, find_project
from bench_pipeline.registry import PriceTable, Registry, ToolDefinition
from bench_pipeline.tasks import Task, load_golden, load_tasks, stale
from bench_pipeline.tasks.leaks import find_leaks
from bench_pipeline.tasks.patches import patched_files

DATA = Path(__file__).resolve().parents[2] / "data"
MODELS = ("careful-large", "quick-small", "overeager", "template-bot")
TASKS = load_tasks(DATA).tasks
IDS = [task.id for task in TASKS]
GOLDEN = [task.id for task in load_golden(DATA).tasks if task.workspace is not None and not task.packaged]


@pytest.fixture
def project() -> Project:
    return find_project(DATA)


def predictions(model: str) -> dict[str, str]:
    lines = (DATA / "predictions" / f"{model}.jsonl").read_bytes().split(b"\n")
    rows = [json.loads(line) for line in lines if line]
    assert {row["model_name_or_path"] for row in rows} == {model}
    assert len({row["instance_id"] for row in rows}) == len(rows)
    return {row["instance_id"]: row["model_patch"] for row in rows}


def base_of(task: Task) -> Path:
    return task.folder / "base"


def test_every_task_loads_and_the_tiers_are_filled() -> None:
    assert load_tasks(DATA).problems == ()
    assert Counter(task.tier for task in TASKS) == {"smoke": 3, "standard": 4, "stretch": 2, "adversarial": 2}


def test_evaluations_resolve_to_the_setups_that_the_tour_names(project: Project) -> None:
    registry = Registry.load(project.root, None)
    found = {
        name: resolve(project, registry, load_evaluation(project, name)) for name in list_evaluations(project)
    }
    assert {name: ([s.label for s in each.setups], each.attempts) for name, each in found.items()} == {
        "care": (["patcher/rulebook-l/-", "patcher/rulebook-l/-+care=thorough"], 1),
        "crib": (["cribbing-patcher/rulebook-l/-"], 1),
        "models": ([f"predictions/{model}/-" for model in MODELS], 1),
        "pair": (["plan-then-build/-/-+plan.model=rulebook-s", "plan-then-build/-/-"], 2),
    }


def test_every_model_of_the_toy_agent_has_a_price(project: Project) -> None:
    patcher = Registry.load(project.root, None).tool("patcher")
    assert isinstance(patcher, ToolDefinition)
    prices = PriceTable.load(project.root, None)
    assert all(prices.names(model.id) for model in patcher.models.values())


@pytest.mark.parametrize("task", TASKS, ids=IDS)
def test_a_task_is_validated_and_was_not_changed_since(task: Task) -> None:
    assert stale(task) is None
    assert task.validation is not None
    assert task.validation.tests


@pytest.mark.parametrize("task", TASKS, ids=IDS)
def test_a_prompt_gives_nothing_away(task: Task) -> None:
    assert find_leaks(task) == ()


@pytest.mark.parametrize("task", TASKS, ids=IDS)
def test_hidden_tests_and_reference_are_apart(task: Task) -> None:
    hidden = patched_files(base_of(task), task.verify.tests_patch)
    reference = patched_files(base_of(task), task.reference_patch)
    assert {file.path for file in hidden.written}.isdisjoint(file.path for file in reference.written)
    assert not hidden.deleted


@pytest.mark.parametrize("task", TASKS, ids=IDS)
def test_a_base_is_small_plain_and_without_history(task: Task) -> None:
    files = [path for path in base_of(task).rglob("*") if not path.is_dir()]
    assert 4 <= len(files) <= 12
    assert not any(path.is_symlink() or ".git" in path.parts for path in files)
    assert all(re.fullmatch(r"[a-z_A-Z0-9./-]+", path.relative_to(DATA).as_posix()) for path in files)


def test_golden_tasks_fill_every_tier_and_two_of_them_run() -> None:
    found = load_golden(DATA)
    assert found.problems == ()
    assert [(task.tier, task.id) for task in found.tasks] == [
        ("smoke", "receipt-refunds"),
        ("standard", "catalogue-words"),
        ("stretch", "orders-migration"),
        ("adversarial", "leap-years"),
    ]
    assert GOLDEN == ["receipt-refunds", "leap-years"]


@pytest.mark.parametrize("model", MODELS)
def test_a_model_has_a_row_for_every_task(model: str) -> None:
    assert sorted(predictions(model)) == sorted([*IDS, *GOLDEN])


@pytest.mark.parametrize("task", TASKS, ids=IDS)
def test_recorded_patches_are_nobodys_copies(task: Task) -> None:
    patches = [predictions(model)[task.id] for model in MODELS]
    written = [patch.encode() for patch in patches if patch]
    assert len({*written, task.reference_patch}) == len(written) + 1
