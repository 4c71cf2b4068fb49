"""Hard limits through control groups of version 2, where this process may make them.

What belongs here: one group per command. What does not: sampling in place of it (``watch``).

A user's session usually delegates no controllers to a group that holds processes, so None is a common answer.
"""

import contextlib
import time
import uuid
from functools import cache
from pathlib import Path

from bench_pipeline.execution.sandbox.base import Limits

_CPU_PERIOD_US = 100_000
_FILES = {"memory": "memory.max", "pids": "pids.max", "cpus": "cpu.max"}


@cache
def own_group() -> Path | None:
    """The folder of the version-2 group that this process is in; None where it offers no limits."""
    try:
        entries = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    path = next((entry[3:] for entry in entries if entry.startswith("0::")), None)
    mount = next((line.split()[4] for line in mounts if " - cgroup2 " in line), None)
    if path is None or mount is None:
        return None
    folder = Path(mount, path.lstrip("/"))
    return folder if _offers_limits(folder) else None


def _offers_limits(folder: Path) -> bool:
    try:
        offered = (folder / "cgroup.controllers").read_text(encoding="ascii").split()
    except OSError:
        return False
    return not {"memory", "pids", "cpu"}.isdisjoint(offered)


class CellGroup:
    """The control group of one command; ``enforced`` names the limits that the kernel keeps."""

    def __init__(self, folder: Path, enforced: frozenset[str]) -> None:
        self.folder = folder
        self.enforced = enforced
        self.out_of_memory = False

    def add(self, pid: int) -> None:
        """Move a process into the group; its future children follow it."""
        _write(self.folder / "cgroup.procs", str(pid))

    def remove(self) -> None:
        """Kill what is left in the group, note whether memory ran out, and remove it."""
        with contextlib.suppress(OSError):
            events = (self.folder / "memory.events").read_text(encoding="ascii").split()
            self.out_of_memory = int(dict(zip(events[::2], events[1::2], strict=True)).get("oom_kill", 0)) > 0
        with contextlib.suppress(OSError):
            _write(self.folder / "cgroup.kill", "1")
        for _ in range(100):
            try:
                self.folder.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.01)


def open_group(limits: Limits, parent: Path | None) -> CellGroup | None:
    """A new group below ``parent`` with the limits that the kernel keeps there; None when it keeps none."""
    if parent is None:
        return None
    with contextlib.suppress(OSError):
        _write(parent / "cgroup.subtree_control", "+memory +pids +cpu")
    folder = parent / f"bench-{uuid.uuid4().hex}"
    try:
        folder.mkdir()
    except OSError:
        return None
    wanted = {
        "memory": None if limits.memory_bytes is None else str(limits.memory_bytes),
        "pids": None if limits.pids is None else str(limits.pids),
        "cpus": None if limits.cpus is None else f"{int(limits.cpus * _CPU_PERIOD_US)} {_CPU_PERIOD_US}",
    }
    enforced = {name for name, value in wanted.items() if value and _set(folder / _FILES[name], value)}
    group = CellGroup(folder, frozenset(enforced))
    if not enforced:
        group.remove()
        return None
    _set(folder / "memory.swap.max", "0")
    _set(folder / "memory.oom.group", "1")
    return group


def _set(file: Path, value: str) -> bool:
    try:
        _write(file, value)
    except OSError:
        return False
    return True


def _write(file: Path, value: str) -> None:
    # Opened without O_CREAT: a file that the kernel does not offer has to be an error.
    with file.open("r+", encoding="ascii") as stream:
        stream.write(value)
