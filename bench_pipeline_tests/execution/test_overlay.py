"""Candidates: captured from a hostile tree, kept as bytes, put over another copy of the base."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_pipeline.errors import RefusedError, SandboxError, StoreError
from bench_pipeline.execution import overlay as overlay_module
from bench_pipeline.execution import rendering
from bench_pipeline.execution.manifest import Exclusions, take_manifest
from bench_pipeline.execution.overlay import (
    Overlay,
    capture,
    files_of_patch,
    overlay_from_patch,
    patch_stats,
    render_patch,
)
from bench_pipeline.tasks.patches import PatchError
from bench_pipeline.tasks.trees import Dropped, TreeFile

GIT = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
PLAIN, EXECUTABLE, LINK = "100644", "100755", "120000"


class Trees:
    """A base, a working copy with its baseline, and a second copy to apply candidates to."""

    def __init__(self, root: Path, files: dict[str, bytes]) -> None:
        self.base, self.tree, self.fresh = (root / name for name in ("base", "tree", "fresh"))
        for path, content in files.items():
            place = self.base / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        self.base.mkdir(exist_ok=True)
        shutil.copytree(self.base, self.tree, symlinks=True)
        shutil.copytree(self.base, self.fresh, symlinks=True)
        self.exclude = Exclusions(base=self.base)
        self.before = take_manifest(self.tree, self.exclude)

    def captured(self) -> Overlay:
        return capture(self.tree, self.before, self.exclude)

    def assert_exact(self) -> Overlay:
        """What is captured makes of a fresh copy what the tree is, as bytes and as a patch."""
        candidate = self.captured()
        Overlay.decode(candidate.encode()).apply(self.fresh)
        assert take_manifest(self.fresh, self.exclude) == take_manifest(self.tree, self.exclude)
        again = overlay_from_patch(self.base, render_patch(self.base, candidate))
        assert (again.entries, again.deletions) == (candidate.entries, candidate.deletions)
        return candidate


@pytest.fixture
def trees(tmp_path: Path) -> Trees:
    files = {
        "a.txt": b"one\ntwo\n",
        "d/x.py": b"x = 1\n",
        "d/y.py": b"y = 1\n",
        "bin": b"\0\1\2",
        "run": b"#!/bin/sh\n",
    }
    return Trees(tmp_path, files)


def test_an_untouched_tree_is_an_empty_candidate(trees: Trees) -> None:
    candidate = trees.captured()
    assert candidate == Overlay()
    assert candidate.empty
    assert render_patch(trees.base, candidate) == b""


def test_touching_times_and_writing_what_was_there_changes_nothing(trees: Trees) -> None:
    (trees.tree / "a.txt").write_bytes(b"one\ntwo\n")
    os.utime(trees.tree / "bin", (1, 1))
    (trees.tree / "empty").mkdir()
    assert trees.captured().empty


@pytest.mark.parametrize(
    "content",
    [
        b"one\r\ntwo\r\n",
        b"no newline at the end",
        b"",
        b"\0binary\xff",
        b"\xef\xbb\xbfbom\n",
        b"a\rb\x0cc\n",
        b"\n\n\n",
    ],
)
def test_any_content_is_kept_exactly(trees: Trees, content: bytes) -> None:
    (trees.tree / "a.txt").write_bytes(content)
    (trees.tree / "new" / "deep").mkdir(parents=True)
    (trees.tree / "new" / "deep" / "file").write_bytes(content)
    candidate = trees.assert_exact()
    assert candidate.touched_paths() == ("a.txt", "new/deep/file")


@pytest.mark.parametrize(
    "name",
    [
        "-rf",
        "--help",
        " lead",
        "tail ",
        'quo"te',
        "back\\slash",
        "tab\tname",
        "new\nline",
        "ünïcode",
        "*",
        "$(x)",
    ],
)
def test_any_name_is_kept_exactly(trees: Trees, name: str) -> None:
    (trees.tree / name).write_text("x\n")
    assert trees.assert_exact().touched_paths() == (name,)


def test_a_name_that_is_not_utf_8_is_kept_exactly(trees: Trees) -> None:
    name = os.fsdecode(b"caf\xe9-\xff")
    (trees.tree / name).write_text("x\n")
    assert trees.assert_exact().touched_paths() == (name,)


def test_a_rename_is_a_deletion_and_a_file(trees: Trees) -> None:
    (trees.tree / "d" / "x.py").rename(trees.tree / "d" / "z.py")
    candidate = trees.assert_exact()
    assert candidate.deletions == ("d/x.py",)
    assert [entry.path for entry in candidate.entries] == ["d/z.py"]
    assert b"rename from d/x.py\nrename to d/z.py" in render_patch(trees.base, candidate)


def test_a_change_of_mode_alone_is_a_change(trees: Trees) -> None:
    (trees.tree / "run").chmod(0o755)
    candidate = trees.assert_exact()
    assert candidate.entries == (TreeFile("run", EXECUTABLE, b"#!/bin/sh\n"),)
    assert stat.S_IMODE((trees.fresh / "run").stat().st_mode) == 0o755


def test_set_id_bits_do_not_survive(trees: Trees) -> None:
    (trees.tree / "run").write_text("#!/bin/sh\nid\n")
    (trees.tree / "run").chmod(0o6777)
    trees.captured().apply(trees.fresh)
    assert stat.S_IMODE((trees.fresh / "run").stat().st_mode) == 0o755


def test_a_folder_replaced_by_a_file_and_a_file_by_a_folder(trees: Trees) -> None:
    shutil.rmtree(trees.tree / "d")
    (trees.tree / "d").write_text("now a file\n")
    (trees.tree / "a.txt").unlink()
    (trees.tree / "a.txt").mkdir()
    (trees.tree / "a.txt" / "inner").write_text("x")
    candidate = trees.captured()
    candidate.apply(trees.fresh)
    assert take_manifest(trees.fresh) == take_manifest(trees.tree)


def test_a_link_that_stays_inside_is_kept_as_a_link(trees: Trees) -> None:
    os.symlink("d/x.py", trees.tree / "link")
    candidate = trees.assert_exact()
    assert candidate.entries == (TreeFile("link", LINK, b"d/x.py"),)
    assert (trees.fresh / "link").is_symlink()


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "../outside", "d/../../outside", "", "../../../../../../etc"]
)
def test_a_file_replaced_by_a_link_that_leaves_the_tree_is_noted_and_never_followed(
    trees: Trees, tmp_path: Path, target: str
) -> None:
    (tmp_path / "outside").write_text("secret")
    (trees.tree / "a.txt").unlink()
    if target:
        os.symlink(target, trees.tree / "a.txt")
    candidate = trees.captured()
    assert candidate.deletions == ("a.txt",)
    assert candidate.entries == ()
    assert [item.path for item in candidate.dropped] == (["a.txt"] if target else [])
    assert b"secret" not in candidate.encode()


def test_a_folder_replaced_by_a_link_is_a_link_and_deletions(trees: Trees) -> None:
    shutil.rmtree(trees.tree / "d")
    (trees.tree / "e").mkdir()
    (trees.tree / "e" / "x.py").write_text("new\n")
    os.symlink("e", trees.tree / "d")
    candidate = trees.captured()
    assert candidate.deletions == ("d/x.py", "d/y.py")
    candidate.apply(trees.fresh)
    assert os.readlink(trees.fresh / "d") == "e"
    assert take_manifest(trees.fresh) == take_manifest(trees.tree)


def test_a_nested_repository_leaves_only_its_plain_files(trees: Trees) -> None:
    nested = trees.tree / "vendor" / "lib"
    nested.mkdir(parents=True)
    for argv in (["init", "-q"], ["config", "core.fsmonitor", "touch /tmp/never"]):
        subprocess.run(["git", *argv], cwd=nested, check=True, env=GIT)
    (nested / "code.py").write_text("x\n")
    assert trees.assert_exact().touched_paths() == ("vendor/lib/code.py",)


def test_pipes_and_unkept_files_are_noted(trees: Trees, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(trees.tree / "pipe")
    monkeypatch.setattr(overlay_module, "MAX_TOTAL_BYTES", 10)
    (trees.tree / "big").write_bytes(bytes(11))
    (trees.tree / "small").write_bytes(bytes(3))
    candidate = trees.captured()
    assert candidate.dropped == (
        Dropped("big", "more than a candidate may hold"),
        Dropped("pipe", "neither a file nor a link"),
    )
    assert [entry.path for entry in candidate.entries] == ["small"]


def test_a_file_grown_beyond_all_bounds_is_noted_and_not_taken_for_removed(trees: Trees) -> None:
    with (trees.tree / "a.txt").open("r+b") as file:
        file.truncate(1 << 40)
    candidate = trees.captured()
    assert candidate.empty
    assert [item.path for item in candidate.dropped] == ["a.txt"]


def test_what_the_base_could_not_hold_either_is_not_noted_again(tmp_path: Path) -> None:
    trees = Trees(tmp_path, {"a": b"x"})
    os.mkfifo(trees.tree / "pipe")
    before = take_manifest(trees.tree)
    assert capture(trees.tree, before).dropped == ()


@pytest.mark.parametrize("make", ["link to a folder", "link to a file", "pipe", "folder"])
def test_applying_writes_through_nothing_that_is_in_the_way(trees: Trees, tmp_path: Path, make: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.py").write_text("untouched")
    candidate = Overlay((TreeFile("d/x.py", PLAIN, b"new\n"), TreeFile("d/sub/z", PLAIN, b"z")), ("d/y.py",))
    place = trees.fresh / "d"
    if make == "folder":
        (place / "x.py").unlink()
        (place / "x.py" / "deep").mkdir(parents=True)
        (place / "x.py" / "deep" / "f").write_text("")
    else:
        shutil.rmtree(place)
        {
            "link to a folder": lambda: os.symlink(outside, place),
            "link to a file": lambda: os.symlink(outside / "x.py", place),
            "pipe": lambda: os.mkfifo(place),
        }[make]()
    candidate.apply(trees.fresh)
    assert (trees.fresh / "d" / "x.py").read_text() == "new\n"
    assert (trees.fresh / "d" / "sub" / "z").read_text() == "z"
    assert (outside / "x.py").read_text() == "untouched"
    assert sorted(os.listdir(outside)) == ["x.py"]


def test_removing_leaves_no_empty_folder_and_no_other_file_behind(trees: Trees) -> None:
    (trees.fresh / "d" / "ignored.log").write_text("from setup")
    Overlay((), ("d/x.py", "d/y.py", "a.txt")).apply(trees.fresh)
    assert sorted(os.listdir(trees.fresh / "d")) == ["ignored.log"]
    Overlay((), ("d/ignored.log",)).apply(trees.fresh)
    assert sorted(os.listdir(trees.fresh)) == ["bin", "run"]


def test_removing_what_is_not_there_is_no_error(trees: Trees) -> None:
    Overlay((), ("never/was", "a.txt/neither", "d/none")).apply(trees.fresh)
    assert take_manifest(trees.fresh) == take_manifest(trees.tree)


def test_removing_never_follows_a_link_out_of_the_tree(trees: Trees, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "victim").write_text("untouched")
    os.symlink(outside, trees.fresh / "out")
    Overlay((), ("out/victim",)).apply(trees.fresh)
    assert (outside / "victim").read_text() == "untouched"


@pytest.mark.parametrize(
    "path", ["../evil", "/etc/evil", "a/../../evil", ".git/hooks/post-checkout", "a//b", "", "x/.GIT/y"]
)
def test_a_path_that_leads_out_is_refused_when_read_and_when_applied(trees: Trees, path: str) -> None:
    evil = Overlay((TreeFile(path, PLAIN, b"x"),))
    with pytest.raises(SandboxError):
        evil.apply(trees.fresh)
    with pytest.raises(StoreError, match="damaged"):
        Overlay.decode(evil.encode())
    with pytest.raises(SandboxError):
        Overlay((), (path,)).apply(trees.fresh)
    with pytest.raises(StoreError, match="damaged"):
        Overlay.decode(Overlay((), (path,)).encode())


def test_a_stored_link_that_leaves_the_tree_is_refused() -> None:
    with pytest.raises(StoreError, match="absolute"):
        Overlay.decode(Overlay((TreeFile("l", LINK, b"/etc/passwd"),)).encode())


def test_bytes_that_are_cut_longer_or_something_else_are_refused() -> None:
    whole = Overlay((TreeFile("a", PLAIN, b"content"),), ("b",)).encode()
    for damaged in (
        b"",
        whole[:-1],
        whole + b"x",
        b"other" + whole,
        whole[:20],
        whole.replace(b"100644", b"100645"),
    ):
        with pytest.raises(StoreError, match="damaged"):
            Overlay.decode(damaged)
    twice = Overlay((TreeFile("a", PLAIN, b""),), ("a",)).encode()
    with pytest.raises(StoreError, match="twice"):
        Overlay.decode(twice)


names = st.sampled_from(["a", "b", "c d", "ü", "-x", os.fsdecode(b"\xff")])
some_paths = st.lists(names, min_size=1, max_size=3).map("/".join)
contents = st.one_of(
    st.binary(max_size=40),
    st.lists(st.sampled_from(["a", "b", "c\r"]), max_size=6).map(lambda lines: "\n".join(lines).encode()),
)
some_files = st.dictionaries(some_paths, st.tuples(contents, st.booleans()), max_size=6)


def fill(root: Path, files: dict[str, tuple[bytes, bool]]) -> None:
    root.mkdir(parents=True)
    for path, (content, executable) in files.items():
        place = root / path
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        except OSError:
            continue  # a folder and a file cannot share a path
        place.chmod(0o755 if executable else 0o644)


@settings(max_examples=40, deadline=None)
@given(old=some_files, new=some_files)
def test_a_candidate_its_bytes_and_its_patch_all_make_the_same_tree(
    tmp_path_factory: pytest.TempPathFactory,
    old: dict[str, tuple[bytes, bool]],
    new: dict[str, tuple[bytes, bool]],
) -> None:
    root = tmp_path_factory.mktemp("trees")
    fill(root / "base", old)
    fill(root / "tree", new)
    candidate = capture(root / "tree", take_manifest(root / "base"))
    assert Overlay.decode(candidate.encode()) == candidate
    assert Overlay.decode(candidate.encode()).encode() == candidate.encode()
    shutil.copytree(root / "base", root / "fresh")
    candidate.apply(root / "fresh")
    assert take_manifest(root / "fresh") == take_manifest(root / "tree")
    again = overlay_from_patch(root / "base", render_patch(root / "base", candidate))
    assert again == candidate


def test_a_patch_gives_the_files_that_it_makes(trees: Trees) -> None:
    patch = b"""diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,2 @@
 one
