"""A commit is split into hidden tests, reference and noise, and the two patches together give it back."""

import os
import subprocess
from pathlib import Path

import pytest

from bench_pipeline.tasks.git import Repository
from bench_pipeline.tasks.patches import apply_patch
from bench_pipeline.tasks.splitting import Patterns, change_of, split_change
from bench_pipeline.tasks.trees import copy_tree, tree_digest

AUTHOR = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


def git(where: Path, *words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=where, env={**os.environ, **AUTHOR}, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("tests/test_a.py", "test"),
        ("pkg/tests/data/x.json", "test"),
        ("src/a_test.go", "test"),
        ("web/a.spec.ts", "test"),
        ("web/__tests__/a.js", "test"),
        ("src/test/java/A.java", "test"),
        ("t/basic.t", "test"),
        ("conftest.py", "test"),
        ("AppleTest.java", "test"),
        ("src/a.py", "source"),
        ("src/t/a.py", "source"),
        ("src/latest.py", "source"),
        ("attestation.md", "source"),
        ("docs/a.md", "source"),
        ("docs/img/a.png", "noise"),
        ("assets/a.png", "source"),
        ("uv.lock", "noise"),
        ("web/package-lock.json", "noise"),
        ("CHANGELOG.md", "noise"),
        (".github/workflows/test.yml", "noise"),
        ("newsfeed.py", "source"),
    ],
)
def test_the_usual_places_of_tests_and_noise_are_known(path: str, kind: str) -> None:
    assert Patterns().kind(path) == kind


def test_a_projects_own_patterns_replace_the_usual_ones() -> None:
    patterns = Patterns.of(["checks/", "!checks/lib/"], ["*.gen"])
    assert patterns.kind("checks/a.py") == "test"
    assert patterns.kind("tests/a.py") == "source"
    assert patterns.kind("checks/a.gen") == "noise"
    assert Patterns.of((), ()) == Patterns()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "repository"
    (path / "tests").mkdir(parents=True)
    git(path, "init", "-q")
    (path / "a.py").write_bytes(b"one\r\ntwo\n")
    (path / "tests/old_test.py").write_bytes(b"".join(b"line %d\n" % n for n in range(30)))
    (path / "CHANGELOG.md").write_bytes(b"-\n")
    (path / "run.sh").write_bytes(b"#!/bin/sh\n")
    git(path, "add", ".")
    git(path, "commit", "-q", "-m", "base")
    (path / "a.py").write_bytes(b"one\r\nthree")
    (path / "tests/old_test.py").rename(path / "moved.py")
    (path / "tests/new_test.py").write_bytes(b"x\n")
    (path / "tests/data.bin").write_bytes(bytes(range(256)) * 5)
    (path / "CHANGELOG.md").write_bytes(b"- fixed\n")
    (path / "run.sh").chmod(0o755)
    (path / "a b\tc\n").write_bytes(b"odd\n")
    git(path, "add", "-A", ".")
    git(path, "commit", "-q", "-m", "fix")
    return path


def test_tests_and_reference_and_noise_give_the_commit_back(repository: Path, tmp_path: Path) -> None:
    change = change_of(Repository.open(repository), git(repository, "rev-parse", "HEAD~1"), "HEAD")
    split = split_change(change, Patterns())
    assert {path for part in split.tests for path in part.paths} == {
        "tests/old_test.py", "tests/new_test.py", "tests/data.bin",
    }  # fmt: skip
    assert {path for part in split.noise for path in part.paths} == {"CHANGELOG.md"}
    wanted = tmp_path / "wanted"
    wanted.mkdir()
    copy_tree(repository, wanted)
    git(repository, "checkout", "-q", "HEAD~1")
    base = tmp_path / "base"
    base.mkdir()
    copy_tree(repository, base)
    apply_patch(base, split.tests_patch)
    apply_patch(base, split.reference_patch)
    apply_patch(base, b"".join(part.section for part in split.noise))
    assert tree_digest(base) == tree_digest(wanted)


def test_what_a_repository_sets_about_diffs_does_not_count(repository: Path, tmp_path: Path) -> None:
    opened = Repository.open(repository)
    base = git(repository, "rev-parse", "HEAD~1")
    plain = change_of(opened, base, "HEAD")
    mark = tmp_path / "mark"
    evil = f"touch {mark}"
    for key, value in {
        "diff.noprefix": "true", "diff.mnemonicPrefix": "true", "diff.context": "0", "diff.renames": "copies",
        "diff.external": evil, "diff.evil.textconv": evil, "diff.evil.command": evil, "color.ui": "always",
        "diff.suppressBlankEmpty": "true", "diff.algorithm": "patience", "core.quotePath": "false",
        "diff.orderFile": str(tmp_path / "none"), "diff.submodule": "log",
    }.items():  # fmt: skip
        git(repository, "config", key, value)
    (repository / ".git/info/attributes").write_text("* diff=evil\n")
    assert change_of(opened, base, "HEAD") == plain
    assert not mark.exists()
