"""What counts in a working tree, whoever worked in it."""

import os
import socket
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_pipeline.errors import SandboxError
from bench_pipeline.execution import manifest
from bench_pipeline.execution.manifest import Exclusions, Manifest, Stamp, take_manifest
from bench_pipeline.execution.treewalk import remove


def write(root: Path, path: str, content: str = "x") -> Path:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(content)
    return place


def paths(tree: Path, exclude: Exclusions | None = None) -> list[str]:
    return sorted(take_manifest(tree, exclude).entries)


def why(tree: Path, path: str) -> str:
    return next(item.why for item in take_manifest(tree).dropped if item.path == path)


def test_a_manifest_holds_path_mode_and_content(tmp_path: Path) -> None:
    write(tmp_path, "d/plain").chmod(0o600)
    write(tmp_path, "run").chmod(0o4755)
    os.symlink("d/plain", tmp_path / "link")
    found = take_manifest(tmp_path)
    assert {path: stamp.mode for path, stamp in found.entries.items()} == {
        "d/plain": "100644",
        "run": "100755",
        "link": "120000",
    }
    assert (
        found.entries["d/plain"].digest == "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    )


def test_the_digest_changes_with_path_mode_and_content_and_with_nothing_else(tmp_path: Path) -> None:
    write(tmp_path, "a", "1")
    write(tmp_path, "b", "2")
    before = take_manifest(tmp_path).digest()
    os.utime(tmp_path / "a", (1, 1))
    (tmp_path / "empty").mkdir()
    (tmp_path / "a").chmod(0o640)
    assert take_manifest(tmp_path).digest() == before
    (tmp_path / "a").chmod(0o755)
    changed_mode = take_manifest(tmp_path).digest()
    write(tmp_path, "a", "3").chmod(0o644)
    changed_content = take_manifest(tmp_path).digest()
    (tmp_path / "b").rename(tmp_path / "c")
    changed_path = take_manifest(tmp_path).digest()
    assert len({before, changed_mode, changed_content, changed_path}) == 4


@given(
    st.dictionaries(
        st.text(min_size=1), st.tuples(st.sampled_from(["100644", "100755"]), st.text()), max_size=5
    )
)
def test_the_digest_does_not_depend_on_the_order_of_entries(entries: dict[str, tuple[str, str]]) -> None:
    stamps = {
        path.encode("utf-8", "replace").decode(): Stamp(mode, digest.encode("utf-8", "replace").decode())
        for path, (mode, digest) in entries.items()
    }
    backwards = dict(reversed(stamps.items()))
    assert Manifest(stamps).digest() == Manifest(backwards).digest()


@pytest.mark.parametrize("name", [".git", ".GIT", ".Git", ".git ", "git~1"])
def test_git_folders_are_left_out_wherever_they_are_and_however_they_are_spelt(
    tmp_path: Path, name: str
) -> None:
    write(tmp_path, f"{name}/config")
    write(tmp_path, f"sub/deep/{name}/hooks/post-checkout")
    write(tmp_path, f"other/{name}", "gitdir: elsewhere")
    write(tmp_path, "kept")
    assert paths(tmp_path) == ["kept"]


def test_caches_of_interpreters_are_left_out_even_when_the_base_has_them(tmp_path: Path) -> None:
    for path in (
        "a/__pycache__/m.cpython-311.pyc",
        "m.pyc",
        ".pytest_cache/v/x",
        "web/node_modules/.cache/y",
    ):
        write(tmp_path, path)
    write(tmp_path, "web/node_modules/lib/index.js")
    assert paths(tmp_path, Exclusions(base=tmp_path)) == ["web/node_modules/lib/index.js"]


def test_droppings_of_a_tool_are_left_out(tmp_path: Path) -> None:
    for path in (".aider.chat.history.md", "sub/.aider.tags/cache", "src/aider.py", "notes/out.txt"):
        write(tmp_path, path)
    assert paths(tmp_path, Exclusions((".aider*", "/notes/"))) == ["src/aider.py"]


def test_only_the_ignore_rules_of_the_base_count(tmp_path: Path) -> None:
    base, tree = tmp_path / "base", tmp_path / "tree"
    for root in (base, tree):
        write(root, ".gitignore", "*.log\nbuild/\n!keep.log\n/only-here\n")
        write(root, "sub/.gitignore", "!sub.log\n*.tmp\n")
        write(root, "build/tracked.txt")
    for path in ("a.log", "keep.log", "sub/sub.log", "sub/b.log", "sub/c.tmp", "c.tmp", "build/new.txt"):
        write(tree, path)
    for path in ("only-here", "sub/only-here", "deep/build/x", "secret.py"):
        write(tree, path)
    write(tree, ".gitignore", "secret.py\n")
    assert paths(tree, Exclusions(base=base)) == [
        ".gitignore",
        "build/tracked.txt",
        "c.tmp",
        "keep.log",
        "secret.py",
        "sub/.gitignore",
        "sub/only-here",
        "sub/sub.log",
    ]


def test_a_pattern_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "base", ".gitignore", "!\n*.log\n")
    write(tmp_path / "tree", "a.log")
    write(tmp_path / "tree", "b")
    assert paths(tmp_path / "tree", Exclusions(base=tmp_path / "base")) == ["b"]


