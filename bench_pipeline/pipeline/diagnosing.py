"""What this machine and this project can and cannot do: each claim is tried, not guessed.

What belongs here: the checks of ``bench doctor``. What does not: repairing anything; nothing is left behind.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bench_pipeline import __version__
from bench_pipeline.errors import BenchError, NotFoundError

if TYPE_CHECKING:
    from bench_pipeline.execution.sandbox import Limits, ProcessEnd
    from bench_pipeline.pipeline.bench import Bench

# note: worth knowing; problem: something that was asked for will not work.
Status = Literal["ok", "note", "problem"]

_LIBRARIES = ("dagster", "dagster-webserver", "duckdb", "pandas", "pyarrow", "pydantic", "pyyaml", "scipy")
# Runs of 200 cells with their trees fit into this; below it a full disk is near.
_LOW_DISK_BYTES = 2 << 30


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: how it is, what was found, and what to do when that is not enough."""

    check: str
    status: Status
    found: str
    advice: str = ""


@dataclass
class Diagnosis:
    """All checks; ``ok`` when no check is a problem."""

    checks: list[Check] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether evaluations can be run here."""
        return all(check.status != "problem" for check in self.checks)

    def document(self) -> dict[str, object]:
        """As a JSON-able mapping."""
        return {"ok": self.ok, "checks": [asdict(check) for check in self.checks]}


def diagnose(bench: "Bench") -> Diagnosis:
    """Look at everything; a check that cannot be made is a finding too, never an exception."""
    checks = [*_versions(), _git(), *_project(bench), *_sandboxes(bench), *_limits(bench)]
    checks += [_store(bench), _disk(bench), _dagster_home(bench), *_dagster_storage(bench)]
    return Diagnosis([*checks, *_tools(bench), *_notifications(bench)])


def _versions() -> Iterator[Check]:
    yield Check("bench_pipeline", "ok", __version__)
    yield Check(
        "python", "ok", f"{platform.python_version()} on {platform.platform(terse=True)}", sys.executable
    )
    for name in _LIBRARIES:
        try:
            yield Check(name, "ok", metadata.version(name))
        except metadata.PackageNotFoundError:
            yield Check(name, "problem", "is not installed", "install bench-pipeline again")


def _git() -> Check:
    advice = "install git: base trees come out of repositories"
    try:
        done = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return Check("git", "problem", str(error), advice)
    return Check("git", "ok", done.stdout.strip().removeprefix("git version "))


def _failed(check: str, error: BenchError, status: Status = "problem") -> Check:
    return Check(check, status, error.wrong, error.remedy)


def _project(bench: "Bench") -> Iterator[Check]:
    try:
        project = bench.project
    except NotFoundError as error:
        yield _failed("project", error, "note")
        return
    except BenchError as error:
        yield _failed("project", error)
        return
    yield Check("project", "ok", str(project.root))
    for name, loaded in (("tools", lambda: bench.registry), ("prices", lambda: bench.prices)):
        try:
            loaded()
        except BenchError as error:
            yield _failed(name, error)
    try:
        problems = bench.tasks.problems
    except BenchError as error:
        yield _failed("tasks", error)
        return
    if problems:
        rest = "" if len(problems) == 1 else f", and {len(problems) - 1} more"
        yield Check("tasks", "problem", f"{problems[0]}{rest}", "bench task list shows all")


def _sandboxes(bench: "Bench") -> Iterator[Check]:
    """Every backend, tried by running a command in it; then the one that the project would use."""
    for backend in ("bubblewrap", "docker", "process"):
        name = f"sandbox {backend}"
        try:
            end, words = _try(bench, backend)
        except BenchError as error:
            yield _failed(name, error, "note")
            continue
        if end.exit_code == 0:
            isolated = "no isolation" if backend == "process" else "isolated"
            yield Check(name, "ok", f"works, {isolated}, a command took {end.duration_s:.2f} s")
        else:
            yield Check(name, "note", f"a command failed in it: {words or end}")
    try:
        chosen = bench.sandbox
    except NotFoundError:
        return
    except BenchError as error:
        yield _failed("sandbox of the project", error)
        return
    advice = "" if chosen.isolates else "install bubblewrap to keep tools away from this machine"
    yield Check("sandbox of the project", "ok" if chosen.isolates else "note", chosen.name, advice)


def _try(bench: "Bench", backend: str) -> "tuple[ProcessEnd, str]":
    """Run a command that does nothing; how it ended and what it said. Raises SandboxError."""
    from bench_pipeline.execution.sandbox import Command, Place, open_sandbox

    sandbox = open_sandbox(backend, allow_process=True)
    with tempfile.TemporaryDirectory(prefix="bench-doctor-") as name:
        folder = Path(name)
        for part in ("tree", "home", "tmp"):
            (folder / part).mkdir()
        place = Place(folder / "tree", folder / "home", folder / "tmp")
        command = Command(("/bin/sh", "-c", "exit 0"))
        stderr = folder / "stderr"
        end = sandbox.run(command, place, _bounds(bench), stdout=folder / "stdout", stderr=stderr)
        return end, stderr.read_text("utf-8", "replace").strip() if stderr.exists() else ""


def _bounds(bench: "Bench") -> "Limits":
    """The project's limits, or those that a project has by default, with a short time."""
    from bench_pipeline.execution.sandbox import Limits
    from bench_pipeline.project import Resources

    try:
        resources = bench.project.config.defaults.resources
    except BenchError:
        resources = Resources()
    return Limits(wall_s=20.0, cpus=resources.cpus, memory_bytes=resources.memory, pids=resources.pids)


