"""Control groups, with a folder that behaves like the kernel's."""

import shutil
from pathlib import Path

import pytest

from bench_pipeline.execution.sandbox import Limits, cgroups

KERNEL_FILES = (
    "cgroup.procs",
    "cgroup.kill",
    "memory.max",
    "memory.swap.max",
    "memory.oom.group",
    "pids.max",
    "cpu.max",
)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A group in which new groups get their files by themselves and go with them."""
    (tmp_path / "cgroup.subtree_control").write_text("")
    plain = Path.mkdir

    def mkdir(self: Path, *args: int, **kwargs: bool) -> None:
        plain(self, *args, **kwargs)
        for name in KERNEL_FILES:
            (self / name).write_text("")
        (self / "memory.events").write_text("low 0\noom 1\noom_kill 0\n")

    monkeypatch.setattr(cgroups.Path, "mkdir", mkdir)
    monkeypatch.setattr(cgroups.Path, "rmdir", shutil.rmtree)
    return tmp_path


def test_the_limits_become_the_groups(kernel: Path) -> None:
    group = cgroups.open_group(Limits(60, cpus=1.5, memory_bytes=1 << 30, pids=64), kernel)
    assert group is not None
    assert group.enforced == {"memory", "pids", "cpus"}
    assert (group.folder / "memory.max").read_text() == str(1 << 30)
    assert (group.folder / "memory.swap.max").read_text() == "0"
    assert (group.folder / "pids.max").read_text() == "64"
    assert (group.folder / "cpu.max").read_text() == "150000 100000"
    group.add(4321)
    assert (group.folder / "cgroup.procs").read_text() == "4321"


def test_a_removed_group_knows_whether_memory_ran_out(kernel: Path) -> None:
    group = cgroups.open_group(Limits(60, memory_bytes=1 << 30), kernel)
    assert group is not None
    (group.folder / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    group.remove()
    assert group.out_of_memory
    assert not group.folder.exists()
    group.remove()
    assert group.out_of_memory


def test_without_any_limit_there_is_no_group(kernel: Path) -> None:
    assert cgroups.open_group(Limits(60), kernel) is None
    assert [path.name for path in kernel.iterdir()] == ["cgroup.subtree_control"]


def test_a_kernel_that_delegates_no_controllers_leaves_no_group_behind(tmp_path: Path) -> None:
    assert cgroups.open_group(Limits(60, memory_bytes=1 << 30, pids=64), tmp_path) is None
    assert not list(tmp_path.iterdir())


def test_a_group_without_the_controllers_that_we_use_is_passed_over(tmp_path: Path) -> None:
    assert not cgroups._offers_limits(tmp_path)
    (tmp_path / "cgroup.controllers").write_text("hugetlb\n")
    assert not cgroups._offers_limits(tmp_path)
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    assert cgroups._offers_limits(tmp_path)


def test_where_no_group_can_be_made_there_is_none(tmp_path: Path) -> None:
    assert cgroups.open_group(Limits(60, pids=64), tmp_path / "absent") is None
    assert cgroups.open_group(Limits(60, pids=64), None) is None
