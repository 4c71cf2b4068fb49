"""The bubblewrap backend: namespaces of its own for every command, started in a few milliseconds.

What belongs here: the arguments of ``bwrap`` and how a command is held at its gate. What does not: watching
it (``watch``) and choosing a backend (``choose``).

Inside, process 1 is bubblewrap's own reaper. Process 2 is a shell that starts the command at a gate and is
then stopped from outside, so that the command stays unreaped when it ends and the kernel itself says how
(docs/decisions/0005-supervisor.md).
"""

import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from bench_pipeline.errors import SandboxError
from bench_pipeline.execution.sandbox import listener
from bench_pipeline.execution.sandbox.base import (
    FIXED_ENVIRONMENT,
    TOOL_FILES,
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
    parent_and_state,
    running,
    signal_all,
    wait_status,
)
from bench_pipeline.execution.sandbox.cgroups import CellGroup, open_group, own_group
from bench_pipeline.execution.sandbox.keyring import join_new_session_keyring
from bench_pipeline.execution.sandbox.processors import pin
from bench_pipeline.execution.sandbox.system import system_settings
from bench_pipeline.execution.sandbox.watch import Watch, wait_ready

INSIDE = PlacePaths("/workspace", "/home/agent", "/tmp", "/handover", TOOL_FILES)  # noqa: S108 - inside it is private
_TRIED = "starting a bubblewrap sandbox"
_REMEDY = "run `bench doctor`; a project that trusts its tools may set sandbox.allow_process: true"

_ISOLATION = (
    "--unshare-user", "--uid", "1000", "--gid", "1000", "--disable-userns", "--cap-drop", "ALL",
    "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
    "--die-with-parent", "--new-session", "--hostname", "bench",
)  # fmt: skip
_SYSTEM_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_SHM_BYTES = 256 << 20
_REPORT_S = 5.0
_KILL_S = 60.0
_LISTEN_S = 60.0
# Process 1 and the shell that holds the command.
_OWN_TASKS = 2

# The command reports that it is at its gate, and starts when it has read one line. The shell does not go on
# to the last line until it is continued, which nothing of ours does.
GATE = '( echo; read -r gate || exit 125; exec "$@" ); exit $?'


def isolation_arguments() -> list[str]:
    """The arguments that make a sandbox without any folder of a cell."""
    arguments = [*_ISOLATION, "--ro-bind", "/usr", "/usr"]
    for name in _SYSTEM_FOLDERS:
        folder = Path("/", name)
        if folder.is_symlink():
            arguments += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            arguments += ["--ro-bind", str(folder), str(folder)]
    arguments += ["--ro-bind", str(system_settings()), "/etc"]
    # Read-only, because root's own settings below /proc/sys take writes from root even without any capability.
    arguments += ["--proc", "/proc", "--remount-ro", "/proc"]
    arguments += ["--dev", "/dev", "--size", str(_SHM_BYTES), "--tmpfs", "/dev/shm"]  # noqa: S108
    return arguments