def _limits(bench: "Bench") -> Iterator[Check]:
    """Which of the project's limits its sandbox cannot enforce here."""
    try:
        name = bench.sandbox.name
        end, _ = _try(bench, name)
    except BenchError:
        return
    for sentence in end.limits_not_enforced:
        yield Check(f"limits of {name}", "note", sentence)
    if not end.limits_not_enforced:
        yield Check(f"limits of {name}", "ok", "time, processors, memory and processes are enforced")


def _store(bench: "Bench") -> Check:
    """Whether the store can be written, by writing and removing a small file."""
    try:
        store = bench.store
        was_there = store.root is None or store.root.exists()
        probe = f"doctor-{uuid.uuid4().hex}"
        store.files.write(probe, b"")
        store.files.delete(probe)
    except NotFoundError as error:
        return _failed("store", error, "note")
    except BenchError as error:
        return _failed("store", error)
    if store.root is not None and not was_there:
        store.root.rmdir()
    return Check("store", "ok", f"{store.location} is writable")


def _disk(bench: "Bench") -> Check:
    """Free space where trees and results go."""
    try:
        place = bench.project.root
    except BenchError:
        place = Path.cwd()
    free = shutil.disk_usage(place).free
    low = free < _LOW_DISK_BYTES
    return Check(
        "disk", "note" if low else "ok", f"{free / (1 << 30):.1f} GiB free", "make room" if low else ""
    )


def _dagster_home(bench: "Bench") -> Check:
    chosen = os.environ.get("DAGSTER_HOME")
    if chosen is None:
        try:
            return Check("DAGSTER_HOME", "ok", f"not set: {bench.project.local_dir / 'dagster'} is used")
        except BenchError:
            return Check("DAGSTER_HOME", "ok", "not set: each project's own instance is used")
    if not Path(chosen).is_absolute():
        return Check(
            "DAGSTER_HOME", "problem", f"{chosen!r} is not absolute", "set an absolute path, or unset it"
        )
    if not os.access(chosen, os.W_OK | os.X_OK):
        return Check(
            "DAGSTER_HOME", "problem", f"{chosen} is not a folder that can be written", "make it, or unset it"
        )
    return Check("DAGSTER_HOME", "ok", f"{chosen} is used instead of the project's own instance")


def _dagster_storage(bench: "Bench") -> Iterator[Check]:
    """Whether the library for the database that the project names is there."""
    try:
        url = bench.project.config.dagster.storage_url
    except BenchError:
        return
    if url is not None and find_spec("dagster_postgres") is None:
        found = "dagster.storage_url is set, and dagster-postgres is not installed"
        yield Check("Dagster storage", "problem", found, "pip install 'bench-pipeline[postgres]'")


def _tools(bench: "Bench") -> Iterator[Check]:
    """Tools whose program or credentials are missing here; that matters only to evaluations that use them."""
    from bench_pipeline.execution.sandbox.base import SEARCH_PATH

    try:
        tools = bench.registry.tools
    except BenchError:
        return
    for name, definition in tools.items():
        command = getattr(getattr(definition, "invoke", None), "command", ())
        wanted = getattr(getattr(definition, "credentials", None), "env", ())
        missing = (
            [f"{command[0]} is not in {SEARCH_PATH}"]
            if command and not _found(command[0], SEARCH_PATH)
            else []
        )
        missing += [f"{variable} is not set" for variable in wanted if not os.environ.get(variable)]
        if missing:
            yield Check(f"tool {name}", "note", "; ".join(missing), "needed by evaluations that use it")
        elif command:
            yield Check(f"tool {name}", "ok", f"{command[0]} is there")


def _found(program: str, search_path: str) -> bool:
    return "{" in program or shutil.which(program, path=search_path) is not None


def _notifications(bench: "Bench") -> Iterator[Check]:
    """Whether each target of notifications can be told, and what waits for it."""
    from bench_pipeline.pipeline.notifying import target_states

    try:
        states = target_states(bench)
    except BenchError:
        return
    for state in states:
        said = [f"{state.waiting} waiting, {state.given_up} given up"]
        said += [f"the last try: {state.problem}"] if state.problem else []
        said += [] if state.url_set else [f"{state.url_env} is not set here"]
        well = state.url_set and not state.problem
        advice = "" if well else "bench notify --test tries it"
        yield Check(f"notifications {state.target}", "ok" if well else "note", "; ".join(said), advice)
