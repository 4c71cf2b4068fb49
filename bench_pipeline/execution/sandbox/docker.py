"""The docker backend: a container per command, through the ``docker`` command.

What belongs here: the arguments of ``docker`` and how a command is held at its gate in a container. What does
not: watching it (``watch``).

The container's own process only waits; the command is started in it with ``docker exec``, so that what it
leaves behind can be counted, by the engine, after it has ended.
"""

import os
import subprocess
import threading
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_pipeline.errors import SandboxError
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
from bench_pipeline.execution.sandbox.bubblewrap import GATE, INSIDE
from bench_pipeline.execution.sandbox.census import Pinned, wait_status
from bench_pipeline.execution.sandbox.watch import Watch, wait_ready

DEFAULT_IMAGE = "debian:12-slim"
_TRIED = "starting a container"
_REMEDY = "look at `docker info`"
# What runs in a container that holds no command: its init, and the shell that waits with its sleep.
_WAIT = ("/bin/sh", "-c", "while :; do sleep 3600; done")
_OWN_PROCESSES = 3
_ENGINE_S = 60.0


def run_arguments(name: str, place: Place, limits: Limits, *, user: str) -> list[str]:
    """The words after ``docker`` that start the waiting container ``name`` for ``place``."""
    words = [
        "run", "--detach", "--rm", "--init", "--name", name, "--hostname", "bench", "--user", user,
        "--network", "none", "--ipc", "private", "--read-only", "--cap-drop", "ALL",
        "--security-opt", "no-new-privileges", "--pull", "never", "--workdir", INSIDE.tree,
    ]  # fmt: skip
    if limits.memory_bytes is not None:
        words += ["--memory", str(limits.memory_bytes), "--memory-swap", str(limits.memory_bytes)]
    if limits.pids is not None:
        words += ["--pids-limit", str(limits.pids + _OWN_PROCESSES)]
    if limits.cpus is not None:
        words += ["--cpus", f"{limits.cpus:g}"]
    bound = [(place.tree, INSIDE.tree, True), (place.home, INSIDE.home, True), (place.tmp, INSIDE.tmp, True)]
    if place.handover is not None:
        bound.append((place.handover, str(INSIDE.handover), True))
    bound += [(mount.host, mount.inside, mount.writable) for mount in place.mounts]
    for host, inside, writable in bound:
        words += ["--mount", _mount(host, inside, writable=writable)]
    return [*words, "--", place.image or DEFAULT_IMAGE, *_WAIT]


def _mount(host: Path, inside: str, *, writable: bool) -> str:
    # The value is a line of comma-separated fields in which a field with a comma or quote is quoted.
    fields = ["type=bind", f"source={host.absolute()}", f"target={inside}"] + (
        [] if writable else ["readonly"]
    )
    return ",".join(
        '"' + field.replace('"', '""') + '"' if set(field) & set(',"') else field for field in fields
    )


def exec_arguments(name: str, command: Command) -> list[str]:
    """The words after ``docker`` that start ``command`` at its gate, without the values of variables."""
    words = ["exec", "--interactive", "--workdir", INSIDE.tree]
    for variable in variables(command):
        words += ["--env", variable]
    return [*words, name, "/bin/sh", "-c", GATE, "sh", *command.argv]


def variables(command: Command) -> dict[str, str]:
    """The environment of a command in a container."""
    return {**FIXED_ENVIRONMENT, "HOME": INSIDE.home, "TMPDIR": INSIDE.tmp, **command.env}


@dataclass
class _Held:
    """A command at its gate in a container; see ``watch.Held``."""

    popen: subprocess.Popen[bytes]
    main: Pinned
    docker: "Docker"
    container: str
    enforced: frozenset[str] = frozenset({"memory", "pids", "cpus"})
    killed_for_memory: bool = False

    def status(self) -> int | None:
        """That of the docker command, which tells a signal from an exit status no more than a shell does."""
        return wait_status(self.main.pid)

    def processes(self) -> set[int]:
        """None: the processes belong to the engine."""
        return set()

    def left(self) -> int:
        """How many processes the engine counts in the container beside its own."""
        listed = self.docker.ask("top", self.container, "-eo", "pid")
        return max(0, len(listed.split()) - 1 - _OWN_PROCESSES)

    def terminate(self) -> None:
        """SIGTERM to every process in the container but its init."""
        self.docker.ask("exec", self.container, "/bin/sh", "-c", "kill -TERM -1")

    def kill(self) -> None:
        """Remove the container with everything in it."""
        if self.popen.returncode is not None:
            return
        state = self.docker.ask("inspect", "--format", "{{.State.OOMKilled}}", self.container)
        self.killed_for_memory = state.strip() == "true"
        self.docker.ask("rm", "--force", self.container)
        self.popen.kill()
        self.popen.wait()

    def out_of_memory(self) -> bool:
        """Whether the engine says that the container ran out of memory."""
        return self.killed_for_memory


class Docker:
    """Runs commands in containers. Safe to use from several threads at once."""

    name = "docker"
    isolates = True
    loopback: Loopback = "closed"
    notice: str | None = None

    def __init__(self, program: str) -> None:
        self._program = program

    def policy(self) -> dict[str, Any]:
        """What of this backend decides a command's result, as JSON values; the same on every machine."""
        return {
            "backend": self.name,
            "policy": 1,
            "network": "none",
            "image": DEFAULT_IMAGE,
            "environment": FIXED_ENVIRONMENT,
        }

    def view(self, place: Place) -> PlacePaths:
        """The paths under which a command will see its place."""
        handover = INSIDE.handover if place.handover is not None else None
        return PlacePaths(
            INSIDE.tree, INSIDE.home, INSIDE.tmp, handover, TOOL_FILES if place.mounts else None
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
        with held.main, held.popen:
            folders = tuple(f for f in (place.tree, place.home, place.tmp, place.handover) if f is not None)
            return Watch(
                held, command, limits, outputs=(stdout, stderr), folders=folders, cancel=cancel
            ).run()

    def ask(self, *words: str) -> str:
        """What a docker command prints; empty when it fails."""
        done = self._call(list(words))
        return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""

    def _call(self, words: list[str]) -> "subprocess.CompletedProcess[bytes]":
        try:
            return subprocess.run(
                [self._program, *words],
                env=_client_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_ENGINE_S,
                check=False,
            )
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise SandboxError(_TRIED, str(error), _REMEDY) from error

    def _hold(self, command: Command, place: Place, limits: Limits) -> _Held:
        container = f"bench-{uuid.uuid4().hex}"
        user = f"{os.getuid()}:{os.getgid()}"
        started = self._call(run_arguments(container, place, limits, user=user))
        if started.returncode != 0:
            raise SandboxError(_TRIED, started.stderr.decode("utf-8", "replace").strip(), _REMEDY)
        try:
            popen = subprocess.Popen(
                [self._program, *exec_arguments(container, command)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env={**variables(command), **_client_environment(path=False)},
                start_new_session=True,
            )
            wait_ready(popen, _TRIED, _REMEDY)
        except BaseException:
            self.ask("rm", "--force", container)
            raise
        return _Held(popen, Pinned(popen.pid), self, container)


def _client_environment(*, path: bool = True) -> dict[str, str]:
    """What the docker command needs to find its engine; the rest of the host's environment stays out."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("DOCKER_")}
    if path:
        kept["PATH"] = os.environ.get("PATH", os.defpath)
        kept["HOME"] = os.environ.get("HOME", "/")
    return kept