-two
+three
diff --git a/d/y.py b/d/y.py
deleted file mode 100644
--- a/d/y.py
+++ /dev/null
@@ -1 +0,0 @@
-y = 1
diff --git a/tests/test_new.py b/tests/test_new.py
new file mode 100644
--- /dev/null
+++ b/tests/test_new.py
@@ -0,0 +1 @@
+assert True
"""
    made = overlay_from_patch(trees.base, patch)
    assert made == files_of_patch(trees.base, patch)
    assert [entry.path for entry in made.entries] == ["a.txt", "tests/test_new.py"]
    assert made.entries[0].content == b"one\nthree\n"
    assert made.deletions == ("d/y.py",)
    assert patch_stats(patch) == (3, 4)


def test_hidden_tests_replace_whatever_a_candidate_has_there(trees: Trees, tmp_path: Path) -> None:
    hidden = Overlay((TreeFile("tests/test_hidden.py", PLAIN, b"assert fixed\n"),))
    os.symlink("d", trees.fresh / "tests")
    hidden.apply(trees.fresh)
    assert (trees.fresh / "tests" / "test_hidden.py").read_bytes() == b"assert fixed\n"
    assert not (trees.fresh / "d" / "test_hidden.py").exists()


@pytest.mark.parametrize(
    "patch",
    [
        b"--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n other\n-two\n+three\n",
        (
            b"diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n"
            b"@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n"
        ),
        b"diff --git a/../x b/../x\nnew file mode 100644\n--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n",
        b"diff --git a/.git/x b/.git/x\nnew file mode 100644\n--- /dev/null\n+++ b/.git/x\n@@ -0,0 +1 @@\n+x\n",
        b"no patch at all\n",
    ],
    ids=["does not fit", "leaving link", "leaving path", "git folder", "prose"],
)
def test_a_patch_that_does_not_fit_or_would_leave_the_tree_is_refused(trees: Trees, patch: bytes) -> None:
    with pytest.raises(PatchError):
        overlay_from_patch(trees.base, patch)


def test_a_rendered_patch_is_what_git_itself_applies(trees: Trees) -> None:
    (trees.tree / "a.txt").write_bytes(b"one\r\nthree")
    (trees.tree / "bin").write_bytes(bytes(range(256)))
    (trees.tree / "run").chmod(0o755)
    patch = render_patch(trees.base, trees.captured())
    subprocess.run(["git", "apply", "-"], cwd=trees.fresh, input=patch, check=True, env=GIT)
    assert take_manifest(trees.fresh) == take_manifest(trees.tree)
    assert patch_stats(patch) == (3, 4)


def test_attributes_of_the_tree_do_not_steer_the_patch(trees: Trees) -> None:
    (trees.tree / ".gitattributes").write_text("* binary\n*.txt diff=evil filter=evil\n")
    (trees.tree / "a.txt").write_text("one\nthree\n")
    assert b"-two\n+three\n" in render_patch(trees.base, trees.captured())


def test_more_than_anybody_reads_is_not_rendered(trees: Trees, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        (trees.tree / f"new{number}").write_text("x" * 100)
    for bound, value in (("MAX_FILES", 2), ("MAX_BYTES", 299)):
        with monkeypatch.context() as small:
            small.setattr(rendering, bound, value)
            with pytest.raises(RefusedError, match="rendering the patch: 3 files"):
                render_patch(trees.base, trees.captured())
    assert patch_stats(render_patch(trees.base, trees.captured())) == (3, 3)
