"""Choosing a sandbox backend, and saying what to do when there is none."""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from bench_pipeline.errors import SandboxError, UsageError
from bench_pipeline.execution.sandbox.base import Sandbox
from bench_pipeline.execution.sandbox.bubblewrap import Bubblewrap, isolation_arguments
from bench_pipeline.execution.sandbox.docker import Docker
from bench_pipeline.execution.sandbox.process import Process

BACKENDS = ("auto", "bubblewrap", "docker", "process")
# The first release with --disable-userns, without which a cell could make namespaces of its own.
_OLDEST_BUBBLEWRAP = (0, 8)
_ALLOW = "set sandbox.allow_process: true in config.yaml to run tools without isolation"
_PROBE_S = 20.0


def open_sandbox(backend: str, allow_process: bool) -> Sandbox:
    """A working sandbox.

    Args:
        backend: ``bubblewrap``, ``docker`` or ``process``; ``auto`` takes the first that works, ``process``
            only when ``allow_process``.
        allow_process: whether running without isolation was opted in to; naming ``process`` opts in.

    Raises:
        SandboxError: none works; the text says what to install or to set.
        UsageError: there is no such backend.
    """
    if backend not in BACKENDS:
        raise UsageError(
            "opening a sandbox", f"{backend} is no backend", f"choose one of {', '.join(BACKENDS)}"
        )
    if backend == "process":
        return Process()
    if backend == "bubblewrap":
        return Bubblewrap(_usable(*_bubblewrap()))
    if backend == "docker":
        return Docker(_usable(*_docker()))
    program, problem = _bubblewrap()
    if program:
        return Bubblewrap(program)
    docker, docker_problem = _docker()
    if docker:
        return Docker(docker)
    if allow_process:
        return Process()
    raise SandboxError("opening a sandbox", f"{problem}; {docker_problem}", f"do either, or {_ALLOW}")


def _usable(program: str, problem: str) -> str:
    if not program:
        raise SandboxError("opening a sandbox", problem, f"or {_ALLOW}")
    return program


@cache
def _bubblewrap() -> tuple[str, str]:
    """The program when a sandbox could really be started, else an empty text and what is wrong."""
    program = shutil.which("bwrap")
    if program is None:
        return "", "bubblewrap is not installed (apt-get install bubblewrap, dnf install bubblewrap)"
    version = _said([program, "--version"])[1]
    numbers = re.search(r"(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < _OLDEST_BUBBLEWRAP:
        return "", f"bubblewrap is {version or 'of an unknown version'}, 0.8 or newer is needed"
    worked, words = _said([program, *isolation_arguments(), "--", "/bin/sh", "-c", "exit 0"])
    if worked:
        return program, ""
    return "", f"bubblewrap cannot start a sandbox: {words} ({_namespace_advice()})"


def _namespace_advice() -> str:
    switches = {
        "kernel.unprivileged_userns_clone": "0",
        "kernel.apparmor_restrict_unprivileged_userns": "1",
        "user.max_user_namespaces": "0",
    }
    for name, bad in switches.items():
        try:
            found = Path("/proc/sys", name.replace(".", "/")).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if found == bad:
            return f"this host forbids user namespaces: sysctl {name} is {found}"
    return "in a container, it needs leave for user namespaces and mounts"


@cache
def _docker() -> tuple[str, str]:
    """The program when an engine answers, else an empty text and what is wrong."""
    program = shutil.which("docker")
    if program is None:
        return "", "docker is not installed"
    worked, words = _said([program, "version", "--format", "{{.Server.Version}}"])
    return (program, "") if worked else ("", f"docker has no engine: {words} (start it)")


def _said(argv: list[str]) -> tuple[bool, str]:
    """Whether a program succeeded, and its last line."""
    environment = {name: value for name, value in os.environ.items() if name.startswith("DOCKER_")}
    environment["PATH"] = os.environ.get("PATH", os.defpath)
    try:
        done = subprocess.run(
            argv,
            env=environment,
            capture_output=True,
            timeout=_PROBE_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return False, str(error)
    words = (done.stdout + done.stderr).decode("utf-8", "replace").strip().splitlines()
    return done.returncode == 0, words[-1] if words else ""
