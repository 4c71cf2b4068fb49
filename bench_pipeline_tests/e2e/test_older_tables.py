"""What is shown is today's price and says when the project has moved on since the tables were written."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bench_pipeline_tests.e2e.projects import PRICING, Project

Make = Callable[..., Project]


@pytest.fixture(scope="module")
def finished(make: Make) -> Project:
    """Two setups on two tasks, measured; a dollar a cell."""
    project = make("alpha", "beta")
    project.acts("one", "fix", "wrong")
    project.measure("one")
    return project


@pytest.fixture
def project(finished: Project, tmp_path: Path) -> Project:
    shutil.copytree(finished.root, tmp_path / "project")
    return Project(tmp_path / "project")


def note(project: Project) -> str:
    """What `bench rank` says beside its rows."""
    ended = project.ask("rank", "one", "--json")
    assert ended.status == 0
    assert json.loads(ended.out)
    return ended.err


def test_a_changed_price_shows_at_once_in_every_command_that_reads_the_tables(project: Project) -> None:
    labels = [row["setup"] for row in project.ask("rank", "one", "--json").json]
    assert {row["cost_usd"] for row in project.ask("rank", "one", "--json").json} == {2.0}
    doubled = {name: 2 * rate for name, rate in PRICING["models"]["model-small"].items()}
    project.document("pricing.yaml", "Pricing", {"models": {"model-small": doubled}})
    assert {row["cost_usd"] for row in project.ask("rank", "one", "--json").json} == {4.0}
    (compared,) = project.ask("compare", *labels, "--json").json
    assert {item["quantity"]: item["a"] for item in compared["sums"]}["cost_usd"] == 4.0
    decided = project.ask(
        "gate", "one", "--baseline", labels[1], "--candidate", labels[0], "--max-cost", "3", "--json"
    )
    assert decided.json["checks"][-1] == {"name": "max_cost", "value": 4.0, "limit": 3.0, "passed": False}
    dry = project.ask("run", "one", "--dry-run", "--fresh", "--json").json
    assert {setup["cost_high"] for setup in dry["setups"]} == {4.0}


def test_a_price_that_is_gone_makes_the_cost_unknown_again(project: Project) -> None:
    (project.root / "pricing.yaml").unlink()
    (row, _) = project.ask("rank", "one", "--json").json
    assert (row["cost_known"], row["cost_unknown"]) == (0, 2)


def test_nothing_is_said_while_the_tables_are_what_the_project_says(project: Project) -> None:
    assert note(project) == ""


def test_setups_that_came_and_went_are_named_with_the_command_that_renews_the_tables(
    project: Project,
) -> None:
    project.acts("one", "fix", "nothing")
    said = note(project)
    assert "setups not in them: agent/small/-+act=nothing" in said
    assert "setups that left: agent/small/-+act=wrong" in said
    assert said.endswith("renew them: bench run one\n")


def test_tasks_that_came_went_or_changed_are_named(project: Project, template: Project) -> None:
    shutil.copytree(template.root / "tasks" / "gamma", project.root / "tasks" / "gamma")
    shutil.rmtree(project.root / "tasks" / "beta")
    document = (project.root / "tasks/alpha/task.yaml").read_text()
    project.write("tasks/alpha/task.yaml", document.replace('tier: "smoke"', 'tier: "stretch"'))
    said = note(project)
    assert "tasks not in them: gamma" in said
    assert "tasks that left: beta" in said
    assert "tasks changed: alpha" in said


def test_a_task_that_is_no_longer_validated_has_left(project: Project) -> None:
    project.write("tasks/beta/base/notes", "another base\n")
    assert "tasks that left: beta" in note(project)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("agent/act.sh", "echo 7", "echo 8"),
        ("tools/agent.yaml", '"stdin": "prompt"', '"stdin": "none"'),
        ("tools/agent.yaml", "model-small", "model-other"),
    ],
)
def test_a_tool_that_was_edited_changes_its_setups(project: Project, path: str, old: str, new: str) -> None:
    text = (project.root / path).read_text()
    assert old in text
    project.write(path, text.replace(old, new))
    assert "setups changed: agent/small/-, agent/small/-+act=wrong" in note(project)


def test_more_attempts_than_the_tables_have_are_said(project: Project) -> None:
    project.acts("one", "fix", "wrong", attempts=2)
    assert "attempts: 1 in the tables, 2 asked for" in note(project)


def test_documents_that_do_not_parse_leave_the_last_rows_and_say_so(project: Project) -> None:
    project.write("evaluations/one.yaml", "kind: Evaluation\n")
    said = note(project)
    assert "what is shown is of the last run" in said
    assert "bench evaluation validate one" in said
