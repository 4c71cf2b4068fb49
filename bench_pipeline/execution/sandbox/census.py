"""Looking at processes from outside: who descends from whom, what they use, how one ended.

What belongs here: reading /proc and sending signals. What does not: deciding to end something (``watch``).

Everything is read from the kernel, so nothing that runs in a sandbox can forge it.
"""

import contextlib
import os
import resource
import select
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

import psutil

_PAGE = resource.getpagesize()
_GONE = (ProcessLookupError, FileNotFoundError, PermissionError, NotADirectoryError)


class Pinned:
    """A process held by a file descriptor, so that its number cannot come to mean another one.

    Raises:
        ProcessLookupError: no such process.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._fd = os.pidfd_open(pid)

    def fileno(self) -> int:
        """A descriptor that becomes readable when the process has ended."""
        return self._fd

    def send(self, number: int) -> None:
        """Send a signal; nothing happens when the process is gone."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._fd, number)

    def ended(self, seconds: float) -> bool:
        """Wait until the process has ended, at most that long; whether it has."""
        return bool(select.select([self._fd], [], [], seconds)[0])

    def close(self) -> None:
        """Let go of the process."""
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def parent_and_state(pid: int) -> tuple[int, str] | None:
    """The parent's number and the state letter of a process; None when it is gone."""
    fields = _stat(pid)
    return (int(fields[1]), fields[0].decode()) if fields else None


def wait_status(pid: int) -> int | None:
    """The wait status of a process that has ended and was not reaped; None when it was, or has not."""
    fields = _stat(pid)
    if not fields or fields[0] != b"Z":
        return None
    return int(fields[49])


def _stat(pid: int) -> list[bytes]:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except _GONE:
        return []
    # The name is in parentheses and may hold blanks and parentheses itself.
    return text[text.rfind(b")") + 2 :].split()


@cache
def _kernel_lists_children() -> bool:
    return Path(f"/proc/self/task/{os.getpid()}/children").exists()


def children(pid: int) -> list[int]:
    """The children of all threads of a process; empty when it is gone."""
    if not _kernel_lists_children():
        return [child for child, parent in _parents().items() if parent == pid]
    found: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(*_GONE):
                found.extend(map(int, (task / "children").read_bytes().split()))
    except _GONE:
        pass
    return found


def _parents() -> dict[int, int]:
    found = {}
    for pid in psutil.pids():
        fields = _stat(pid)
        if fields:
            found[pid] = int(fields[1])
    return found


def descendants(pid: int) -> set[int]:
    """Every process below ``pid``, itself not counted; some of them may have ended and wait to be reaped."""
    below = _below_by_parents if not _kernel_lists_children() else _below_by_lists
    return below(pid)


def _below_by_lists(pid: int) -> set[int]:
    found: set[int] = set()
    ahead = children(pid)
    while ahead:
        child = ahead.pop()
        if child not in found:
            found.add(child)
            ahead.extend(children(child))
    return found


def _below_by_parents(pid: int) -> set[int]:
    parents = _parents()
    found: set[int] = set()
    grown = True
    while grown:
        more = {child for child, parent in parents.items() if parent == pid or parent in found} - found
        found |= more
        grown = bool(more)
    return found


def running(pids: Iterable[int]) -> set[int]:
    """Those of ``pids`` that have not ended."""
    return {pid for pid in pids if (_stat(pid) or [b"X"])[0] not in {b"Z", b"X"}}


def signal_all(list_pids: Callable[[], set[int]], number: int, *, rounds: int = 5) -> None:
    """Send a signal once to every process that ``list_pids`` names, also to those made meanwhile."""
    told: set[int] = set()
    for _ in range(rounds):
        fresh = list_pids() - told
        if not fresh:
            return
        for pid in fresh:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        told |= fresh


def kill_until_gone(list_pids: Callable[[], set[int]], *, seconds: float) -> set[int]:
    """SIGKILL what ``list_pids`` names until it names nothing that runs; returns what outlived ``seconds``.

    All are stopped before the first is killed, so that none can fork in between.
    """
    deadline = time.monotonic() + seconds
    left = running(list_pids())
    while left and time.monotonic() < deadline:
        for number in (signal.SIGSTOP, signal.SIGKILL):
            signal_all(list_pids, number)
        time.sleep(0.002)
        left = running(list_pids())
    return left


@dataclass(frozen=True)
class Usage:
    """What a set of processes uses together: tasks (threads counted) and resident bytes."""

    tasks: int
    memory_bytes: int


def usage(pids: Iterable[int]) -> Usage:
    """What processes use; pages that they share count once for each, so memory is an upper bound."""
    tasks = memory = 0
    for pid in pids:
        fields = _stat(pid)
        if fields and fields[0] != b"Z":
            tasks += int(fields[17])
            memory += int(fields[21]) * _PAGE
    return Usage(tasks, memory)


def shared_out_memory(pids: Iterable[int]) -> int:
    """Resident bytes with every shared page divided among its users; slower and exact."""
    return sum(_proportional(pid) for pid in pids)


def _proportional(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss:")), 0)


def marked(marker: bytes) -> Iterator[int]:
    """Processes whose environment holds the entry ``marker`` (``NAME=value``)."""
    for pid in psutil.pids():
        try:
            entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if marker in entries:
            yield pid
