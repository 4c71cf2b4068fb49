"""Patches are applied exactly, or refused without a byte written."""

import base64
import contextlib
import hashlib
import os
import subprocess
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_pipeline.tasks import patches
from bench_pipeline.tasks.patches import PatchError, apply_patch, patched_files, read_patch
from bench_pipeline.tasks.paths import link_problem, path_problem
from bench_pipeline.tasks.trees import copy_tree, read_file, tree_digest

AUTHOR = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(where: Path, *words: str) -> bytes:
    return subprocess.run(
        ["git", *words], cwd=where, env={**os.environ, **AUTHOR}, check=True, capture_output=True
    ).stdout


def put(root: Path, path: str, content: bytes, mode: int = 0o644) -> None:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    place.chmod(mode)


def diff_of(before: Path, after: Path, scratch: Path) -> bytes:
    """The Git-format patch between two folders, made by Git itself."""
    repository = scratch / "repository"
    repository.mkdir(parents=True)
    git(repository, "init", "-q")
    git(repository, "config", "core.autocrlf", "false")
    for state in (before, after):
        for entry in repository.iterdir():
            if entry.name != ".git":
                subprocess.run(["rm", "-rf", "--", entry], check=True)
        copy_tree(state, repository)
        git(repository, "add", "-A", "-f", ".")
        git(repository, "commit", "-q", "--allow-empty", "-m", "state")
    return git(repository, "diff", "--binary", "--full-index", "-M", "HEAD~1", "HEAD")


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    after.mkdir()
    return before, after


def check_round_trip(before: Path, after: Path, scratch: Path) -> None:
    patch = diff_of(before, after, scratch)
    apply_patch(before, patch)
    assert tree_digest(before) == tree_digest(after)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(b"a\r\nb\r\n", b"a\r\nc\r\n", id="CRLF"),
        pytest.param(b"a\r\nb\n", b"a\nb\r\n", id="mixed line ends"),
        pytest.param(b"a\nb", b"a\nb\n", id="line end added at the end"),
        pytest.param(b"a\nb\n", b"a\nc", id="no line end at the end"),
        pytest.param(bytes(range(256)) * 9, bytes(reversed(range(256))) * 9, id="binary"),
        pytest.param(b"", b"x", id="from empty"),
        pytest.param(b"x\n", b"", id="to empty"),
        pytest.param(b"a  \n\tb \n", b"a  \n\tb \n\n\n", id="white space errors"),
        pytest.param(b"-- a\n++ b\n", b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n", id="lines that look like headers"),
        pytest.param(
            "ä\u2028b\u0085\n".encode(), "ö\u2028b\u0085\x0c\n".encode(), id="unusual line separators"
        ),
    ],
)
def test_content_is_applied_exactly(
    folders: tuple[Path, Path], tmp_path: Path, old: bytes, new: bytes
) -> None:
    before, after = folders
    put(before, "f", old)
    put(after, "f", new)
    check_round_trip(before, after, tmp_path / "scratch")


@pytest.mark.parametrize(
    "name", ["-rf", "a b", "a\tb", "a\nb", 'q"uote', "back\\slash", "é", "e\u0301", "--- a"]
)
def test_unusual_names_are_applied_exactly(folders: tuple[Path, Path], tmp_path: Path, name: str) -> None:
    before, after = folders
    put(before, f"d/{name}", b"1\n")
    put(after, f"d/{name}", b"2\n")
    put(after, name, b"new\n")
    check_round_trip(before, after, tmp_path / "scratch")


def test_a_name_that_is_not_utf8_is_applied_exactly(folders: tuple[Path, Path], tmp_path: Path) -> None:
    before, after = folders
    put(after, os.fsdecode(b"caf\xe9"), b"x\n")
    check_round_trip(before, after, tmp_path / "scratch")


