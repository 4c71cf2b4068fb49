"""A task from this project's own history: made from a commit, validated, and solved by the commit's own change.

The commit is chosen by a rule, so that no digest stands here: the oldest one that changes at most three modules
of the package and one test module and nothing else, and whose tests fail without its change.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench_pipeline_tests.e2e.projects import CONFIG, Measured, Project

CHECKOUT = Path(__file__).resolve().parents[2]
TRIES = 3
# A shell agent that looks for what it must not find; it solves nothing.
LOOK = "if test -e .git || git log -1; then exit 9; fi; echo looked >> README.md"
WRONG = "--- /dev/null\n+++ b/bench_pipeline/wrong.py\n@@ -0,0 +1 @@\n+# This changes nothing.\n"


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def history(into: Path) -> Path:
    """A whole clone of the checkout."""
    why = "this test makes a task from the project's own history: run it in a full clone (git fetch --unshallow)"
    assert (CHECKOUT / ".git").exists(), f"{CHECKOUT} is no Git checkout; {why}"
    assert git(CHECKOUT, "rev-parse", "--is-shallow-repository").strip() == "false", f"a shallow clone; {why}"
    git(CHECKOUT, "clone", "--quiet", "--bare", str(CHECKOUT), str(into))
    return into


@dataclass(frozen=True)
class Fix:
    """A commit that changes a little of the package and one test module."""

    commit: str
    tests: str


def fixes(repository: Path) -> Iterator[Fix]:
    """The commits that the rule allows, oldest first."""
    for commit in git(repository, "rev-list", "--reverse", "--no-merges", "HEAD").split():
        changed = git(repository, "diff-tree", "--no-commit-id", "--name-only", "-r", commit).splitlines()
        modules = [path for path in changed if path.startswith("bench_pipeline/") and path.endswith(".py")]
        tests = [path for path in changed if path.startswith("bench_pipeline_tests/") and "/test_" in path]
        if len(tests) == 1 and 1 <= len(modules) <= 3 and len(changed) == len(modules) + 1:
            yield Fix(commit, tests[0])


@dataclass(frozen=True)
class Made:
    """The project with its one task: what ``task create`` and ``task validate`` said, and a run of three setups."""

    project: Project
    fix: Fix
    created: dict[str, Any]
    validated: dict[str, Any]
    done: Measured

    @property
    def folder(self) -> Path:
        return self.project.root / "tasks/own"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("own")
    repository = history(root / "history.git")
    refused = []
    for number, fix in enumerate(list(fixes(repository))[:TRIES]):
        project = Project(root / f"project-{number}")
        project.document("config.yaml", "Project", CONFIG)
        command = (
            f"{sys.executable} -m pytest -o addopts= -p no:cacheprovider -q --junitxml=report.xml {fix.tests}"
        )
        created = project.ask(
            "task", "create", fix.commit, "--repo", str(repository), "--id", "own",
            "--verify-command", command, "--junit", "report.xml", "--json",
        )  # fmt: skip
        assert created.status == 0, created.err
        validated = project.ask("task", "validate", "own", "--json")
        if validated.status == 0:
            return Made(project, fix, created.json, validated.json[0], solve(project))
        refused.append(f"{fix.commit[:12]}: {validated.out}")
    pytest.fail("no commit of the history makes a valid task:\n" + "\n".join(refused))


def solve(project: Project) -> Measured:
    """Run the commit's own change, a wrong patch, and an agent that only looks around."""
    right = (project.root / "tasks/own/reference.patch").read_text()
    for model, patch in (("right", right), ("wrong", WRONG)):
        row = {"instance_id": "own", "model_name_or_path": model, "model_patch": patch}
        project.write(f"predictions/{model}.jsonl", json.dumps(row) + "\n")
    blocks = [
        {"tool": "predictions", "model": ["right", "wrong"]},
        {"tool": "shell", "options": {"command": LOOK}},
    ]
    project.document("evaluations/one.yaml", "Evaluation", {"tools": blocks})
    return project.measure("one")


def test_the_commit_is_split_into_hidden_tests_and_a_reference(made: Made) -> None:
    assert made.created["tests"] == [made.fix.tests]
    assert made.created["fix_commit"] == made.fix.commit
    assert made.created["base_commit"] != made.fix.commit
    assert all(path.startswith("bench_pipeline/") for path in made.created["reference"])
    assert "bench_pipeline_tests" not in (made.folder / "reference.patch").read_text()


def test_its_base_fails_and_its_reference_passes_tests_that_really_run(made: Made) -> None:
    assert (made.validated["base_failed"], made.validated["reference_passed"]) == (True, True)
    assert made.validated["tests"]
    assert made.validated["reference_tests_run"] >= made.validated["base_tests_run"] >= 1


def test_its_own_change_passes_and_a_wrong_one_does_not(made: Made) -> None:
    rows = {row["setup"].split("+")[0]: row for row in made.done.rows}
    assert rows["predictions/right/-"]["outcome"] == "passed"
    assert rows["predictions/right/-"]["tests_passed"] == len(made.validated["tests"])
    assert rows["predictions/wrong/-"]["outcome"] == "failed"
    assert rows["predictions/wrong/-"]["reason"].startswith("tests ")


def test_an_agent_finds_no_history_in_its_tree(made: Made) -> None:
    (row,) = [row for row in made.done.rows if row["setup"].startswith("shell")]
    assert (row["outcome"], row["exit_code"]) == ("failed", 0)
