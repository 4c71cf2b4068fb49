"""Checking a candidate: a second fresh tree, the overlay, the hidden tests over it, the verify command.

What a check's result means is ``outcome``'s; this module only measures it. The tree that the tool worked in is
never used: nothing that it left behind outside its candidate can reach the check.
"""

import os
import shutil
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench_pipeline.execution.job import Kit
from bench_pipeline.execution.overlay import Overlay, files_of_patch
from bench_pipeline.execution.results import TestResults, parse_results
from bench_pipeline.execution.sandbox import Command, Limits, Place, ProcessEnd
from bench_pipeline.tasks import PatchError, Task

# A test report is text that people read; more is a fault or an attack.
MAX_RESULTS_BYTES = 64 * 1024 * 1024
# Of what a failed setup command said last, as much as a reason can hold.
_SHOWN_BYTES = 300


@dataclass(frozen=True)
class Verification:
    """What the check of one candidate measured.

    ``problem`` is set, and nothing else is known, when the check itself could not be made: hidden tests that
    do not apply to the base, or a failed setup command. ``missing`` are validated test ids that did not pass;
    ``unmet`` the signals of a golden task that do not hold.
    """

    problem: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    memory_killed: bool = False
    cancelled: bool = False
    results: TestResults | None = None
    expected: tuple[str, ...] = ()
    unmet: tuple[str, ...] = ()
    duration_s: float = 0.0
    evidence: dict[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> tuple[str, ...]:
        """Validated tests that did not run and pass, sorted."""
        passed = set(self.results.passed) if self.results else set()
        return tuple(sorted(set(self.expected) - passed))

    @property
    def passed(self) -> bool:
        """Exit status 0, every signal holds and, where results are reported, every expected test passed."""
        unmet = self.missing or self.unmet or self._unreadable
        return self.problem is None and self.exit_code == 0 and not unmet

    @property
    def _unreadable(self) -> bool:
        return self.results is not None and self.results.problem is not None


def verify_candidate(
    task: Task,
    base_tree: Path,
    overlay: Overlay | None,
    *,
    kit: Kit,
    limits: Limits,
    setup_limits: Limits,
) -> Verification:
    """Check ``overlay`` (None: the base as it is) against the task's hidden tests.

    ``limits`` bound the verify command, ``setup_limits`` each setup command.
    """
    started = time.monotonic()
    try:
        hidden = files_of_patch(base_tree, task.verify.tests_patch)
    except PatchError as error:
        return Verification(problem=f"hidden tests do not apply to the base: {error.wrong}")
    with kit.workspaces.open(base_tree) as workspace:
        place, logs = workspace.place, workspace.logs
        problem = run_setup(task.environment.setup, "environment.setup", place, logs, kit, setup_limits)
        if problem is None:
            if overlay is not None:
                overlay.apply(place.tree)
            hidden.apply(place.tree)
            problem = run_setup(task.verify.setup, "verify.setup", place, logs, kit, setup_limits)
        if problem is not None:
            cancelled = kit.cancel.is_set()
            return Verification(problem=problem, cancelled=cancelled, duration_s=time.monotonic() - started)
        report = _clear_report(task, place)
        end = kit.sandbox.run(
            Command(("/bin/sh", "-c", task.verify.command)),
            place,
            limits,
            stdout=logs / "verify.stdout",
            stderr=logs / "verify.stderr",
            cancel=kit.cancel,
        )
        return _measured(task, end, report, place.tree, kit, time.monotonic() - started)


def _measured(
    task: Task, end: ProcessEnd, report: str | None, tree: Path, kit: Kit, duration_s: float
) -> Verification:
    evidence = {
        "verify_stdout": kit.keep(end.stdout, "text/plain"),
        "verify_stderr": kit.keep(end.stderr, "text/plain"),
    }
    results = None
    if report is not None and task.verify.results is not None:
        data = read_inside(tree, report, MAX_RESULTS_BYTES)
        if data is None:
            results = TestResults((), (), (), problem=f"no test report at {report}")
        else:
            evidence["test_results"] = kit.keep(data, "text/plain")
            results = parse_results(task.verify.results.format, data)
    return Verification(
        exit_code=end.exit_code,
        signal=end.signal,
        timed_out=end.timed_out,
        memory_killed=end.memory_killed,
        cancelled=end.cancelled,
        results=results,
        expected=task.validation.tests if results is not None and task.validation else (),
        duration_s=duration_s,
        evidence=evidence,
    )


def run_setup(
    commands: tuple[str, ...], what: str, place: Place, logs: Path, kit: Kit, limits: Limits
) -> str | None:
    """Run setup commands in order, with a HOME and a temporary folder of their own that are thrown away.

    Only what they leave in the tree reaches the next phase, which is why a manifest of the tree is their whole
    effect. Returns None, or what went wrong.
    """
    if not commands:
        return None
    scratch = place.scratch()
    for number, command in enumerate(commands, start=1):
        end = kit.sandbox.run(
            Command(("/bin/sh", "-c", command)),
            scratch,
            limits,
            stdout=logs / f"{what}.{number}.stdout",
            stderr=logs / f"{what}.{number}.stderr",
            cancel=kit.cancel,
        )
        if end.cancelled:
            return f"{what}[{number - 1}] was interrupted"
        if end.timed_out:
            return f"{what}[{number - 1}] ran out of time"
        if end.exit_code != 0:
            return f"{what}[{number - 1}] ended with {describe_end(end)}: {_last_words(end.stderr)}"
    return None


def describe_end(end: ProcessEnd) -> str:
    """How a process ended, in words: its exit status or the signal that killed it."""
    if end.memory_killed:
        return "a memory kill"
    return f"signal {end.signal}" if end.signal is not None else f"exit status {end.exit_code}"


def _last_words(stderr: Path) -> str:
    return end_of(stderr, _SHOWN_BYTES).decode("utf-8", "replace").strip() or "no message"


def end_of(path: Path, limit: int) -> bytes:
    """The last ``limit`` bytes of what was printed: how a command ended stands there."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - limit))
        return file.read()


def _clear_report(task: Task, place: Place) -> str | None:
    """The report's path below the tree, with whatever the candidate put there removed."""
    if task.verify.results is None:
        return None
    path = task.verify.results.path
    target = place.tree / path
    if not plain_parents(place.tree, path):
        return path
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)
    return path


def plain_parents(tree: Path, path: str) -> bool:
    """Whether no folder on the way to ``path`` is a link."""
    current = tree
    for part in Path(path).parts[:-1]:
        current = current / part
        if current.is_symlink():
            return False
    return True


def read_inside(tree: Path, path: str, limit: int) -> bytes | None:
    """At most ``limit`` bytes of a plain file below ``tree``; None when it is absent, a link, or no plain file."""
    target = tree / path
    if not plain_parents(tree, path):
        return None
    try:
        handle = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read(limit)