def test_renames_modes_deletions_and_links_are_applied_exactly(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    before, after = folders
    body = b"".join(b"line %d\n" % n for n in range(40))
    put(before, "old.py", body)
    put(after, "pkg/new.py", body + b"more\n", 0o755)
    put(before, "run.sh", b"#!/bin/sh\n")
    put(after, "run.sh", b"#!/bin/sh\n", 0o755)
    put(before, "gone/deep/file", b"x\n")
    put(after, "empty", b"")
    (after / "link").symlink_to("pkg/new.py")
    (before / "was_link").symlink_to("old.py")
    put(after, "was_link", b"now a file\n")
    check_round_trip(before, after, tmp_path / "scratch")
    assert not (before / "gone").exists()


def test_a_folder_becomes_a_file_and_a_file_a_folder(folders: tuple[Path, Path], tmp_path: Path) -> None:
    before, after = folders
    put(before, "a/x", b"1\n")
    put(before, "b", b"2\n")
    put(after, "a", b"3\n")
    put(after, "b/y", b"4\n")
    check_round_trip(before, after, tmp_path / "scratch")


def test_a_plain_unified_diff_without_git_headers_works(tmp_path: Path) -> None:
    put(tmp_path, "m/a.py", b"one\ntwo\n")
    patch = (
        b"Some words.\n--- a/m/a.py\t2024-01-01 00:00:00\n+++ b/m/a.py\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
        b"--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+fresh\n"
    )
    result = apply_patch(tmp_path, patch)
    assert [file.path for file in result.written] == ["m/a.py", "new.py"]
    assert (tmp_path / "m/a.py").read_bytes() == b"one\n2\n"
    assert (tmp_path / "new.py").read_bytes() == b"fresh\n"


def test_a_patch_whose_last_line_end_was_cut_off_applies(tmp_path: Path) -> None:
    put(tmp_path, "a", b"one\n")
    apply_patch(tmp_path, b"--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+two")
    assert (tmp_path / "a").read_bytes() == b"two\n"


@pytest.mark.parametrize("patch", [b"", b"\n", b" \n\n"])
def test_an_empty_patch_changes_nothing(tmp_path: Path, patch: bytes) -> None:
    put(tmp_path, "a", b"one\n")
    result = apply_patch(tmp_path, patch)
    assert (result.written, result.deleted) == ((), ())


def test_patched_files_leaves_the_folder_alone(tmp_path: Path) -> None:
    put(tmp_path, "a", b"one\n")
    before = tree_digest(tmp_path)
    result = patched_files(tmp_path, b"--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+two\n")
    assert result.written[0].content == b"two\n"
    assert tree_digest(tmp_path) == before


def new_file(path: str, content: str = "x", mode: str = "100644") -> bytes:
    text = f"diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n"
    return f"{text}+{content}\n\\ No newline at end of file\n".encode()


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param(b"this is no patch\n", id="prose"),
        pytest.param(b"--- a/a\n+++ b/a\n@@ -1 +1 @@\n-other\n+two\n", id="does not match"),
        pytest.param(b"--- a/a\n+++ b/a\n@@ -1,9 +1,9 @@\n-one\n+two\n", id="cut off"),
        pytest.param(b"--- a/none\n+++ b/none\n@@ -1 +1 @@\n-one\n+two\n", id="no such file"),
        pytest.param(new_file("a"), id="a new file that is there"),
        pytest.param(new_file("d"), id="a folder is there"),
        pytest.param(new_file("a/b"), id="below a file"),
        pytest.param(new_file("../out"), id="above"),
        pytest.param(new_file("x/../../out"), id="above by a detour"),
        pytest.param(b"--- /dev/null\n+++ b//etc/out\n@@ -0,0 +1 @@\n+x\n", id="absolute"),
        pytest.param(new_file(".git/hooks/pre-commit"), id=".git"),
        pytest.param(new_file("sub/.GIT/config"), id=".GIT"),
        pytest.param(new_file("git~1/config"), id="git~1"),
        pytest.param(new_file(".git./config"), id="trailing dot"),
        pytest.param(new_file(".g\u200cit/config"), id="ignored code point"),
        pytest.param(new_file("l", "/etc/passwd", "120000"), id="absolute link"),
        pytest.param(new_file("l", "../out", "120000"), id="leaving link"),
        pytest.param(new_file("m", "0" * 40, "160000"), id="submodule"),
        pytest.param(new_file("outside/x"), id="through a link of the tree"),
        pytest.param(new_file("inside/x"), id="through a link inside the tree"),
        pytest.param(new_file("k", "d", "120000") + new_file("k/x"), id="through a link of the patch"),
    ],
)
def test_a_patch_that_does_not_fit_or_would_leave_the_tree_writes_nothing(
    tmp_path: Path, patch: bytes
) -> None:
    tree, out = tmp_path / "tree", tmp_path / "out"
    out.mkdir()
    put(tree, "a", b"one\n")
    put(tree, "d/file", b"x\n")
    (tree / "outside").symlink_to(out)
    (tree / "inside").symlink_to("d")
    before = tree_digest(tree)
    with pytest.raises(PatchError):
        apply_patch(tree, patch)
    assert tree_digest(tree) == before
    assert list(out.iterdir()) == []
    assert not (tree / ".git").exists()