def place_arguments(place: Place) -> list[str]:
    """The arguments that show a cell its folders and mounts."""
    bound = [(place.tree, INSIDE.tree, True), (place.home, INSIDE.home, True), (place.tmp, INSIDE.tmp, True)]
    if place.handover is not None:
        bound.append((place.handover, str(INSIDE.handover), True))
    bound += [(mount.host, mount.inside, mount.writable) for mount in place.mounts]
    arguments: list[str] = []
    for host, inside, writable in bound:
        arguments += ["--bind" if writable else "--ro-bind", str(host.absolute()), inside]
    # Last, because it makes the places where the others were mounted.
    return [*arguments, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", INSIDE.tree]


def environment_arguments(command: Command) -> list[str]:
    """The arguments that set exactly the fixed variables and those of the command."""
    variables = {**FIXED_ENVIRONMENT, "HOME": INSIDE.home, "TMPDIR": INSIDE.tmp, **command.env}
    arguments = ["--clearenv"]
    for name, value in variables.items():
        arguments += ["--setenv", name, value]
    return arguments


@dataclass
class _Held:
    """A command at its gate in a bubblewrap sandbox; see ``watch.Held``."""

    popen: subprocess.Popen[bytes]
    outer: Pinned
    init: Pinned
    main: Pinned
    shell: int
    group: CellGroup | None
    enforced: frozenset[str]

    def status(self) -> int | None:
        """From the unreaped process; else, when the shell was woken and reaped it, what bubblewrap reports.

        That report cannot tell a signal from an exit status above 128, and is taken for the signal.
        """
        status = wait_status(self.main.pid)
        if status is None:
            code = self.popen.wait() if self.outer.ended(_REPORT_S) else -1
            if code >= 0:
                status = code - 128 if code > 128 else code << 8
        return status

    def processes(self) -> set[int]:
        """Everything below the sandbox's process 1 but the shell that holds the command."""
        return descendants(self.init.pid) - {self.shell}

    def left(self) -> int:
        """How many of them still run, the main one not counted."""
        return len(running(self.processes() - {self.main.pid}))

    def terminate(self) -> None:
        """SIGTERM to each of them, those made meanwhile too."""
        signal_all(self.processes, signal.SIGTERM)

    def kill(self) -> None:
        """End the process namespace, and with it everything inside."""
        self.init.send(signal.SIGKILL)
        if not self.init.ended(_KILL_S) or not self.outer.ended(_KILL_S):
            raise SandboxError("ending a sandbox", "its processes could not be killed within a minute")
        self.popen.wait()
        if self.group is not None:
            self.group.remove()

    def out_of_memory(self) -> bool:
        """Whether the kernel killed for the memory limit."""
        return self.group is not None and self.group.out_of_memory


class Bubblewrap:
    """Runs commands in bubblewrap sandboxes. Safe to use from several threads at once."""

    name = "bubblewrap"
    isolates = True
    loopback: Loopback = "own"
    notice: str | None = None

    def __init__(self, program: str) -> None:
        self._program = program

    def policy(self) -> dict[str, Any]:
        """What of this backend decides a command's result, as JSON values; the same on every machine."""
        return {
            "backend": self.name,
            "policy": 1,
            "network": "none",
            "uid": 1000,
            "paths": [INSIDE.tree, INSIDE.home, INSIDE.tmp],
            "environment": FIXED_ENVIRONMENT,
            "shm_bytes": _SHM_BYTES,
        }

    def view(self, place: Place) -> PlacePaths:
        """The paths under which a command will see its place."""
        return PlacePaths(
            INSIDE.tree,
            INSIDE.home,
            INSIDE.tmp,
            INSIDE.handover if place.handover is not None else None,
            TOOL_FILES if place.mounts else None,
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
        served: Served | None = None,
    ) -> ProcessEnd:
        """Run a command to its end; see ``base.Sandbox``."""
        popen, status = self._start(command, place)
        # Open to the end: bubblewrap dies of writing to a pipe that nobody reads, and its last word is lost.
        with os.fdopen(status, "rb") as facts:
            held = _hold(popen, facts, limits)
            with held.main, held.init, held.outer, held.popen:
                if served is not None:
                    _serve(held, served)
                folders = tuple(
                    f for f in (place.tree, place.home, place.tmp, place.handover) if f is not None
                )
                return Watch(
                    held, command, limits, outputs=(stdout, stderr), folders=folders, cancel=cancel
                ).run()

    def _start(self, command: Command, place: Place) -> tuple[subprocess.Popen[bytes], int]:
        status_read, status_write = os.pipe()
        # In a file and not on the command line, which every user of the host and the sandbox itself can read.
        words = os.memfd_create("bench-arguments")
        try:
            arguments = [
                *isolation_arguments(), *place_arguments(place), *environment_arguments(command),
                "--json-status-fd", str(status_write),
            ]  # fmt: skip
            if any("\0" in word for word in arguments):
                raise ValueError("a path or variable holds a NUL character")  # noqa: TRY301 - handled like Popen's own
            os.write(words, b"".join(os.fsencode(word) + b"\0" for word in arguments))
            os.lseek(words, 0, os.SEEK_SET)
            join_new_session_keyring()
            popen = subprocess.Popen(
                [
                    *_usual_signals(),
                    self._program,
                    "--args",
                    str(words),
                    "--",
                    "/bin/sh",
                    "-c",
                    GATE,
                    "sh",
                    *command.argv,
                ],
                # Ctrl-C of a terminal reaches its whole process group; cells are ended by us alone.
                start_new_session=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env={},
                pass_fds=(words, status_write),
                umask=0o022,
            )
        except (OSError, ValueError) as error:
            os.close(status_read)
            raise SandboxError(_TRIED, str(error), _REMEDY) from error
        finally:
            os.close(words)
            os.close(status_write)
        return popen, status_read


def _usual_signals() -> list[str]:
    """What gives signals their usual meaning again, where whoever started bench had them ignored.

    A background job and nohup do; no shell can undo it, and every command of the cell would be deaf to Ctrl-C.
    """
    # These two Python ignores by itself, and restores for what it starts.
    others = signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}
    if all(signal.getsignal(number) != signal.SIG_IGN for number in others):
        return []
    return ["/usr/bin/env", "--default-signal"]


