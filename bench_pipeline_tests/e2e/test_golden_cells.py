"""Golden tasks run as cells of an evaluation: their signals decide, measured in fresh trees."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.tasks import load_golden
from bench_pipeline_tests.e2e.projects import CONFIG, Project

GOLDEN = """---
completion_signals:
  - "file_contains: answer.txt :: forty-two"
  - "file_unchanged: pinned.txt"
  - "test_passes: sh check.sh"
expected_test_outcomes:
  "sh old.sh": true
  "test -e absent": false
owned_files: [answer.txt, "*.sh"]
workspace: question
---
Write the answer into answer.txt.
"""
CHECK = 'test "$(cat answer.txt)" = forty-two\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project.new(tmp_path / "project")
    project.write("golden/standard/question.md", GOLDEN)
    for name, text in {"check.sh": CHECK, "old.sh": "exit 0\n", "pinned.txt": "leave me\n"}.items():
        project.write(f"golden/standard/question/{name}", text)
    return project


def shell(project: Project, *commands: str) -> None:
    blocks = {"tool": "shell", "options": {"command": list(commands)}}
    project.document("evaluations/mine.yaml", "Evaluation", {"attempts": 1, "tools": [blocks]})


def measured(project: Project, *commands: str) -> list[dict[str, Any]]:
    shell(project, *commands)
    rows = [row for row in project.measure("mine", tasks=["question"]).rows if row["task_id"] == "question"]
    by_setup = {row["setup"]: row for row in rows}
    plan = Bench(project.root, backend="process").plan()
    return [by_setup[item.setup.label] for item in plan.setups.values()]


def signals(project: Project, row: dict[str, Any]) -> dict[str, Any]:
    digest = dict(row["artifacts"])["signals"]
    document: dict[str, Any] = json.loads(Bench(project.root).store.artifacts.get(digest))
    return document


def test_signals_decide_and_say_what_does_not_hold(project: Project) -> None:
    right, wrong, pinned = measured(
        project,
        "printf forty-two > answer.txt",
        "printf forty-one > answer.txt",
        "printf forty-two > answer.txt; echo more >> pinned.txt",
    )
    assert (right["outcome"], right["reason"]) == ("passed", None)
    assert (right["tests_run"], right["tests_passed"]) == (3, 3)
    assert wrong["outcome"] == "failed"
    assert wrong["reason"] == (
        "does not hold: file_contains: answer.txt :: forty-two, test_passes: sh check.sh"
    )
    assert (wrong["tests_run"], wrong["tests_passed"]) == (3, 2)
    assert pinned["reason"] == "does not hold: file_unchanged: pinned.txt"


def test_what_was_found_is_kept_as_evidence(project: Project) -> None:
    (row,) = measured(project, "printf forty-two > answer.txt; rm pinned.txt")
    assert signals(project, row) == {
        "schema": 1,
        "signals": [
            {"signal": "file_contains: answer.txt :: forty-two", "kind": "file_contains", "passed": True,
             "detail": None},
            {"signal": "file_unchanged: pinned.txt", "kind": "file_unchanged", "passed": False, "detail": None},
            {"signal": "test_passes: sh check.sh", "kind": "test_passes", "passed": True, "detail": None},
        ],
        "tests": [
            {"command": "sh check.sh", "expected": True, "before": False, "after": True},
            {"command": "sh old.sh", "expected": True, "before": True, "after": True},
            {"command": "test -e absent", "expected": False, "before": False, "after": False},
        ],
        "files_modified": ["answer.txt", "pinned.txt"],
        "missing_modules": [],
    }  # fmt: skip


def test_a_test_that_passed_at_the_start_and_fails_after_is_seen_as_such(project: Project) -> None:
    (row,) = measured(project, "printf forty-two > answer.txt; echo exit 1 > old.sh")
    assert row["outcome"] == "failed"
    assert row["reason"] == "does not hold: sh old.sh was to pass"
    tests = {test["command"]: test for test in signals(project, row)["tests"]}
    assert (tests["sh old.sh"]["before"], tests["sh old.sh"]["after"]) == (True, False)


def test_a_test_that_hangs_has_not_failed_as_expected(project: Project) -> None:
    """Else a candidate that hangs would be what a task asks for that expects a failure."""
    text = GOLDEN.replace('  "sh old.sh": true\n', "").replace(
        '"test -e absent": false', '"sh old.sh": false'
    )
    project.write("golden/standard/question.md", text)
    project.configure(defaults={**CONFIG["defaults"], "cell_timeout": "3s"})
    project.write("golden/standard/question/old.sh", "exit 1\n")
    fails, hangs = measured(
        project, "printf forty-two > answer.txt", "printf forty-two > answer.txt; echo sleep 60 > old.sh"
    )
    assert (fails["outcome"], hangs["outcome"]) == ("passed", "failed")
    tests = {test["command"]: test["after"] for test in signals(project, hangs)["tests"]}
    assert tests["sh old.sh"] is None


def test_an_empty_change_is_judged_by_the_signals(project: Project) -> None:
    """A task whose right answer is to change nothing could otherwise never pass."""
    (row,) = measured(project, "true")
    assert row["outcome"] == "failed"
    project.write(
        "golden/standard/question.md",
        "---\ncompletion_signals: [no_files_modified]\nstarts: passing\nworkspace: question\n---\nLook.\n",
    )
    still, changed = measured(project, "true", "echo x > pinned.txt")
    assert (still["outcome"], changed["outcome"]) == ("passed", "failed")


def test_what_one_test_command_leaves_helps_no_other(project: Project) -> None:
    text = GOLDEN.replace('"sh old.sh": true', '"sh old.sh; echo forty-two > answer.txt": true')
    project.write("golden/standard/question.md", text)
    (row,) = measured(project, "true")
    found = signals(project, row)
    assert [signal["passed"] for signal in found["signals"]] == [False, True, False]


def test_a_signal_for_a_judge_is_neither_held_nor_missed_and_does_not_pass(project: Project) -> None:
    text = GOLDEN.replace("completion_signals:\n", "completion_signals:\n  - The answer reads well.\n")
    project.write("golden/standard/question.md", text)
    (row,) = measured(project, "printf forty-two > answer.txt")
    assert row["outcome"] == "failed"
    assert row["reason"] == "does not hold: The answer reads well. (only a judge can say)"
    assert signals(project, row)["signals"][0] == {
        "signal": "The answer reads well.", "kind": "free_text", "passed": None, "detail": None
    }  # fmt: skip


def test_runner_configuration_outside_the_scope_is_a_violation_that_no_reader_takes_for_a_pass(
    project: Project,
) -> None:
    (row,) = measured(project, "printf forty-two > answer.txt; echo > conftest.py")
    assert row["outcome"] == "guard_violation"
    assert signals(project, row)["signals"][-1] == {
        "signal": "no protected path is touched", "kind": "guard", "passed": False, "detail": "conftest.py"
    }  # fmt: skip


def test_runner_configuration_that_the_task_expects_is_none(project: Project) -> None:
    project.write("golden/standard/question.md", GOLDEN.replace('"*.sh"]', '"*.sh", conftest.py]'))
    (row,) = measured(project, "printf forty-two > answer.txt; echo > conftest.py")
    assert row["outcome"] == "passed"


def test_a_module_that_the_change_invents_is_named(project: Project) -> None:
    text = GOLDEN.replace("test_passes: sh check.sh", "test_passes: python3 use.py")
    project.write("golden/standard/question.md", text)
    project.write("golden/standard/question/use.py", "import absent_from_the_start\n")
    nothing, invented = measured(
        project,
        "printf forty-two > answer.txt",
        "printf forty-two > answer.txt; echo 'from imagined.library import anything' > use.py",
    )
    assert signals(project, nothing)["missing_modules"] == []
    assert signals(project, invented)["missing_modules"] == ["imagined"]


def test_a_link_out_of_the_tree_satisfies_no_signal(project: Project, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "answer.txt").write_text("forty-two")
    text = GOLDEN.replace("file_contains: answer.txt", "file_contains: link/answer.txt")
    project.write("golden/standard/question.md", text)
    (row,) = measured(project, f"ln -s {tmp_path}/outside link; printf forty-two > answer.txt")
    assert signals(project, row)["signals"][0]["passed"] is False


def test_changing_a_signal_checks_the_stored_candidate_again_without_the_tool(project: Project) -> None:
    shell(project, "printf forty-two > answer.txt")
    assert project.measure("mine", tasks=["question"]).actions == {"executed": 1}
    project.write("golden/standard/question.md", GOLDEN.replace(":: forty-two", ":: forty-three"))
    again = project.measure("mine", tasks=["question"])
    assert again.actions == {"reverified": 1}
    assert again.row["outcome"] == "failed"
    project.write("golden/standard/question.md", GOLDEN.replace("Write the", "Please write the"))
    assert project.measure("mine", tasks=["question"]).actions == {"executed": 1}


def test_limits_of_a_golden_task_are_in_no_key(project: Project) -> None:
    shell(project, "printf forty-two > answer.txt")
    project.measure("mine", tasks=["question"])
    text = GOLDEN.replace("workspace:", "max_cost_usd: 5\nmax_duration_s: 9\ntitle: Other\nworkspace:")
    project.write("golden/standard/question.md", text)
    assert project.measure("mine", tasks=["question"]).actions == {"reused": 1}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("workspace: question", "starts: passing\nworkspace: question"), "declares starts: passing"),
        (("file_contains: answer.txt :: forty-two", "path_exists: pinned.txt"), None),
    ],
)
def test_a_task_that_does_not_start_as_it_declares_is_left_out(
    project: Project, change: tuple[str, str], said: str | None
) -> None:
    text = GOLDEN.replace(*change)
    if said is None:
        text = text.replace('  - "test_passes: sh check.sh"\n', "")
        said = "hold before any work"
    project.write("golden/standard/question.md", text)
    shell(project, "true")
    plan = Bench(project.root, backend="process").plan()
    assert said in plan.left_out["question"]
    assert "question" not in plan.cells["task_id"].to_pylist()
    ended = project.ask("run", "mine", "--task", "question")
    assert ended.status == 5
    assert "bench golden validate question" in ended.err


def test_packaged_tasks_become_cells_only_beside_golden_tasks_of_the_project(project: Project) -> None:
    shell(project, "true")
    with_own = set(Bench(project.root, backend="process").plan().cells["task_id"].to_pylist())
    assert with_own == {task.id for task in load_golden(project.root).tasks}
    (project.root / "golden/standard/question.md").unlink()
    assert Bench(project.root, backend="process").plan().cells.num_rows == 0


def test_one_id_for_a_task_and_a_golden_task_is_refused(project: Project) -> None:
    project.task("question")
    project.validate("question")
    shell(project, "true")
    ended = project.ask("run", "mine", "--dry-run")
    assert ended.status == 1
    assert "golden/standard/question.md: id:" in ended.err


def test_two_golden_tasks_of_equal_content_are_refused(project: Project) -> None:
    twin = GOLDEN.replace("workspace:", "max_cost_usd: 7\nworkspace:")
    project.write("golden/stretch/other.md", twin.replace("workspace: question", "workspace: copy"))
    for name in ("check.sh", "old.sh", "pinned.txt"):
        project.write(
            f"golden/stretch/copy/{name}", (project.root / f"golden/standard/question/{name}").read_text()
        )
    shell(project, "true")
    ended = project.ask("run", "mine", "--dry-run")
    assert ended.status == 1
    assert "it is the same task as golden/standard/question.md" in ended.err


def test_validate_names_what_cannot_be_measured(project: Project) -> None:
    project.write("golden/smoke/none.md", "---\nworkspace: none\n---\nDo it.\n")
    project.write("golden/smoke/none/a", "a")
    project.write(
        "golden/smoke/talk.md",
        "---\ncompletion_signals:\n  - It reads well.\ncanary: plover-11\nworkspace: talk\n---\nSay plover-11.\n",
    )
    project.write("golden/smoke/talk/plover-11.txt", "x")
    project.write("golden/smoke/report.md", "---\ncompletion_signals: [It is good.]\n---\n")
    project.write(
        "golden/smoke/pin.md",
        '---\ncompletion_signals: ["file_unchanged: nowhere"]\nworkspace: talk\n---\nx\n',
    )
    ended = project.ask("golden", "validate", "--tier", "smoke", "--json")
    rows = {row["task_id"]: row for row in ended.json}
    assert ended.status == 1
    assert rows["none"]["problems"] == [
        "it has no completion signals: nothing is checked, so it never passes"
    ]
    assert rows["talk"]["problems"] == [
        "its canary stands in what the tool is told",
        "its canary stands in talk/plover-11.txt",
        "it has no signal that can be measured",
    ]
    assert (rows["report"]["valid"], rows["report"]["runs"]) == (True, False)
    assert rows["report"]["for_a_judge"] == ["It is good."]
    assert rows["pin"]["problems"][0] == "file_unchanged: nowhere: there is no such file in talk"
    assert project.ask("golden", "validate", "question").status == 0


def test_validate_names_files_that_do_not_parse_beside_the_tasks_that_do(project: Project) -> None:
    project.write("golden/standard/broken.md", "---\nroles: x\n---\n")
    ended = project.ask("golden", "validate", "--json")
    assert ended.status == 1
    assert "golden/standard/broken.md:2: roles: is not a known field" in ended.err
    assert "question" in [row["task_id"] for row in ended.json]


def test_a_ranking_knows_the_golden_tasks_of_its_tables_and_names_those_that_changed(
    project: Project,
) -> None:
    shell(project, "printf forty-two > answer.txt")
    project.measure("mine")
    fresh = project.ask("rank", "mine", "--json")
    assert (fresh.status, fresh.err) == (0, "")
    project.write("golden/standard/question.md", GOLDEN.replace("Write the", "Please write the"))
    assert "tasks changed: question" in project.ask("rank", "mine").err
    (project.root / "golden/standard/question.md").unlink()
    assert (
        "tasks that left: instruction-in-data, nothing-to-mend, page-numbers and 7 more"
        in project.ask("rank", "mine").err
    )
