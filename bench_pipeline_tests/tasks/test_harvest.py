"""Which commits make tasks, and what a drafted task says."""

import os
import subprocess
from pathlib import Path

import pytest

from bench_pipeline.documents import read_document
from bench_pipeline.errors import NotFoundError, RefusedError
from bench_pipeline.tasks import TaskDocument
from bench_pipeline.tasks.drafting import (
    NO_PROMPT,
    Choices,
    clean_remote,
    default_id,
    pull_request_of,
    task_files,
)
from bench_pipeline.tasks.git import Repository
from bench_pipeline.tasks.guessing import guess_command
from bench_pipeline.tasks.harvest import harvest, scan
from bench_pipeline.tasks.leaks import draft_prompt
from bench_pipeline.tasks.loading import id_problem
from bench_pipeline.tasks.splitting import Patterns

AUTHOR = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_COMMITTER_DATE": "2025-01-31T12:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


def git(where: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=where, env={**os.environ, **AUTHOR}, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(repository: Path, files: dict[str, str | None], message: str) -> str:
    for path, content in files.items():
        place = repository / path
        if content is None:
            place.unlink()
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content)
    git(repository, "add", "-A", ".")
    git(repository, "commit", "-q", "--allow-empty", "-m", message)
    return git(repository, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "repository"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    commit(path, {"a.py": "A = 1\n", "tests/test_a.py": "assert True\n"}, "first")
    return path


GOOD = {"a.py": "A = 2\n", "tests/test_a.py": "import a\nassert a.A == 2\n", "CHANGES.md": "- A\n"}


def test_a_commit_with_source_and_tests_makes_a_task(repository: Path) -> None:
    base = git(repository, "rev-parse", "HEAD")
    fix = commit(repository, GOOD, "Make A two\n\nBecause.")
    found = harvest(Repository.open(repository), fix[:12], Patterns())
    assert (found.commit.id, found.base, found.commit.subject) == (fix, base, "Make A two")
    assert [part.paths for part in found.split.tests] == [("tests/test_a.py",)]
    assert [part.paths for part in found.split.reference] == [("a.py",)]
    assert [part.paths for part in found.split.noise] == [("CHANGES.md",)]
    assert found.commit.at is not None
    assert found.commit.at.isoformat() == "2025-01-31T12:00:00+00:00"


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"a.py": "A = 3\n"}, "no tests"),
        ({"tests/test_a.py": "1\n"}, "nothing but tests"),
        ({"CHANGES.md": "x\n"}, "neither"),
        ({}, "neither"),
        ({"a.py": "A = 3\n", "tests/test_a.py": None}, "only removes tests"),
    ],
)
def test_a_commit_without_one_of_the_two_is_refused_with_the_reason(
    repository: Path, files: dict[str, str | None], why: str
) -> None:
    found = commit(repository, files, "x")
    with pytest.raises(RefusedError, match=why):
        harvest(Repository.open(repository), found, Patterns())
    (judged,) = scan(Repository.open(repository), "HEAD", Patterns(), limit=1)
    assert judged.why_not is not None
    assert why in judged.why_not


def test_the_first_commit_a_merge_and_a_submodule_are_refused(repository: Path) -> None:
    first = git(repository, "rev-parse", "HEAD")
    opened = Repository.open(repository)
    with pytest.raises(RefusedError, match="first commit"):
        harvest(opened, first, Patterns())
    git(repository, "checkout", "-q", "-b", "side")
    commit(repository, {"b.py": "1\n"}, "side")
    git(repository, "checkout", "-q", "main")
    commit(repository, GOOD, "main")
    git(repository, "merge", "-q", "--no-ff", "-m", "merge", "side")
    with pytest.raises(RefusedError, match="merge"):
        harvest(opened, "HEAD", Patterns())
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},lib")
    (repository / "tests/test_a.py").write_text("2\n")
    git(repository, "add", "tests")
    git(repository, "commit", "-q", "-m", "submodule")
    with pytest.raises(RefusedError, match="submodule lib"):
        harvest(opened, "HEAD", Patterns())
    with pytest.raises(NotFoundError):
        harvest(opened, "none", Patterns())