def test_links_are_entries_and_are_not_followed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    write(tmp_path, "outside/secret")
    write(tree, "d/f")
    os.symlink("d", tree / "inside")
    os.symlink("../outside", tree / "leaving")
    os.symlink("/etc/passwd", tree / "absolute")
    os.symlink("loop", tree / "loop")
    found = take_manifest(tree)
    assert sorted(found.entries) == ["d/f", "inside", "loop"]
    assert sorted(item.path for item in found.dropped) == ["absolute", "leaving"]


def test_pipes_and_sockets_are_noted_and_hold_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        found = take_manifest(tmp_path)
    assert found.entries == {}
    assert {item.path: item.why for item in found.dropped} == {
        "pipe": "neither a file nor a link",
        "socket": "neither a file nor a link",
    }


def test_what_its_owner_made_unreadable_is_read(tmp_path: Path) -> None:
    write(tmp_path, "closed/file").chmod(0)
    (tmp_path / "closed").chmod(0)
    found = take_manifest(tmp_path)
    assert found.entries["closed/file"].mode == "100644"
    assert not found.dropped


def test_a_huge_file_is_noted_and_not_read(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    assert paths(tmp_path) == []
    assert "larger than 64 MiB" in why(tmp_path, "sparse")


def test_folders_too_deep_for_any_repository_are_noted_and_can_be_removed(tmp_path: Path) -> None:
    top = os.open(tmp_path, os.O_RDONLY)
    above = os.dup(top)
    for _ in range(1100):
        os.mkdir("d" * 100, dir_fd=above)
        below = os.open("d" * 100, os.O_RDONLY, dir_fd=above)
        os.close(above)
        above = below
    os.close(above)
    found = take_manifest(tmp_path)
    assert found.entries == {}
    assert len(found.dropped) == 1
    assert "too deep" in found.dropped[0].why
    remove(top, "d" * 100)
    os.close(top)
    assert not list(tmp_path.iterdir())


def test_a_name_that_is_not_utf_8_is_a_path_like_any_other(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff\xfe")).write_text("x")
    (found,) = take_manifest(tmp_path).entries
    assert os.fsencode(found) == b"\xff\xfe"


def test_a_path_with_a_backslash_to_git_is_noted(tmp_path: Path) -> None:
    write(tmp_path, "a\\.git\\config")
    assert paths(tmp_path) == []


def test_a_tree_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path, "elsewhere/secret")
    os.symlink("elsewhere", tmp_path / "tree")
    with pytest.raises(SandboxError, match="reading the working tree"):
        take_manifest(tmp_path / "tree")


def test_nothing_in_git_folders_is_read(tmp_path: Path) -> None:
    """A hook, a monitor or a filter that an agent sets in its tree must have nobody who looks at it."""
    write(tmp_path, ".git/config", "[core]\nfsmonitor = touch ran\n")
    (tmp_path / ".git").chmod(0)
    write(tmp_path, ".gitattributes", "* filter=evil\n")
    assert paths(tmp_path) == [".gitattributes"]
    assert not (tmp_path / "ran").exists()
    (tmp_path / ".git").chmod(0o700)


def test_files_that_nobody_touched_are_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        write(tmp_path, name)
    monkeypatch.setattr(manifest, "honest_times", lambda _: True)
    settle()
    known = take_manifest(tmp_path)
    write(tmp_path, "b", "y")
    os.utime(tmp_path / "b", ns=(known.times["b"].mtime, known.times["b"].mtime))
    (tmp_path / "c").chmod(0o755)
    read: list[int] = []
    digest = manifest.file_digest
    monkeypatch.setattr(manifest, "file_digest", lambda file: read.append(file) or digest(file))
    assert take_manifest(tmp_path, known=known) == take_manifest(tmp_path)
    assert len(read) == 2 + 3


def test_where_file_times_can_lie_every_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a")
    settle()
    known = take_manifest(tmp_path)
    forged = Manifest({"a": Stamp("100644", "0" * 64)}, times=known.times)
    monkeypatch.setattr(manifest, "honest_times", lambda _: False)
    assert take_manifest(tmp_path, known=forged) == known


def settle() -> None:
    """Wait until the clock of file times is past the newest time that a file can have by now."""
    newest = time.time_ns()
    while time.clock_gettime_ns(5) <= newest:
        time.sleep(0.001)


@settings(max_examples=50)
@given(changes=st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["1", "2", "33"])), max_size=6))
def test_a_manifest_taken_with_an_older_one_is_the_same_as_without(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, str]]
) -> None:
    tree = tmp_path_factory.mktemp("tree")
    for name in "abc":
        write(tree, name, "1")
    known = take_manifest(tree)
    for name, content in changes:
        write(tree, name, content)
    assert take_manifest(tree, known=known) == take_manifest(tree)
