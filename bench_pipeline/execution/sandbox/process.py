"""The process backend: no isolation at all, only bookkeeping. For tools that are trusted.

What belongs here: starting a command with a clean environment under ``supervisor`` and finding all that it
started. What does not: any promise about what a hostile command can reach.
"""

import contextlib
import resource
import signal
import subprocess
import sys
import threading
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_pipeline.errors import SandboxError
from bench_pipeline.execution.sandbox import supervisor
from bench_pipeline.execution.sandbox.base import (
    FIXED_ENVIRONMENT,
    Command,
    Limits,
    Loopback,
    Place,
    PlacePaths,
    ProcessEnd,
    Served,
)
from bench_pipeline.execution.sandbox.census import (
    Pinned,
    children,
    descendants,
    kill_until_gone,
    marked,
    running,
    signal_all,
    wait_status,
)
from bench_pipeline.execution.sandbox.processors import pin
from bench_pipeline.execution.sandbox.watch import Watch, wait_ready

_TRIED = "starting a command without isolation"
_MARKER = "BENCH_CELL"
_KILL_S = 30.0


@dataclass
class _Held:
    """A command at its gate under its supervisor; see ``watch.Held``."""

    popen: subprocess.Popen[bytes]
    main: Pinned
    supervisor: Pinned
    marker: bytes
    enforced: frozenset[str] = frozenset()

    def status(self) -> int | None:
        """From the unreaped process; None when its supervisor was killed."""
        return wait_status(self.main.pid)

    def processes(self) -> set[int]:
        """Everything below the supervisor, and everything that carries the cell's mark."""
        found = descendants(self.supervisor.pid)
        found.update(marked(self.marker))
        return found - {self.supervisor.pid}

    def left(self) -> int:
        """How many of them still run, the main one not counted."""
        return len(running(self.processes() - {self.main.pid}))

    def terminate(self) -> None:
        """SIGTERM to each of them, those made meanwhile too."""
        signal_all(self.processes, signal.SIGTERM)

    def kill(self) -> None:
        """Kill everything that belongs to the cell, then the supervisor."""
        if self.popen.returncode is not None:
            return
        left = kill_until_gone(self.processes, seconds=_KILL_S)
        self.supervisor.send(signal.SIGKILL)
        self.popen.wait()
        if left:
            raise SandboxError("ending a command", f"processes {sorted(left)} could not be killed")

    def out_of_memory(self) -> bool:
        """Nothing here is bounded by the kernel."""
        return False


class Process:
    """Runs commands as plain processes. Safe to use from several threads at once."""

    name = "process"
    isolates = False
    loopback: Loopback = "host"
    notice: str | None = (
        "no isolation: tools run as plain processes and can read and change everything that you can"
    )

    def policy(self) -> dict[str, Any]:
        """What of this backend decides a command's result, as JSON values; the same on every machine."""
        return {"backend": self.name, "policy": 1, "environment": FIXED_ENVIRONMENT}

    def view(self, place: Place) -> PlacePaths:
        """The paths of the host."""
        return PlacePaths(
            str(place.tree.absolute()),
            str(place.home.absolute()),
            str(place.tmp.absolute()),
            str(place.handover.absolute()) if place.handover is not None else None,
            _files_folder(place),
        )

    def run(
        self,
        command: Command,
        place: Place,
        limits: Limits,
        *,
        stdout: Path,
        stderr: Path,
        cancel: threading.Event | None = None,
        served: Served | None = None,  # noqa: ARG002 - its loopback is not its own
    ) -> ProcessEnd:
        """Run a command to its end; see ``base.Sandbox``."""
        held = self._hold(command, place, limits)
        with held.main, held.supervisor, held.popen:
            folders = tuple(f for f in (place.tree, place.home, place.tmp, place.handover) if f is not None)
            watch = Watch(held, command, limits, outputs=(stdout, stderr), folders=folders, cancel=cancel)
            return watch.run()

    def _hold(self, command: Command, place: Place, limits: Limits) -> _Held:
        marker = f"{_MARKER}={uuid.uuid4().hex}"
        paths = self.view(place)
        variables = {**FIXED_ENVIRONMENT, "HOME": paths.home, "TMPDIR": paths.tmp, **command.env}
        variables[_MARKER] = marker.partition("=")[2]
        try:
            popen = subprocess.Popen(
                [sys.executable, "-I", "-S", supervisor.__file__, *command.argv],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=place.tree,
                env=variables,
                start_new_session=True,
                umask=0o022,
            )
        except (OSError, ValueError) as error:
            raise SandboxError(_TRIED, str(error)) from error
        try:
            wait_ready(popen, _TRIED, "")
            main = children(popen.pid)[0]
            resource.prlimit(main, resource.RLIMIT_CORE, (0, 0))
            with contextlib.suppress(OSError):
                pin(main, limits.cpus)
            return _Held(popen, Pinned(main), Pinned(popen.pid), marker.encode())
        except BaseException:
            popen.kill()
            popen.communicate()
            raise


def _files_folder(place: Place) -> str | None:
    """The host folder below which the mounted files lie as they lie below the folder inside.

    Mounts whose places do not agree on one folder show the first one's.
    """
    for mount in place.mounts:
        inside = Path(mount.inside)
        steps = len(inside.relative_to("/opt/tool").parts) if inside.is_relative_to("/opt/tool") else 0
        host = mount.host.absolute()
        return str(host.parents[steps - 1] if steps else host)
    return None
