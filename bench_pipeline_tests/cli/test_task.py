"""``bench task`` from commits to validated tasks, on real repositories."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bench_pipeline.cli.main import bench, main

AUTHOR = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
}
CONFIG = (
    "apiVersion: bench.ber.run/v1alpha1\nkind: Project\nsandbox: {backend: process, allow_process: true}\n"
)


def git(where: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=where, env={**os.environ, **AUTHOR}, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(repository: Path, files: dict[str, str], message: str) -> str:
    for path, content in files.items():
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_text(content)
    git(repository, "add", "-A", ".")
    git(repository, "commit", "-q", "-m", message)
    return git(repository, "rev-parse", "HEAD")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "config.yaml").write_text(CONFIG)
    return root


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "shop"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    commit(path, {"price.sh": "echo 1\n", "tests/check.sh": "true\n"}, "first")
    fixed = {"price.sh": "echo 2\n", "tests/check.sh": 'test "$(sh price.sh)" = 2\n', "CHANGES.md": "- two\n"}
    commit(path, fixed, "Say two (#7)\n\nFixes #3\nSigned-off-by: A <a@example.org>")
    commit(path, {"README.md": "shop\n"}, "Describe")
    return path


def run(project: Path, *words: str | Path) -> Result:
    return CliRunner().invoke(
        bench,
        ["--project", str(project), "task", *map(str, words)],
        catch_exceptions=False,
        standalone_mode=False,
    )


def run_json(project: Path, *words: str | Path):
    done = run(project, *words, "--json")
    return json.loads(done.stdout)


def status(project: Path, *words: str | Path) -> int:
    with pytest.raises(SystemExit) as done:
        main(["--project", str(project), "task", *map(str, words)])
    code = done.value.code
    assert isinstance(code, int)
    return code


def test_a_commit_becomes_a_task_that_lists_and_shows(project: Path, repository: Path) -> None:
    made = run_json(project, "create", "main~1", "--repo", repository, "--id", "two", "--tier", "smoke")
    assert made["id"] == "two"
    assert made["remote"] == "../shop"
    assert (made["base_commit"], made["fix_commit"]) == (
        git(repository, "rev-parse", "main~2"),
        git(repository, "rev-parse", "main~1"),
    )
    assert (made["tests"], made["reference"], made["noise"]) == (
        ["tests/check.sh"],
        ["price.sh"],
        ["CHANGES.md"],
    )
    assert made["command"] == "sh tests/check.sh"
    assert made["command_guessed"]
    assert len(made["removed_from_prompt"]) == 3
    prompt = (project / "tasks/two/prompt.md").read_text()
    assert prompt.startswith("Say two\n\nDo not add, change or remove test files (such as `tests/`)")
    assert sorted(os.listdir(project / "tasks")) == ["two"]
    (row,) = run_json(project, "list")
    assert (row["task_id"], row["tier"], row["state"]) == ("two", "smoke", "not validated")
    shown = run_json(project, "show", "two")
    assert shown["hidden_test_files"] == ["tests/check.sh"]
    assert shown["prompt"] == prompt
    assert "two" in run(project, "show", "two", "--plain").stdout


def test_nothing_that_exists_is_replaced(
    project: Path, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for taken in ("two", "three"):
        (project / "tasks" / taken).mkdir(parents=True)
    for task_id in ("two", "Three", "three"):
        assert status(project, "create", "main~1", "--repo", repository, "--id", task_id) == 1
        assert "nothing is replaced" in capsys.readouterr().err
    assert os.listdir(project / "tasks/two") == []
    assert sorted(os.listdir(project / "tasks")) == ["three", "two"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["main"], 1, "no tests"),
        (["main~2"], 1, "first commit"),
        (["none"], 1, "no such commit"),
        (["main~1", "--id", "a/b"], 2, "task id"),
        (["main~1", "--id", "-rf"], 2, "task id"),
        (["main~1", "--tier", "hard"], 2, "hard"),
        (["main~1", "--junit", "r.xml"], 2, "verify-command"),
    ],
)
def test_a_refusal_says_why(
    project: Path,
    repository: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    said: str,
) -> None:
    assert status(project, "create", "--repo", repository, *words) == code
    assert said in capsys.readouterr().err
    assert not (project / "tasks").exists() or os.listdir(project / "tasks") == []


def test_a_repository_that_is_not_there_is_an_error(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(project, "create", "main", "--repo", project / "none") == 1
    assert status(project, "create", "main", "--repo", project) == 1
    assert status(project, "create", "main") == 2
    assert "--repo" in capsys.readouterr().err


def test_a_scan_says_which_commits_would_make_tasks_and_why_not(project: Path, repository: Path) -> None:
    rows = run_json(project, "scan", "--repo", repository)
    assert [(row["subject"], row["suitable"]) for row in rows] == [
        ("Describe", False),
        ("Say two (#7)", True),
        ("first", False),
    ]
    assert all((row["reason"] is None) == row["suitable"] for row in rows)
    assert len(run_json(project, "scan", "--repo", repository, "--max", "1")) == 1
    assert "suitable=yes" in run(project, "scan", "--repo", repository, "--plain").stdout


def test_a_published_remote_is_kept_without_secrets_and_never_fetched_again(
    project: Path, repository: Path, tmp_path: Path
) -> None:
    git(repository, "remote", "add", "origin", "https://me:secret@nowhere.invalid/o/shop.git")
    git(repository, "update-ref", "refs/remotes/origin/main", "main")
    made = run_json(project, "create", "main~1", "--repo", repository)
    assert made["remote"] == "https://nowhere.invalid/o/shop.git"
    assert "secret" not in (project / "tasks" / made["id"] / "task.yaml").read_text()
    from bench_pipeline.pipeline.bench import Bench

    workbench = Bench(project)
    into = tmp_path / "into"
    into.mkdir()
    workbench.bases.write(workbench.tasks.get(made["id"]), into)
    assert (into / "price.sh").read_text() == "echo 1\n"


def test_a_remote_that_has_not_got_the_base_yet_is_not_named(project: Path, repository: Path) -> None:
    git(repository, "remote", "add", "origin", "https://nowhere.invalid/o/shop.git")
    assert run_json(project, "create", "main~1", "--repo", repository)["remote"] == "../shop"


def test_a_url_is_cloned_and_harvested(project: Path, repository: Path) -> None:
    made = run_json(project, "create", "main~1", "--repo", f"file://{repository}", "--verify-command", "true")
    assert made["remote"] == f"file://{repository}"
    assert made["id"].startswith("shop-")


def test_a_broken_task_is_named_and_the_others_are_listed(
    project: Path, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_json(project, "create", "main~1", "--repo", repository, "--id", "good")
    (project / "tasks/bad").mkdir()
    (project / "tasks/bad/task.yaml").write_text("kind: Task\n")
    assert status(project, "list", "--plain") == 1
    printed = capsys.readouterr()
    assert "task_id=good" in printed.out
    assert "bad/task.yaml" in printed.err


def test_a_task_that_is_not_there_is_named_with_the_nearest(
    project: Path, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_json(project, "create", "main~1", "--repo", repository, "--id", "rounding")
    assert status(project, "show", "roundin") == 1
    assert "did you mean rounding" in capsys.readouterr().err


def test_text_of_a_commit_is_escaped_on_output(project: Path, repository: Path) -> None:
    commit(repository, {"price.sh": "echo 3\n", "tests/check.sh": "false\n"}, "Three\x1b[31m\u202e now")
    printed = run(project, "scan", "--repo", repository, "--plain").stdout
    assert "\x1b" not in printed
    assert "\u202e" not in printed


def test_a_drafted_task_validates_and_a_second_run_has_nothing_to_do(project: Path, repository: Path) -> None:
    run_json(project, "create", "main~1", "--repo", repository, "--id", "two")
    (row,) = run_json(project, "validate")
    assert (row["task_id"], row["valid"], row["reasons"]) == ("two", True, [])
    assert run_json(project, "validate") == []
    (listed,) = run_json(project, "list")
    assert (listed["state"], listed["reason"], listed["tests"]) == ("validated", None, None)
    path = project / "tasks/two/tests.patch"
    path.write_bytes(path.read_bytes().replace(b"= 2", b"= 3"))
    (listed,) = run_json(project, "list")
    assert (listed["state"], listed["reason"]) == (
        "stale",
        "changed since it was validated: the hidden tests",
    )


def test_a_task_that_is_not_valid_ends_with_1_and_says_why(
    project: Path, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_json(project, "create", "main~1", "--repo", repository, "--id", "two", "--verify-command", "true")
    assert status(project, "validate", "--plain") == 1
    assert "nothing to fix" in capsys.readouterr().out
    (project / "tasks/bad").mkdir()
    (project / "tasks/bad/task.yaml").write_text("kind: Task\n")
    assert status(project, "validate", "two") == 1
    assert "bad/task.yaml" not in capsys.readouterr().err
    assert status(project, "validate") == 1
    assert "bad/task.yaml" in capsys.readouterr().err


def test_validating_in_a_project_without_tasks_ends_with_5(project: Path) -> None:
    assert status(project, "validate") == 5