def _hold(popen: subprocess.Popen[bytes], facts: BinaryIO, limits: Limits) -> _Held:
    """Wait until a sandbox is at the gate of its command, freeze the gate-keeper, and put the limits on."""
    try:
        wait_ready(popen, _TRIED, _REMEDY)
        init = int(json.loads(facts.readline())["child-pid"])
        shell = children(init)[0]
        main = children(shell)[0]
        _freeze(shell)
        return _Held(
            popen, Pinned(popen.pid), Pinned(init), Pinned(main), shell, *_limit(limits, init, shell, main)
        )
    except BaseException as error:
        popen.kill()
        popen.communicate()
        if isinstance(error, (OSError, LookupError, ValueError)):
            raise SandboxError(_TRIED, f"it ended before its command began: {error}", _REMEDY) from error
        raise


def _serve(held: _Held, served: Served) -> None:
    """Make the listening socket in the network of a held sandbox, and hand it over; ends the sandbox if it cannot."""
    try:
        served.take(_listen_in(held.init.pid, served.port))
    except BaseException:
        held.kill()
        raise


def _listen_in(pid: int, port: int) -> socket.socket:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        done = subprocess.run(
            [sys.executable, "-I", "-S", listener.__file__, str(pid), str(port), str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_LISTEN_S,
        )
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise SandboxError(_TRIED, f"no port could be opened in its network: {said}", _REMEDY)
        return socket.socket(fileno=socket.recv_fds(ours, 1, 1)[1][0])


def _freeze(pid: int) -> None:
    """Stop a process, and return when it has stopped: until then it could reap the command."""
    os.kill(pid, signal.SIGSTOP)
    deadline = time.monotonic() + 10
    while (found := parent_and_state(pid)) is not None and found[1] not in {"T", "t"}:
        if time.monotonic() > deadline:
            raise SandboxError(_TRIED, "the process that holds the command did not stop", _REMEDY)
        time.sleep(0.0001)


def _limit(limits: Limits, init: int, shell: int, main: int) -> tuple[CellGroup | None, frozenset[str]]:
    resource.prlimit(main, resource.RLIMIT_CORE, (0, 0))
    group = open_group(limits, own_group())
    enforced: frozenset[str] = frozenset()
    if group is not None:
        for pid in (init, shell, main):
            group.add(pid)
        enforced = group.enforced
    if "pids" not in enforced and limits.pids is not None and _counts_by_namespace():
        most = limits.pids + _OWN_TASKS
        resource.prlimit(main, resource.RLIMIT_NPROC, (most, most))
        enforced |= {"pids"}
    if "cpus" not in enforced:
        pin(main, limits.cpus)
        if limits.cpus is None or limits.cpus >= len(os.sched_getaffinity(0)):
            enforced |= {"cpus"}
    return group, enforced


@cache
def _counts_by_namespace() -> bool:
    """Whether RLIMIT_NPROC counts the tasks of one sandbox only, and holds for us: not for root, nor before 5.14."""
    numbers = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return os.geteuid() != 0 and numbers is not None and (int(numbers[1]), int(numbers[2])) >= (5, 14)