def test_a_base_that_a_shallow_clone_lacks_is_an_error(repository: Path, tmp_path: Path) -> None:
    commit(repository, GOOD, "fix")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{repository}", "shallow")
    with pytest.raises(NotFoundError):
        harvest(Repository.open(tmp_path / "shallow"), "HEAD", Patterns())


def test_a_scan_judges_every_commit_newest_first(repository: Path) -> None:
    commit(repository, GOOD, "good one")
    commit(repository, {"odd\nname.py": "1\n", "tests/t\tb.py": "2\n"}, "odd names")
    found = list(scan(Repository.open(repository), "HEAD", Patterns(), limit=10))
    assert [(item.commit.subject, item.why_not is None) for item in found] == [
        ("odd names", True),
        ("good one", True),
        ("first", False),
    ]
    assert [(item.tests, item.source, item.noise) for item in found][:2] == [(1, 1, 0), (1, 1, 1)]
    assert len(list(scan(Repository.open(repository), "HEAD", Patterns(), limit=1))) == 1
    assert list(scan(Repository.open(repository), "HEAD", Patterns(), limit=9, since="2026-01-01")) == []


def test_a_message_of_another_encoding_is_read(repository: Path) -> None:
    git(repository, "config", "i18n.commitEncoding", "ISO-8859-1")
    message = repository / "message"
    message.write_bytes("Zähle\n".encode("latin-1"))
    git(repository, "commit", "-q", "--allow-empty", "-F", str(message))
    (found,) = scan(Repository.open(repository), "HEAD", Patterns(), limit=1)
    assert found.commit.subject == "Zähle"


@pytest.mark.parametrize(
    "choices",
    [
        Choices("t", "https://github.com/o/r.git", "make test"),
        Choices(
            "t", '../r: "x" #y', "a 'b' \"c\" \\ # d\n\te: {f}", "guess", "out dir/r.xml", "smoke", "i:1",
            ("one # two", "- three"), ("py --version",),
        ),
    ],
)  # fmt: skip
def test_a_drafted_document_is_read_back_as_it_was_meant(
    repository: Path, tmp_path: Path, choices: Choices
) -> None:
    commit(repository, GOOD, "Make A two (#12)")
    found = harvest(Repository.open(repository), "HEAD", Patterns())
    files = task_files(found, draft_prompt(found.commit.message), choices)
    (tmp_path / "task.yaml").write_bytes(files["task.yaml"])
    document = read_document(tmp_path / "task.yaml", TaskDocument, "Task").model
    assert (document.source.remote, document.source.base_commit) == (choices.remote, found.base)
    assert document.source.fix_commit == found.commit.id
    assert (document.verify.command, document.tier) == (choices.command, choices.tier)
    assert (document.environment.setup, document.environment.fingerprint) == (
        choices.setup,
        choices.fingerprint,
    )
    assert document.environment.image == choices.image
    assert (document.verify.results.path if document.verify.results else None) == choices.junit
    assert files["prompt.md"].startswith(b"Make A two\n\n")
    assert document.source.pull_request == pull_request_of("x (#12)", choices.remote)


def test_a_message_that_says_nothing_gives_a_prompt_that_asks_for_one(repository: Path) -> None:
    commit(repository, GOOD, "#12")
    found = harvest(Repository.open(repository), "HEAD", Patterns())
    files = task_files(found, draft_prompt(found.commit.message), Choices("t", "r", "make"))
    assert files["prompt.md"].decode().startswith(NO_PROMPT)