def bomb(size: int) -> bytes:
    """A small binary patch that claims, or holds, ``size`` bytes."""
    packed = zlib.compress(bytes(size), 9)
    lines = [packed[at : at + 52] for at in range(0, len(packed), 52)]
    marks = [chr(n + 64) if n <= 26 else chr(n + 70) for n in map(len, lines)]
    body = "".join(
        f"{mark}{base64.b85encode(line, pad=True).decode()}\n"
        for mark, line in zip(marks, lines, strict=True)
    )
    name = hashlib.sha1(b"blob %d\0" % size + bytes(size)).hexdigest()
    head = f"diff --git a/z b/z\nnew file mode 100644\nindex {'0' * 40}..{name}\nGIT binary patch\n"
    return f"{head}literal {size}\n{body}\nliteral 0\nHcmV?d00001\n\n".encode()


def test_a_patch_that_claims_or_grows_to_an_enormous_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patches, "MAX_RESULT_BYTES", 100_000)
    small = bomb(10_000)
    assert patched_files(tmp_path, small).written[0].content == bytes(10_000)
    for patch in (small.replace(b"literal 10000\n", b"literal 99999999999\n"), bomb(100_001)):
        with pytest.raises(PatchError):
            patched_files(tmp_path, patch)


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param(b"diff --git " + b" " * 1_000_000, id="a header of spaces"),
        pytest.param(
            b"--- a/a\n+++ b/a\n@@ -1," + b"9" * 5000 + b" +1 @@\n+x\n", id="a count of 5000 digits"
        ),
        pytest.param(
            b"--- a/" + b"x" * 300 + b"\n+++ b/" + b"x" * 300 + b"\n@@ -1 +1 @@\n-1\n+2\n", id="a long name"
        ),
        pytest.param(
            b"diff --git a/a b/a\nold mode 100644\nnew mode 160000\n", id="a file that becomes a submodule"
        ),
        pytest.param(b'--- "a/\\777\\' + b'"\n+++ "b/\\\n@@ -1 +1 @@\n-1\n+2\n', id="broken quotes"),
    ],
)
def test_a_patch_made_to_trip_the_reader_is_refused(tmp_path: Path, patch: bytes) -> None:
    put(tmp_path, "a", b"1\n")
    with pytest.raises(PatchError):
        apply_patch(tmp_path, patch)
    assert (tmp_path / "a").read_bytes() == b"1\n"


def test_a_link_of_the_tree_may_be_replaced_by_a_folder(tmp_path: Path) -> None:
    put(tmp_path, "d/file", b"x\n")
    (tmp_path / "l").symlink_to("d")
    removal = b"diff --git a/l b/l\ndeleted file mode 120000\n--- a/l\n+++ /dev/null\n@@ -1 +0,0 @@\n-d\n"
    apply_patch(tmp_path, removal + b"\\ No newline at end of file\n" + new_file("l/y"))
    assert (tmp_path / "l/y").read_bytes() == b"x"
    assert not (tmp_path / "d/y").exists()


