"""Workspaces are fresh for every cell, whatever the last one did, and base trees are built once."""

import multiprocessing
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_pipeline.errors import SandboxError
from bench_pipeline.execution import workspace as workspace_module
from bench_pipeline.execution.base_trees import BaseTrees, base_manifest, whole_manifest
from bench_pipeline.execution.manifest import take_manifest
from bench_pipeline.execution.workspace import Workspaces

FILES = {"a.txt": "one\n", "d/x.py": "x = 1\n", "d/e/y.py": "y = 1\n", "run.sh": "#!/bin/sh\n"}


def fill(tree: Path) -> None:
    for path, content in FILES.items():
        place = tree / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
    (tree / "run.sh").chmod(0o755)
    os.symlink("d/x.py", tree / "link")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "base").mkdir()
    fill(tmp_path / "base")
    return tmp_path / "base"


@pytest.fixture(params=["times are honest", "times can lie"])
def pool(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspaces:
    monkeypatch.setattr(workspace_module, "honest_times", lambda _: request.param == "times are honest")
    return Workspaces(tmp_path / "pool")


def state(tree: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything about a tree that a cell could notice: kinds and rights, times of files, contents."""
    found = {}
    for folder, folders, files in os.walk(tree):
        for name in [*folders, *files]:
            place = Path(folder, name)
            facts = place.lstat()
            path = str(place.relative_to(tree))
            if stat.S_ISDIR(facts.st_mode):
                found[path] = (facts.st_mode, 0, b"")
            elif stat.S_ISLNK(facts.st_mode):
                found[path] = (facts.st_mode, 0, os.fsencode(os.readlink(place)))
            else:
                found[path] = (facts.st_mode, facts.st_mtime_ns, place.read_bytes())
    return found


def test_a_workspace_holds_the_base_and_empty_folders_of_its_own(pool: Workspaces, base: Path) -> None:
    with pool.open(base) as workspace:
        place = workspace.place
        assert take_manifest(place.tree) == take_manifest(base) == workspace.manifest
        assert place.handover is not None
        for folder in (place.home, place.tmp, place.handover, workspace.logs):
            assert list(folder.iterdir()) == []
        assert stat.S_IMODE((place.tree / "run.sh").stat().st_mode) == 0o755
        assert stat.S_IMODE((place.tree / "a.txt").stat().st_mode) == 0o644


def test_files_that_are_read_only_in_the_base_can_be_written(pool: Workspaces, base: Path) -> None:
    (base / "a.txt").chmod(0o444)
    with pool.open(base) as workspace:
        assert stat.S_IMODE((workspace.place.tree / "a.txt").stat().st_mode) == 0o644


def test_a_base_with_large_files_and_tracked_caches_is_copied_whole(tmp_path: Path) -> None:
    def build(tree: Path) -> None:
        (tree / "__pycache__").mkdir()
        (tree / "__pycache__" / "tracked.pyc").write_bytes(b"x")
        with (tree / "large").open("wb") as file:
            file.truncate((64 << 20) + 1)

    bases = [BaseTrees(tmp_path / "trees").get("key", build), tmp_path / "plain"]
    bases[1].mkdir()
    build(bases[1])
    with Workspaces(tmp_path / "pool") as pool:
        for base in bases:
            with pool.open(base) as workspace:
                assert (workspace.place.tree / "__pycache__" / "tracked.pyc").read_bytes() == b"x"
                assert (workspace.place.tree / "large").stat().st_size == (64 << 20) + 1


def overwrite(tree: Path) -> None:
    (tree / "a.txt").write_text("two\n")


def overwrite_and_hide_it(tree: Path) -> None:
    before = (tree / "a.txt").stat()
    (tree / "a.txt").write_text("two\n")
    os.utime(tree / "a.txt", ns=(before.st_atime_ns, before.st_mtime_ns))


def put_another_file_in_its_place(tree: Path) -> None:
    (tree / "new").write_text("two\n")
    shutil.copystat(tree / "a.txt", tree / "new")
    (tree / "new").rename(tree / "a.txt")


def remove_everything(tree: Path) -> None:
    for place in tree.iterdir():
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink()


def add_files_and_folders(tree: Path) -> None:
    (tree / "new" / "deep").mkdir(parents=True)
    (tree / "new" / "deep" / "f").write_text("x")
    (tree / ".git").mkdir()
    os.mkfifo(tree / "pipe")


def close_everything(tree: Path) -> None:
    (tree / "d" / "e" / "y.py").chmod(0)
    (tree / "d" / "e").chmod(0)
    (tree / "d").chmod(0o111)
    (tree / "closed").mkdir()
    (tree / "closed" / "f").write_text("")
    (tree / "closed").chmod(0)
    tree.chmod(0o500)


def make_links_to_the_outside(tree: Path) -> None:
    outside = tree.parent.parent.parent / "outside"
    shutil.rmtree(tree / "d")
    os.symlink(outside, tree / "d")
    (tree / "a.txt").unlink()
    os.symlink(outside / "victim", tree / "a.txt")


def swap_kinds(tree: Path) -> None:
    shutil.rmtree(tree / "d")
    (tree / "d").write_text("a file")
    (tree / "a.txt").unlink()
    (tree / "a.txt").mkdir()
    (tree / "link").unlink()
    (tree / "link").write_text("no link")


def give_files_second_names(tree: Path) -> None:
    os.link(tree / "a.txt", tree / "second")
    os.link(tree / "a.txt", tree / "d" / "third")


def change_rights(tree: Path) -> None:
    (tree / "a.txt").chmod(0o4777)
    (tree / "d").chmod(0o777)


@pytest.mark.parametrize(
    "spoil",
    [
        overwrite,
        overwrite_and_hide_it,
        put_another_file_in_its_place,
        remove_everything,
        add_files_and_folders,
        close_everything,
        make_links_to_the_outside,
        swap_kinds,
        give_files_second_names,
        change_rights,
    ],
    ids=lambda spoil: spoil.__name__.replace("_", " "),
)
def test_the_next_cell_sees_nothing_of_the_last(
    pool: Workspaces, base: Path, tmp_path: Path, spoil: object
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "victim").write_text("untouched")
    with pool.open(base) as workspace:
        fresh = state(workspace.place.tree)
        first = workspace.place.tree
        spoil(workspace.place.tree)  # type: ignore[operator]
    with pool.open(base) as workspace:
        assert workspace.place.tree == first
        assert state(workspace.place.tree) == fresh
        assert stat.S_IMODE(workspace.place.tree.stat().st_mode) == 0o755
    assert (tmp_path / "outside" / "victim").read_text() == "untouched"
    assert os.listdir(tmp_path / "outside") == ["victim"]


def test_home_temporary_folder_handover_and_logs_are_emptied(pool: Workspaces, base: Path) -> None:
    with pool.open(base) as workspace:
        place = workspace.place
        assert place.handover is not None
        folders = (place.home, place.tmp, place.handover, workspace.logs)
        for folder in folders:
            (folder / "deep").mkdir()
            (folder / "deep" / "f").write_text("secret")
            (folder / "deep").chmod(0)
        place.scratch()
    with pool.open(base) as workspace:
        for folder in folders:
            assert list(folder.iterdir()) == []
        assert not list(workspace.logs.parent.glob("scratch-*"))


def test_home_can_be_renewed_between_the_steps_of_a_workflow(pool: Workspaces, base: Path) -> None:
    with pool.open(base) as workspace:
        place = workspace.place
        assert place.handover is not None
        for folder in (place.tree, place.home, place.tmp, place.handover):
            (folder / "left").write_text("x")
        workspace.renew_home()
        assert not list(place.home.iterdir())
        assert not list(place.tmp.iterdir())
        assert (place.tree / "left").exists()
        assert (place.handover / "left").exists()


def test_a_workspace_changes_over_to_another_base(pool: Workspaces, base: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(base, other, symlinks=True)
    (other / "a.txt").write_text("uno\n")
    shutil.rmtree(other / "d" / "e")
    (other / "new").write_text("x")
    with pool.open(base) as workspace:
        first = workspace.place.tree
        fresh = state(first)
    with pool.open(other) as workspace:
        assert workspace.place.tree == first
        assert take_manifest(first) == take_manifest(other)
    with pool.open(base):
        assert state(first) == fresh


def test_a_base_that_changed_between_two_cells_is_seen(pool: Workspaces, base: Path) -> None:
    with pool.open(base):
        pass
    (base / "a.txt").write_text("two\n")
    (base / "d" / "x.py").unlink()
    (base / "link").unlink()
    with pool.open(base) as workspace:
        assert take_manifest(workspace.place.tree) == take_manifest(base)


def test_cells_at_the_same_time_have_workspaces_of_their_own(pool: Workspaces, base: Path) -> None:
    barrier = threading.Barrier(4)
    seen: list[Path] = []

    def work() -> None:
        for _ in range(3):
            with pool.open(base) as workspace:
                (workspace.place.tree / "mine").write_text(str(threading.get_ident()))
                barrier.wait()
                seen.append(workspace.place.tree)
                assert (workspace.place.tree / "mine").read_text() == str(threading.get_ident())
                barrier.wait()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 12
    assert len(set(seen)) == 4


def test_a_hundred_cells_use_one_folder_and_no_more_descriptors(
    pool: Workspaces, base: Path, tmp_path: Path
) -> None:
    with pool.open(base):
        before = len(os.listdir("/proc/self/fd"))
    for number in range(100):
        with pool.open(base) as workspace:
            (workspace.place.tree / "a.txt").write_text(str(number))
    assert len(os.listdir(tmp_path / "pool")) == 1
    assert len(os.listdir("/proc/self/fd")) <= before


def test_the_umask_of_the_user_does_not_show(base: Path, tmp_path: Path) -> None:
    script = f"""
import os
from collections.abc import Callable
from pathlib import Path
from bench_pipeline.execution.workspace import Workspaces
os.umask(0o077)
with Workspaces(Path({str(tmp_path / "strict")!r})) as pool, pool.open(Path({str(base)!r})) as workspace:
    for place in (workspace.place.tree, workspace.place.tree / "d", workspace.place.home):
        assert place.stat().st_mode & 0o777 == 0o755, place
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_closing_removes_what_is_idle(base: Path, tmp_path: Path) -> None:
    with Workspaces(tmp_path / "pool") as pool, pool.open(base):
        pass
    assert list((tmp_path / "pool").iterdir()) == []


def test_a_pool_that_nobody_closes_goes_with_its_process(base: Path, tmp_path: Path) -> None:
    script = f"""
from collections.abc import Callable
from pathlib import Path
from bench_pipeline.execution.workspace import Workspaces
pool = Workspaces(Path({str(tmp_path / "pool")!r}))
with pool.open(Path({str(base)!r})):
    pass
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    assert list((tmp_path / "pool").iterdir()) == []


def test_a_sweep_removes_what_killed_processes_left_and_nothing_that_is_in_use(
    base: Path, tmp_path: Path
) -> None:
    script = f"""
import os, signal
from collections.abc import Callable
from pathlib import Path
from bench_pipeline.execution.workspace import Workspaces
with Workspaces(Path({str(tmp_path / "pool")!r})).open(Path({str(base)!r})) as workspace:
    (workspace.place.tree / "d").chmod(0)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    pool = Workspaces(tmp_path / "pool")
    with pool.open(base) as workspace:
        assert len(os.listdir(tmp_path / "pool")) == 2
        assert Workspaces(tmp_path / "pool").sweep() == 1
        assert take_manifest(workspace.place.tree) == take_manifest(base)
    assert len(os.listdir(tmp_path / "pool")) == 1


def test_a_pool_without_a_folder_has_nothing_to_sweep(tmp_path: Path) -> None:
    assert Workspaces(tmp_path / "absent").sweep() == 0


def test_a_base_that_is_not_there_is_an_error_that_leaves_nothing(tmp_path: Path) -> None:
    pool = Workspaces(tmp_path / "pool")
    with pytest.raises(SandboxError), pool.open(tmp_path / "absent"):
        pass
    assert not list(tmp_path.glob("pool/*"))


def test_an_error_in_a_cell_goes_on_and_the_workspace_is_cleaned(pool: Workspaces, base: Path) -> None:
    def spoil() -> None:
        with pool.open(base) as workspace:
            (workspace.place.tree / "left").write_text("x")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        spoil()
    with pool.open(base) as workspace:
        assert not (workspace.place.tree / "left").exists()


actions = st.lists(
    st.tuples(
        st.sampled_from(["write", "remove", "mkdir", "link", "mode"]),
        st.sampled_from(["a.txt", "d", "d/x.py", "n"]),
    ),
    max_size=5,
)


@settings(max_examples=30, deadline=None)
@given(cells=st.lists(actions, max_size=4))
def test_any_run_of_cells_leaves_a_fresh_workspace(
    tmp_path_factory: pytest.TempPathFactory, cells: list[list[tuple[str, str]]]
) -> None:
    root = tmp_path_factory.mktemp("root")
    (root / "base").mkdir()
    fill(root / "base")
    with Workspaces(root / "pool") as pool:
        for cell in [*cells, []]:
            with pool.open(root / "base") as workspace:
                assert take_manifest(workspace.place.tree) == take_manifest(root / "base")
                for action, path in cell:
                    act(action, workspace.place.tree / path)


def act(action: str, place: Path) -> None:
    try:
        if action == "write":
            place.write_text("z")
        elif action == "mkdir":
            place.mkdir()
        elif action == "link":
            place.symlink_to("/etc")
        elif action == "mode":
            place.chmod(0o000)
        elif place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink()
    except OSError:
        return  # an action that the earlier ones made impossible


def test_a_base_tree_is_built_once_and_cannot_be_changed(tmp_path: Path) -> None:
    built: list[Path] = []

    def build(tree: Path) -> None:
        built.append(tree)
        fill(tree)

    cache = BaseTrees(tmp_path / "trees")
    tree = cache.get("key", build)
    assert cache.get("key", build) == BaseTrees(tmp_path / "trees").get("key", build) == tree
    assert len(built) == 1
    for place in [tree, *tree.rglob("*")]:
        assert place.is_symlink() or not place.stat().st_mode & 0o222
    assert base_manifest(tree) == take_manifest(tree)
    with Workspaces(tmp_path / "pool") as pool, pool.open(tree) as workspace:
        assert take_manifest(workspace.place.tree) == take_manifest(tree)


def test_keys_that_file_systems_mix_up_have_trees_of_their_own(tmp_path: Path) -> None:
    cache = BaseTrees(tmp_path / "trees")
    keys = ["a/b", "A/B", "a_b", "..", "é", "e\u0301", "x" * 1000, ""]
    trees = {key: cache.get(key, lambda tree, key=key: (tree / "key").write_text(key)) for key in keys}
    assert len({str(tree).lower() for tree in trees.values()}) == len(keys)
    assert {key: (tree / "key").read_text() for key, tree in trees.items()} == {key: key for key in keys}


def test_a_build_that_fails_leaves_nothing_and_is_tried_again(tmp_path: Path) -> None:
    cache = BaseTrees(tmp_path / "trees")

    def fail(tree: Path) -> None:
        fill(tree)
        (tree / "d").chmod(0)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        cache.get("key", fail)
    assert [path for path in (tmp_path / "trees").iterdir() if path.is_dir()] == []
    assert (cache.get("key", fill) / "a.txt").read_text() == "one\n"


def test_what_a_killed_build_left_goes_with_the_next_one(tmp_path: Path) -> None:
    cache = BaseTrees(tmp_path / "trees")
    place = cache.get("key", fill).parent
    place.rename(place.with_name(f"{place.name}.killed"))
    cache.get("key", fill)
    assert [path.name for path in (tmp_path / "trees").iterdir() if path.is_dir()] == [place.name]


def _get(root: str, results: "multiprocessing.Queue[int]") -> None:
    built: list[Path] = []
    tree = BaseTrees(Path(root)).get("key", lambda tree: (built.append(tree), fill(tree))[0])
    assert (tree / "a.txt").read_text() == "one\n"
    results.put(len(built))


def test_processes_that_want_one_tree_at_the_same_time_build_it_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    results: multiprocessing.Queue[int] = context.Queue()
    processes = [context.Process(target=_get, args=(str(tmp_path / "trees"), results)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert sum(results.get(timeout=30) for _ in processes) == 1


def test_the_place_for_base_trees_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "trees").write_text("a file")
    with pytest.raises(SandboxError, match="trees"):
        BaseTrees(tmp_path / "trees").get("key", fill)


def append_to(tree: Path) -> None:
    (tree / "a.txt").write_text((tree / "a.txt").read_text() + "edited\n")


def same_size(tree: Path) -> None:
    text = (tree / "a.txt").read_text()
    (tree / "a.txt").write_text(text.swapcase())


def add_file(tree: Path) -> None:
    (tree / "new").write_text("edited\n")


def remove_file(tree: Path) -> None:
    (tree / "a.txt").unlink()


def make_executable(tree: Path) -> None:
    (tree / "a.txt").chmod(0o755)


def make_link(tree: Path) -> None:
    (tree / "a.txt").unlink()
    (tree / "a.txt").symlink_to("run.sh")


def lose_the_notes(tree: Path) -> None:
    (tree.parent / "manifest.json").write_text("{")


def count_builds(root: Path) -> tuple[Path, int]:
    """The tree of a key in a process of its own, and how often it had to be built."""
    built: list[Path] = []

    def build(tree: Path) -> None:
        built.append(tree)
        fill(tree)

    return BaseTrees(root).get("key", build), len(built)


@pytest.mark.parametrize(
    "edit", [append_to, same_size, add_file, remove_file, make_executable, make_link, lose_the_notes]
)
def test_a_kept_tree_that_was_edited_is_built_again(tmp_path: Path, edit: Callable[[Path], None]) -> None:
    tree, builds = count_builds(tmp_path)
    assert builds == 1
    wanted = whole_manifest(tree)
    for folder in (tree, *(path for path in tree.rglob("*") if not path.is_symlink())):
        folder.chmod(folder.stat().st_mode | 0o200)
    assert count_builds(tmp_path) == (tree, 0)
    edit(tree)
    assert count_builds(tmp_path) == (tree, 1)
    assert whole_manifest(tree) == wanted
    assert count_builds(tmp_path) == (tree, 0)


def test_a_kept_tree_that_was_only_touched_or_run_from_is_used_as_it_is(tmp_path: Path) -> None:
    tree, _ = count_builds(tmp_path)
    tree.chmod(0o755)
    os.utime(tree / "a.txt", ns=(1, 1))
    (tree / "__pycache__").mkdir()
    (tree / "__pycache__" / "a.pyc").write_bytes(b"cache")
    assert count_builds(tmp_path) == (tree, 0)