def test_a_drafted_prompt_says_what_must_not_be_touched_and_no_name_of_a_hidden_test(
    repository: Path,
) -> None:
    change = {**GOOD, "tests/unit/test_secret_case.py": "import a\n", "hidden/exact-name.sh": "true\n"}
    commit(repository, change, "Make A two")
    patterns = Patterns(tests=("tests/", "test_*.*", "hidden/exact-name.sh"))
    found = harvest(Repository.open(repository), "HEAD", patterns)
    prompt = task_files(found, draft_prompt(found.commit.message), Choices("t", "r", "make"))[
        "prompt.md"
    ].decode()
    words = " ".join(prompt.split())
    assert "Do not add, change or remove test files (such as `tests/`, `test_*.*`)" in words
    assert "configuration of the test runner" in words
    assert not any(name in prompt for name in ("secret", "unit", "exact-name"))


@pytest.mark.parametrize(
    ("url", "clean"),
    [
        ("https://me:token@example.org/o/r.git", "https://example.org/o/r.git"),
        ("https://token@example.org:8443/o/r?access_token=1#x", "https://example.org:8443/o/r"),
        ("ssh://git:pw@example.org:22/o/r", "ssh://git@example.org:22/o/r"),
        ("git@example.org:o/r.git", "git@example.org:o/r.git"),
        ("../r", "../r"),
    ],
)
def test_a_remote_is_kept_without_secrets(url: str, clean: str) -> None:
    assert clean_remote(url) == clean


def test_a_pull_request_is_known_only_on_the_forge_whose_habit_it_is() -> None:
    assert pull_request_of("Fix (#7)", "git@github.com:o/r.git") == "https://github.com/o/r/pull/7"
    assert pull_request_of("Fix (#7)", "https://example.org/o/r") is None
    assert pull_request_of("Fix #7", "https://github.com/o/r") is None


@pytest.mark.parametrize(
    "remote", ["https://e.org/o/My.Repo.git", "git@e.org:r", "../r/", "/", "é", "a" * 300]
)
def test_a_default_id_is_an_id(remote: str) -> None:
    assert id_problem(default_id(remote, "0123456789abcdef")) is None


@pytest.mark.parametrize(
    ("tests", "command"),
    [
        ({"tests/test_a.py": b"import unittest\n"}, "python3 -m unittest tests/test_a.py"),
        (
            {"tests/test_a.py": b"def test_a(): pass\n"},
            "python3 -m pytest -q --junitxml=bench-junit.xml tests/test_a.py",
        ),
        (
            {"te-sts/test_a.py": b"import unittest\n"},
            "python3 -m pytest -q --junitxml=bench-junit.xml te-sts/test_a.py",
        ),
        ({"test/a.mjs": b'import "node:test"'}, "node --test test/a.mjs"),
        ({"a.test.ts": b""}, "npm test -- a.test.ts"),
        ({"tests/b.sh": b"#!/bin/bash\n", "tests/a.sh": b"#!/bin/sh\n"}, "sh tests/a.sh && bash tests/b.sh"),
        ({"t/a.t": b"", "t/b c.t": b""}, "prove t/a.t 't/b c.t'"),
        ({"x/a_test.go": b"", "a_test.go": b"", "x/b_test.go": b""}, "go test . ./x"),
        ({"-rf.t": b""}, "prove ./-rf.t"),
        (
            {"tests/test_a.py": b"import unittest", "tests/a.sh": b""},
            "python3 -m unittest tests/test_a.py && sh tests/a.sh",
        ),
    ],
)
def test_a_command_is_guessed_from_the_changed_tests(tests: dict[str, bytes], command: str) -> None:
    guess = guess_command(tests)
    assert guess is not None
    assert guess.command == command
    assert (guess.junit is not None) == ("junitxml" in command)


@pytest.mark.parametrize(
    "tests", [{}, {"tests/data.json": b""}, {"tests/conftest.py": b""}, {"tests/a\nb.sh": b""}]
)
def test_no_command_is_made_up_for_what_is_not_known(tests: dict[str, bytes]) -> None:
    assert guess_command(tests) is None