def test_attributes_filters_and_hooks_of_the_tree_do_not_apply(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    mark = tmp_path / "mark"
    put(tree, ".gitattributes", b"* text eol=crlf filter=evil ident working-tree-encoding=UTF-16\n")
    put(tree, "a", b"$Id$\none\n")
    git(tree, "init", "-q")
    git(tree, "config", "filter.evil.smudge", f"touch {mark}")
    git(tree, "config", "filter.evil.clean", f"touch {mark}")
    git(tree, "config", "core.fsmonitor", f"touch {mark}")
    apply_patch(tree, b"--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n $Id$\n-one\n+two\n")
    assert (tree / "a").read_bytes() == b"$Id$\ntwo\n"
    assert not mark.exists()


def test_a_reader_of_patches_names_files_modes_and_added_lines(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    before, after = folders
    body = b"".join(b"line %d\n" % n for n in range(40))
    put(before, "old name", body)
    put(after, "new name", body + b"-- tail\n")
    put(before, "gone", b"1\n2\n")
    put(after, "é.bin", bytes(range(256)))
    put(before, "m", b"m\n")
    put(after, "m", b"m\n", 0o755)
    parts = read_patch(diff_of(before, after, tmp_path / "scratch"))
    found = {(part.old, part.new): part for part in parts}
    assert set(found) == {("old name", "new name"), ("gone", None), (None, "é.bin"), ("m", "m")}
    assert found["old name", "new name"].added == (b"-- tail",)
    assert found["gone", None].removed == 2
    assert found[None, "é.bin"].binary
    assert (found["m", "m"].old_mode, found["m", "m"].new_mode) == ("100644", "100755")


def test_sections_of_a_patch_joined_again_apply_as_the_whole(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    before, after = folders
    for name in ("x", "y", "z"):
        put(before, name, b"1\n")
        put(after, name, bytes(range(256)) if name == "y" else b"2")
    patch = diff_of(before, after, tmp_path / "scratch")
    assert b"".join(part.section for part in read_patch(patch)) == patch


NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=8)
PIECES = st.one_of(st.sampled_from(["..", ".", ".git", ".GIT", "git~1", "a", "b", "-rf", ""]), NAMES)


@given(st.lists(PIECES, min_size=1, max_size=6), st.booleans())
def test_a_path_that_is_allowed_stays_inside(parts: list[str], absolute: bool) -> None:
    path = ("/" if absolute else "") + "/".join(parts)
    if path_problem(path) is None:
        assert os.path.normpath(path) == path
        assert not path.startswith(("/", "../"))
        assert not {".git", "git~1"} & {part.lower() for part in path.split("/")}


@given(
    st.lists(st.tuples(st.lists(PIECES, min_size=1, max_size=4), st.lists(PIECES, max_size=5)), max_size=5)
)
@settings(deadline=None)
def test_links_that_are_allowed_one_by_one_stay_inside_together(
    tmp_path_factory: pytest.TempPathFactory, links: list[tuple[list[str], list[str]]]
) -> None:
    outer = tmp_path_factory.mktemp("links").resolve()
    root = outer / "root"
    root.mkdir()
    made = []
    for parts, steps in links:
        path, target = "/".join(parts), "/".join(steps)
        if path_problem(path) is None and link_problem(path, target) is None:
            place = root / path
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(target)
            except OSError:
                continue
            made.append(place)
    for place in made:
        real = Path(os.path.realpath(place.parent)) / os.readlink(place)
        assert Path(os.path.realpath(real)).is_relative_to(root)


@given(st.binary(max_size=200), st.binary(max_size=200))
@settings(deadline=None, max_examples=60)
def test_any_text_is_read_as_a_patch_or_refused(start: bytes, end: bytes) -> None:
    for patch in (
        start,
        b"diff --git " + start + b"\n" + end,
        b"--- a/" + start + b"\n+++ b/" + end + b"\n@@ -1 +1 @@",
    ):
        try:
            read_patch(patch)
        except PatchError:
            continue


@given(st.lists(PIECES, min_size=1, max_size=5), st.lists(PIECES, max_size=4), st.booleans())
@settings(deadline=None, max_examples=60)
def test_no_patch_writes_outside_the_tree(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], target: list[str], link: bool
) -> None:
    outer = tmp_path_factory.mktemp("outer")
    tree = outer / "tree"
    tree.mkdir()
    put(tree, "d/file", b"x\n")
    content = "/".join(target).replace("\n", "") or "d"
    patch = new_file("/".join(parts), content, "120000" if link else "100644")
    with contextlib.suppress(PatchError):
        apply_patch(tree, patch)
    assert sorted(entry.name for entry in outer.iterdir()) == ["tree"]
    assert not (tree / ".git").exists()
    assert read_file(tree, "d/file") is not None


def one_line(path: str) -> bytes:
    name = path.encode()
    return b"diff --git a/%s b/%s\nnew file mode 100644\n--- /dev/null\n+++ b/%s\n@@ -0,0 +1 @@\n+x\n" % (
        (name,) * 3
    )


@pytest.mark.parametrize("first", [True, False])
def test_a_damaged_binary_section_refuses_the_whole_patch(tmp_path: Path, first: bool) -> None:
    """Git prints an error, leaves that section and all later ones out, and exits 0."""
    damaged = b"diff --git a/b.bin b/b.bin\nnew file mode 100644\nindex " + b"0" * 40 + b".." + b"1" * 40
    damaged += b"\nGIT binary patch\nliteral 5\nzcmZ\n\n"
    parts = [one_line("n1"), damaged, one_line("n2")] if first else [damaged, one_line("n1")]
    with pytest.raises(PatchError, match=r"file sections can be read|corrupt"):
        apply_patch(tmp_path, b"".join(parts))
    assert list(tmp_path.iterdir()) == []


def test_an_added_line_that_no_hunk_counts_is_refused_and_shown(tmp_path: Path) -> None:
    """Written by hand into a hidden test, it would be left out without a word."""
    with pytest.raises(PatchError, match="def test_more"):
        apply_patch(tmp_path, one_line("n1") + b"+def test_more(): assert False\n")


def test_a_path_deeper_than_any_tree_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PatchError, match="too deep"):
        apply_patch(tmp_path, one_line("a/" * 900 + "x"))
