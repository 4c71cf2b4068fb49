"""A commit's tree is written whole and without history, and nothing of the repository runs or applies."""

import os
import subprocess
from pathlib import Path

import pytest

from bench_pipeline.errors import NotFoundError
from bench_pipeline.tasks import Bases, RemoteSource, Task, TaskEnvironment, TaskVerify
from bench_pipeline.tasks.git import (
    CloneCache,
    GitError,
    Repository,
    export_tree,
    run_git,
    without_credentials,
)
from bench_pipeline.tasks.trees import copy_tree, tree_digest

AUTHOR = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(where: Path, *words: str, stdin: bytes = b"") -> str:
    done = subprocess.run(
        ["git", *words], cwd=where, env={**os.environ, **AUTHOR}, input=stdin, check=True, capture_output=True
    )
    return done.stdout.decode().strip()


def commit(repository: Path, files: dict[str, bytes | None], message: str = "change") -> str:
    for path, content in files.items():
        place = repository / path
        if content is None:
            place.unlink()
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
    git(repository, "add", "-A", "-f", ".")
    git(repository, "commit", "-q", "--allow-empty", "-m", message)
    return git(repository, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "repository"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    return path


@pytest.fixture
def into(tmp_path: Path) -> Path:
    path = tmp_path / "into"
    path.mkdir()
    return path


def raw_commit(repository: Path, entries: list[tuple[str, str, str]]) -> str:
    """A commit of a tree that `git add` would not make: (mode, object, name)."""
    raw = b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(found) for mode, found, name in entries)
    tree = git(repository, "hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=raw)
    return git(repository, "commit-tree", tree, "-m", "raw")


def test_a_commit_is_written_exactly_and_without_history(repository: Path, into: Path) -> None:
    (repository / "run.sh").write_bytes(b"#!/bin/sh\n")
    (repository / "run.sh").chmod(0o755)
    (repository / "link").symlink_to("d/x")
    names = {
        "-rf": b"1",
        "a\nb": b"2",
        os.fsdecode(b"caf\xe9"): b"3",
        "d/x": b"a\r\nb",
        "empty": b"",
        "é/b": b"\0",
    }
    first = commit(repository, names)
    commit(repository, {"later": b"secret"})
    assert export_tree(Repository.open(repository), first, into) == ()
    for name, content in names.items():
        assert (into / name).read_bytes() == content
    assert os.readlink(into / "link") == "d/x"
    assert (into / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (into / "-rf").stat().st_mode & 0o777 == 0o644
    assert not (into / "later").exists()
    assert not list(into.rglob(".git"))


def test_links_that_leave_and_submodules_are_left_out_and_said(repository: Path, into: Path) -> None:
    (repository / "abs").symlink_to("/etc/hostname")
    (repository / "up").symlink_to("../secret")
    (repository / "sub").mkdir()
    (repository / "sub" / "fine").symlink_to("../ok")
    commit(repository, {"ok": b"1"})
    submodule = f"160000,{'1' * 40},module"
    git(repository, "update-index", "--add", "--cacheinfo", submodule)
    git(repository, "commit", "-q", "-m", "submodule")
    dropped = export_tree(Repository.open(repository), git(repository, "rev-parse", "HEAD"), into)
    assert {item.path for item in dropped} == {"abs", "up", "module"}
    assert sorted(path.name for path in into.iterdir()) == ["ok", "sub"]


def test_a_hostile_tree_writes_nothing_outside(repository: Path, into: Path) -> None:
    commit(repository, {"x": b"evil"})
    blob = git(repository, "rev-parse", "HEAD:x")
    link = git(repository, "hash-object", "-w", "--stdin", stdin=b"inside")
    inner = git(repository, "rev-parse", "HEAD^{tree}")
    bad = raw_commit(
        repository,
        [
            ("40000", inner, ".."),
            ("100644", blob, ".GIT"),
            ("40000", inner, ".git"),
            ("40000", inner, "inside"),
            ("120000", link, "link"),
            ("40000", inner, "link"),
        ],
    )
    dropped = export_tree(Repository.open(repository), bad, into)
    assert {item.path for item in dropped} >= {"../x", ".GIT", ".git/x"}
    assert not (into.parent / "x").exists()
    written = {str(path.relative_to(into)) for path in into.rglob("*")}
    assert written <= {"inside", "inside/x", "link", "link/x"}


def test_nothing_that_a_repository_configures_runs_or_applies(
    repository: Path, into: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    evil = f"touch {mark}"
    attributes = b"* filter=evil text eol=crlf export-subst diff=evil\nhidden export-ignore\n"
    fixed = commit(repository, {".gitattributes": attributes, "a": b"$Format:%H$\n", "hidden": b"x\n"})
    for key in ("core.fsmonitor", "core.sshCommand", "core.pager", "filter.evil.smudge", "filter.evil.clean",
                "diff.evil.command", "diff.evil.textconv", "core.gitProxy", "uploadpack.packObjectsHook",
                "gpg.program"):  # fmt: skip
        git(repository, "config", key, evil)
    git(repository, "config", "log.showSignature", "true")
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\n{evil}\n")
    hook.chmod(0o755)
    (repository / ".git" / "info").mkdir(exist_ok=True)
    (repository / ".git" / "info" / "attributes").write_text("* filter=evil\n")
    mark.unlink(missing_ok=True)
    export_tree(Repository.open(repository), fixed, into)
    assert (into / "a").read_bytes() == b"$Format:%H$\n"
    assert (into / "hidden").read_bytes() == b"x\n"
    assert not mark.exists()


def test_a_missing_object_is_not_fetched_by_a_command_of_the_repository(
    repository: Path, into: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    found = commit(repository, {"a": b"x\n"})
    blob = git(repository, "rev-parse", "HEAD:a")
    (repository / ".git/objects" / blob[:2] / blob[2:]).unlink()
    for key, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": "ssh://nowhere.invalid/x",
        "core.sshCommand": f"touch {mark};",
    }.items():
        git(repository, "config", key, value)
    with pytest.raises(GitError):
        export_tree(Repository.open(repository), found, into)
    assert not mark.exists()


def test_user_and_system_settings_do_not_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".gitconfig").write_text("[evil]\n\tkey = 1\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'evil.other'='1'")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert b"evil" not in run_git(["config", "--list"], cwd=tmp_path)


def test_only_the_folder_itself_is_taken_for_a_repository(repository: Path) -> None:
    commit(repository, {"d/a": b"1"})
    with pytest.raises(NotFoundError, match="top folder"):
        Repository.open(repository / "d")
    with pytest.raises(NotFoundError, match="no such folder"):
        Repository.open(repository / "none")


@pytest.mark.parametrize("name", ["none", "--output=x", "0" * 40, "HEAD:a", "", "HEAD\n"])
def test_a_name_that_means_no_commit_is_an_error(repository: Path, name: str) -> None:
    commit(repository, {"a": b"1"})
    with pytest.raises(NotFoundError):
        Repository.open(repository).commit(name)


def test_a_remote_is_cloned_once_and_read_from_the_cache(
    repository: Path, into: Path, tmp_path: Path
) -> None:
    first = commit(repository, {"a": b"1"})
    commit(repository, {"a": b"2"})
    clones = CloneCache(tmp_path / "cache")
    remote = f"file://{repository}"
    clone = clones.repository(remote, first, beside=tmp_path)
    export_tree(clone, first, into)
    assert (into / "a").read_bytes() == b"1"
    repository.rename(tmp_path / "moved")
    assert clones.repository(remote, first, beside=tmp_path) == clone
    with pytest.raises(GitError):
        clones.repository(remote, "0" * 40, beside=tmp_path)


def test_a_clone_of_one_commit_grows_into_the_whole_history(repository: Path, tmp_path: Path) -> None:
    first = commit(repository, {"a": b"1"})
    second = commit(repository, {"a": b"2"})
    clones = CloneCache(tmp_path / "cache")
    clones.repository(f"file://{repository}", second, beside=tmp_path)
    clone = clones.repository(f"file://{repository}", None, beside=tmp_path)
    assert clone.run(["rev-list", second]).decode().split() == [second, first]


@pytest.mark.parametrize("remote", ["ext::sh -c true", "--upload-pack=true", "ssh://-oProxyCommand=true/x"])
def test_a_remote_that_would_run_a_command_is_refused(tmp_path: Path, remote: str) -> None:
    with pytest.raises((GitError, NotFoundError)):
        CloneCache(tmp_path / "cache").repository(remote, "0" * 40, beside=tmp_path)


def test_errors_never_show_credentials() -> None:
    assert (
        without_credentials("fatal: https://me:secret@example.org/r: no")
        == "fatal: https://example.org/r: no"
    )


def task_at(project: Path, remote: str | None, base: str) -> Task:
    return Task(
        "t", "smoke", project / "tasks/t", RemoteSource(remote, base), None, TaskEnvironment(), "p", "p.md",
        TaskVerify("true", b""), b"", None,
    )  # fmt: skip


def test_a_relative_remote_is_beside_the_project_and_the_projects_own_is_the_default(
    repository: Path, into: Path, tmp_path: Path
) -> None:
    base = commit(repository, {"a": b"1"})
    project = tmp_path / "project"
    project.mkdir()
    bases = Bases(tmp_path / "cache", project, default_remote="../repository")
    named, default = task_at(project, "../repository", base), task_at(project, None, base)
    assert bases.key(named) == bases.key(default)
    bases.write(default, into)
    assert bases.digest(named, lambda: into) == tree_digest(into)
    assert bases.digest(default, lambda: pytest.fail("a digest that is known needs no tree")) == tree_digest(
        into
    )
    with pytest.raises(NotFoundError, match="remote"):
        Bases(tmp_path / "cache", project).write(default, into)


def test_what_was_left_out_of_a_base_is_remembered(repository: Path, into: Path, tmp_path: Path) -> None:
    (repository / "up").symlink_to("../secret")
    base = commit(repository, {"a": b"1"})
    task = task_at(tmp_path, "repository", base)
    bases = Bases(tmp_path / "cache", tmp_path)
    assert bases.left_out(task) == ()
    dropped = bases.write(task, into)
    assert [item.path for item in dropped] == ["up"]
    assert Bases(tmp_path / "cache", tmp_path).left_out(task) == dropped


def test_a_folder_is_copied_as_a_commit_would_be(repository: Path, into: Path, tmp_path: Path) -> None:
    (repository / "gone").symlink_to("/etc")
    (repository / "link").symlink_to("a")
    os.mkfifo(repository / "pipe")
    commit(repository, {"a": b"1", "d/b": b"2"})
    copied = tmp_path / "copied"
    copied.mkdir()
    dropped = copy_tree(repository, copied)
    assert {item.path for item in dropped} == {"gone", "pipe"}
    export_tree(Repository.open(repository), "HEAD", into)
    assert tree_digest(copied) == tree_digest(into) == tree_digest(repository)


def test_a_digest_depends_on_paths_modes_and_contents_only(tmp_path: Path) -> None:
    digests = set()
    for number, (path, content, mode) in enumerate(
        [("a", b"1", 0o644), ("b", b"1", 0o644), ("a", b"2", 0o644), ("a", b"1", 0o755), ("a/a", b"1", 0o644)]
    ):
        place = tmp_path / str(number) / path
        place.parent.mkdir(parents=True)
        place.write_bytes(content)
        place.chmod(mode)
        (tmp_path / str(number) / "nothing").mkdir()
        digests.add(tree_digest(tmp_path / str(number)))
    (tmp_path / "same").mkdir()
    (tmp_path / "same" / "a").write_bytes(b"1")
    (tmp_path / "same" / "a").chmod(0o600)
    assert len(digests) == 5
    assert tree_digest(tmp_path / "same") in digests


CACHES = (
    "__pycache__/a.cpython-311.pyc",
    "d/__pycache__/b.pyc",
    "old.pyo",
    ".pytest_cache/v/x",
    ".mypy_cache/y",
)


def test_caches_of_interpreters_change_no_digest_and_reach_no_tree(
    repository: Path, into: Path, tmp_path: Path
) -> None:
    commit(repository, {"a.py": b"1", "d/b.py": b"2", "pyc": b"3", "x.pyc.txt": b"4"})
    clean = tree_digest(repository)
    # As `tree/1` made it before there were caches: a frozen vector.
    assert clean == "524751a490a7723bff8caf766479a9ad38e6c58405494dacd2011047d8399b46"
    commit(repository, dict.fromkeys(CACHES, b"cache"))
    assert tree_digest(repository) == clean
    copied = tmp_path / "copied"
    copied.mkdir()
    copy_tree(repository, copied)
    dropped = export_tree(Repository.open(repository), "HEAD", into)
    for tree in (copied, into):
        assert {path.name for path in tree.rglob("*") if path.is_file()} == {
            "a.py",
            "b.py",
            "pyc",
            "x.pyc.txt",
        }
    assert {(item.path, item.why) for item in dropped} == {
        (path, "an interpreter's cache") for path in CACHES
    }
