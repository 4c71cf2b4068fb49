"""What is measured once is not paid for again, and what changed is: each part of a cell by itself."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.explaining import explain
from bench_pipeline.pipeline.validating import validate_tasks
from bench_pipeline_tests.e2e.projects import AGENT, CHECK, PRICING, Measured, Project, added

Make = Callable[..., Project]


@pytest.fixture(scope="module")
def finished(make: Make) -> tuple[Project, Measured]:
    """An evaluation of one cell that passed."""
    project = make()
    project.evaluation("one")
    first = project.measure("one")
    assert first.outcomes == {"passed": 1}
    return project, first


@pytest.fixture
def measured(finished: tuple[Project, Measured], tmp_path: Path) -> tuple[Project, Measured]:
    """The finished evaluation, store and all, as a project of its own."""
    project, first = finished
    shutil.copytree(project.root, tmp_path / "project")
    return Project(tmp_path / "project"), first


def differing(project: Project, before: Measured, after: Measured) -> set[tuple[str, str]]:
    """The stage and name of every component in which the only cells of two runs differ."""
    found = explain(Bench(project.root), before.row["identity"], after.row["identity"])
    components = found["components"]
    assert isinstance(components, list)
    return {(item["stage"], item["name"]) for item in components if not item["equal"]}


def test_a_second_run_calls_no_tool_and_writes_the_same_verdicts(measured: tuple[Project, Measured]) -> None:
    project, first = measured
    second = project.measure("one")
    assert (second.actions, len(project.calls())) == ({"reused": 1}, 1)
    assert second.rows == first.rows
    assert second.summary["cost_usd"] == 0


def test_another_model_is_another_cell(measured: tuple[Project, Measured]) -> None:
    project, first = measured
    project.evaluation("one", {"model": "large"})
    second = project.measure("one")
    assert (second.actions, len(project.calls())) == ({"executed": 1}, 2)
    assert differing(project, first, second) == {("run", "setup.model_id")}


def test_another_option_is_another_cell(measured: tuple[Project, Measured]) -> None:
    project, first = measured
    project.evaluation("one", {"options": {"tone": "loud"}})
    second = project.measure("one")
    assert (second.actions, len(project.calls())) == ({"executed": 1}, 2)
    changed = differing(project, first, second)
    assert all(stage == "run" and "tone" in name for stage, name in changed)
    assert changed


def test_one_byte_of_the_prompt_is_another_cell(measured: tuple[Project, Measured]) -> None:
    project, first = measured
    prompt = project.root / "tasks/alpha/prompt.md"
    prompt.write_bytes(prompt.read_bytes() + b".")
    project.validate("alpha")
    second = project.measure("one")
    assert (second.actions, len(project.calls())) == ({"executed": 1}, 2)
    assert differing(project, first, second) == {("run", "task.prompt")}


def test_one_byte_of_the_agents_files_is_another_cell(measured: tuple[Project, Measured]) -> None:
    project, first = measured
    script = project.root / "agent/act.sh"
    script.write_bytes(script.read_bytes() + b"#")
    second = project.measure("one")
    assert (second.actions, len(project.calls())) == ({"executed": 1}, 2)
    assert all(name.startswith("setup.") for _, name in differing(project, first, second))


def test_other_hidden_tests_check_the_stored_candidate_and_call_no_tool(
    measured: tuple[Project, Measured],
) -> None:
    project, first = measured
    project.write("tasks/alpha/tests.patch", added("tests/check.sh", CHECK + "# one line more\n"))
    bench = Bench(project.root)
    (valid,) = validate_tasks(bench, [bench.tasks.get("alpha")])
    assert valid.reasons == ()
    second = project.measure("one")
    assert (second.actions, len(project.calls())) == ({"reverified": 1}, 1)
    assert second.outcomes == {"passed": 1}
    assert second.row["run_key"] == first.row["run_key"]
    assert {stage for stage, _ in differing(project, first, second)} == {"verify"}
    # What the tool did when it ran belongs to the new verdict too; this run bought nothing.
    same = ("patch_lines", "turns", "tokens_input", "duration_s", "cost_usd")
    assert {name: second.row[name] for name in same} == {name: first.row[name] for name in same}
    assert second.summary["cost_usd"] == 0


def test_another_price_only_reprices(measured: tuple[Project, Measured]) -> None:
    project, first = measured
    assert first.row["cost_usd"] == pytest.approx(1.0)
    prices = {name: 2 * rate for name, rate in PRICING["models"]["model-small"].items()}
    project.document("pricing.yaml", "Pricing", {"models": {"model-small": prices}})
    second = project.measure("one")
    assert (second.actions, len(project.calls())) == ({"reused": 1}, 1)
    assert second.row == {**first.row, "cost_usd": pytest.approx(2.0)}


def test_what_is_no_part_of_a_cell_changes_nothing(measured: tuple[Project, Measured]) -> None:
    project, first = measured
    project.evaluation("renamed")
    (project.root / "evaluations/one.yaml").unlink()
    task = project.root / "tasks/alpha"
    text = (task / "task.yaml").read_text().replace('tier: "smoke"', 'tier:   "stretch" # moved')
    (task / "task.yaml").write_text(text)
    task.rename(task.with_name("omega"))
    project.configure(tries=7, spending={"max_cells": 5})
    second = project.measure("renamed")
    assert (second.actions, len(project.calls())) == ({"reused": 1}, 1)
    assert second.row["identity"] == first.row["identity"]
    assert (second.row["tier"], second.row["task_id"]) == ("stretch", "omega")


def test_attempts_with_one_prompt_are_measured_each_by_itself(make: Make) -> None:
    project = make()
    project.acts("one", "trace", attempts=3)
    rows = project.measure("one").rows
    patches = {dict(row["artifacts"])["patch"] for row in rows}
    assert [row["attempt"] for row in rows] == [1, 2, 3]
    assert len(patches) == len({row["identity"] for row in rows}) == len(project.calls()) == 3


def test_two_evaluations_share_what_they_have_in_common(make: Make) -> None:
    project = make()
    project.evaluation("one")
    project.evaluation("two")
    done = project.measure()
    assert (done.actions, len(project.calls())) == ({"executed": 1, "reused": 1}, 1)
    assert done.summary["cost_usd"] == pytest.approx(1.0)


def test_fresh_measures_again_and_keeps_the_earlier_evidence(measured: tuple[Project, Measured]) -> None:
    project, first = measured
    before = project.stored()
    second = project.measure("one", fresh=True)
    assert (second.actions, len(project.calls())) == ({"executed": 1}, 2)
    assert second.row["tries"] == 2
    assert second.row["measured_at"] > first.row["measured_at"]
    assert set(before) <= set(project.stored())
    history = Bench(project.root).store.verdicts.history(first.row["identity"])
    assert history.num_rows == 2


def test_explain_also_knows_cells_that_are_planned_and_were_never_tried(make: Make) -> None:
    project = make()
    project.evaluation("one", {"model": ["small", "large"]})
    bench = Bench(project.root)
    first, second = bench.plan().cells["identity"].to_pylist()
    components = explain(bench, first, second)["components"]
    assert isinstance(components, list)
    assert {item["name"] for item in components if not item["equal"]} == {"setup.model_id"}


def test_a_candidate_that_was_lost_is_made_again(measured: tuple[Project, Measured]) -> None:
    project, first = measured
    overlay = dict(first.row["artifacts"])["overlay"]
    Path(str(Bench(project.root).store.artifacts.path(overlay))).unlink()
    project.write("tasks/alpha/tests.patch", added("tests/check.sh", CHECK + "# one line more\n"))
    bench = Bench(project.root)
    list(validate_tasks(bench, [bench.tasks.get("alpha")]))
    second = project.measure("one")
    assert (second.actions, len(project.calls())) == ({"executed": 1}, 2)
    assert second.outcomes == {"passed": 1}


def test_what_an_interpreter_leaves_beside_its_sources_changes_nothing(
    measured: tuple[Project, Measured],
) -> None:
    project, _ = measured
    for folder in ("agent", "tasks/alpha/base", "tasks/alpha/base/pinned"):
        project.write(f"{folder}/__pycache__/helper.cpython-311.pyc", "bytes")
        project.write(f"{folder}/stray.pyc", "bytes")
    assert project.measure("one").actions == {"reused": 1}
    fresh = project.measure("one", fresh=True)
    assert fresh.outcomes == {"passed": 1}
    trees = [path for path in (project.root / ".bench" / "trees").rglob("*") if "pyc" in path.name]
    assert trees == []


def test_a_tool_cannot_name_a_cache_as_its_file(measured: tuple[Project, Measured]) -> None:
    project, _ = measured
    project.write("agent/__pycache__/helper.pyc", "bytes")
    for name in ("agent/__pycache__", "agent/__pycache__/helper.pyc"):
        project.document("tools/agent.yaml", "Tool", {**AGENT, "files": ["agent", name]})
        said = project.ask("run", "one", "--dry-run").err
        assert f"caches of interpreters are no part of a tool: {name}" in said


def test_a_plan_of_another_environment_says_how_many_rows_it_takes_out_of_the_tables(
    measured: tuple[Project, Measured],
) -> None:
    """``--sandbox process --max-cells 1`` once emptied a table without a word; its verdicts were safe all along."""
    project, _ = measured
    assert "will leave them" not in project.ask("run", "one", "--dry-run").err
    limits = {"cpus": 1, "memory": "2GiB", "pids": 64}
    project.configure(defaults={"max_attempts": 3, "cell_timeout": "60s", "resources": limits})
    ended = project.ask("run", "one", "--dry-run")
    assert ended.status == 0, ended.err
    assert "1 measured row of the tables will leave them: measured in another environment" in ended.err
