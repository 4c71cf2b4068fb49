"""Watching one started command from outside: input, output, deadlines, limits, and its end.

What belongs here: the loop that every local backend shares. What does not: how a backend starts a command
or holds it (``bubblewrap``, ``process``).
"""

import os
import selectors
import signal
import subprocess
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bench_pipeline.errors import SandboxError
from bench_pipeline.execution.sandbox.base import Command, Limits, ProcessEnd
from bench_pipeline.execution.sandbox.capture import Capture
from bench_pipeline.execution.sandbox.census import Pinned, shared_out_memory, usage
from bench_pipeline.execution.sandbox.disk import DiskGauge

# How often cancelling, memory and tasks are looked at; a look costs well under a millisecond.
_LOOK_S = 0.1
# A look at a large tree of processes may take at most a tenth of the time.
_LOOK_SHARE = 10
_DISK_LOOK_S = 1.0
# Children that end because their parent or its pipe did need a moment; what is left then was left on purpose.
_SETTLE_S = 0.05
_START_S = 60.0


class Held(Protocol):
    """A command at its gate: all is set up, nothing of it has run; ``popen`` is the outermost process.

    ``main`` is the process whose end is the command's; ``enforced`` names the limits that the kernel keeps.
    One newline on standard input opens the gate.
    """

    popen: subprocess.Popen[bytes]
    main: Pinned
    enforced: frozenset[str]

    def status(self) -> int | None:
        """The wait status of the main process, which has ended; None when nobody can know it any more."""
        ...

    def processes(self) -> set[int]:
        """The processes of the command that can be seen from here, ended ones among them."""
        ...

    def left(self) -> int:
        """How many processes of the command still run, its main one not counted."""
        ...

    def terminate(self) -> None:
        """Send SIGTERM to every process of the command."""
        ...

    def kill(self) -> None:
        """End every process of the command; returns when none is left. May be called again."""
        ...

    def out_of_memory(self) -> bool:
        """Whether the kernel killed for the memory limit; known after ``kill``."""
        ...


@dataclass
class _State:
    """Where a watched command stands. Times are of the monotonic clock; ``why`` is our reason to end it."""

    started: float
    why: str | None = None
    kill_at: float | None = None
    main_ended: float | None = None
    status: int | None = None
    orphans: int = 0
    next_look: float = 0.0
    next_disk_look: float = field(default=0.0)


class Watch:
    """Runs one held command to its end.

    Args:
        held: the command at its gate.
        command: gives the input.
        limits: what it may use.
        outputs: the files for stdout and stderr.
        folders: the host folders whose growth ``disk_bytes`` bounds.
        cancel: ends the command when set.
    """

    def __init__(
        self,
        held: Held,
        command: Command,
        limits: Limits,
        *,
        outputs: tuple[Path, Path],
        folders: tuple[Path, ...],
        cancel: threading.Event | None,
    ) -> None:
        self._held = held
        self._limits = limits
        self._outputs = outputs
        self._cancel = cancel or threading.Event()
        self._disk = DiskGauge(folders, limits.disk_bytes)
        self._input = memoryview(b"\n" + command.stdin)
        self._selector = selectors.DefaultSelector()

    def run(self) -> ProcessEnd:
        """Open the gate and stay until nothing of the command is left."""
        popen = self._held.popen
        assert popen.stdin is not None
        assert popen.stdout is not None
        assert popen.stderr is not None
        with ExitStack() as closing:
            closing.callback(self._selector.close)
            closing.callback(self._held.kill)
            captures = []
            for pipe, path in zip((popen.stdout, popen.stderr), self._outputs, strict=True):
                capture = Capture(pipe, path, self._limits.output_bytes)  # type: ignore[arg-type]
                closing.callback(capture.finish)
                captures.append(capture)
                self._selector.register(capture, selectors.EVENT_READ, capture)
            os.set_blocking(popen.stdin.fileno(), False)
            self._selector.register(popen.stdin, selectors.EVENT_WRITE)
            self._selector.register(self._held.main, selectors.EVENT_READ)
            state = _State(time.monotonic())
            while not self._finished(state):
                self._step(state)
            duration = (state.main_ended or time.monotonic()) - state.started
            self._held.kill()
            for capture in captures:
                capture.drain()
        return self._end(state, captures, duration)

    def _finished(self, state: _State) -> bool:
        now = time.monotonic()
        if state.kill_at is not None and now >= state.kill_at:
            return True
        if state.main_ended is None:
            return False
        # An ended command's leftovers get the grace only when we asked them to stop.
        return state.kill_at is None or not self._held.left()

    def _step(self, state: _State) -> None:
        for key, _ in self._selector.select(self._patience(state)):
            if isinstance(key.data, Capture):
                if not key.data.take():
                    self._selector.unregister(key.data)
            elif key.fileobj is self._held.main:
                self._selector.unregister(self._held.main)
                self._main_ended(state)
            else:
                self._feed()
        if state.main_ended is None:
            self._look(state)

    def _patience(self, state: _State) -> float:
        if state.main_ended is not None:
            return _LOOK_S / 10
        now = time.monotonic()
        bounds = [_LOOK_S, state.started + self._limits.wall_s - now]
        if state.kill_at is not None:
            bounds[1] = state.kill_at - now
        return max(0.0, min(bounds))

    def _feed(self) -> None:
        """Write what the pipe takes of the input, and close it after the last byte or when nobody reads."""
        pipe = self._held.popen.stdin
        assert pipe is not None
        try:
            self._input = self._input[os.write(pipe.fileno(), self._input[: 1 << 16]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._input = self._input[:0]
        if not self._input:
            self._selector.unregister(pipe)
            pipe.close()

    def _main_ended(self, state: _State) -> None:
        state.main_ended = time.monotonic()
        state.status = self._held.status()
        state.orphans = self._held.left()
        if state.orphans:
            time.sleep(_SETTLE_S)
            state.orphans = self._held.left()

    def _look(self, state: _State) -> None:
        """Ask the clock, the caller and the limits whether the command has to end."""
        now = time.monotonic()
        if state.kill_at is None:
            if self._cancel.is_set():
                self._stop(state, "cancelled")
            elif now >= state.started + self._limits.wall_s:
                self._stop(state, "timed_out")
        if now >= state.next_look:
            why = self._over_limit(state, now)
            if why is not None:
                state.why, state.kill_at = why, now
            state.next_look = now + max(_LOOK_S, (time.monotonic() - now) * _LOOK_SHARE)

    def _stop(self, state: _State, why: str) -> None:
        state.why, state.kill_at = why, time.monotonic() + self._limits.grace_s
        self._held.terminate()

    def _over_limit(self, state: _State, now: float) -> str | None:
        limits = self._limits
        soft = {"memory", "pids"} - self._held.enforced
        if soft and (limits.memory_bytes is not None or limits.pids is not None):
            pids = self._held.processes()
            used = usage(pids)
            if "pids" in soft and limits.pids is not None and used.tasks > limits.pids:
                return "pids"
            memory = limits.memory_bytes
            over = "memory" in soft and memory is not None and used.memory_bytes > memory
            if over and memory is not None and shared_out_memory(pids) > memory:
                return "memory"
        if now >= state.next_disk_look:
            state.next_disk_look = now + _DISK_LOOK_S
            if self._disk.over():
                return "disk"
        return None

    def _end(self, state: _State, captures: list[Capture], duration: float) -> ProcessEnd:
        stdout, stderr = captures
        status = state.status
        if status is None:
            # We killed it, or something that it started killed the process that keeps its status.
            status = signal.SIGKILL
        code = os.waitstatus_to_exitcode(status)
        if state.why is None and self._held.out_of_memory():
            state.why = "memory"
        return ProcessEnd(
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            timed_out=state.why == "timed_out",
            cancelled=state.why == "cancelled",
            memory_killed=state.why == "memory",
            pids_killed=state.why == "pids",
            disk_killed=state.why == "disk",
            duration_s=duration,
            orphans=state.orphans,
            stdout=self._outputs[0],
            stderr=self._outputs[1],
            stdout_cut=stdout.cut,
            stderr_cut=stderr.cut,
            limits_not_enforced=unenforced(self._limits, self._held.enforced),
        )


_SOFT = {
    "memory": "memory is looked at ten times a second, not capped by the kernel",
    "pids": "processes are counted ten times a second, not capped by the kernel",
    "cpus": "processors are assigned by affinity, which a command can change",
    "disk": "disk use is looked at once a second, not capped by the kernel",
}


def unenforced(limits: Limits, enforced: frozenset[str]) -> tuple[str, ...]:
    """A sentence for each given limit that is not in ``enforced``, sorted by limit."""
    given = {
        "cpus": limits.cpus,
        "disk": limits.disk_bytes,
        "memory": limits.memory_bytes,
        "pids": limits.pids,
    }
    return tuple(_SOFT[name] for name, value in given.items() if value is not None and name not in enforced)


def wait_ready(popen: subprocess.Popen[bytes], what: str, remedy: str) -> None:
    """Wait for the newline with which a command at its gate reports on its standard output.

    Raises:
        SandboxError: it ended instead, with its own last words, or did not get there within a minute.
    """
    assert popen.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(popen.stdout, selectors.EVENT_READ)
        ready = selector.select(_START_S) and os.read(popen.stdout.fileno(), 1) == b"\n"
    if ready:
        return
    popen.kill()
    _, said = popen.communicate()
    words = said.decode("utf-8", "replace").strip() or f"no answer, exit status {popen.returncode}"
    raise SandboxError(what, words, remedy)
