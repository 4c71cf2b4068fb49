"""Whether a task measures what it claims: its base fails the hidden tests, its reference passes them.

What belongs here: running both checks in the project's sandbox, judging them, recording what was found. What
does not: the checks themselves (``execution.verification``) and the record's form (``tasks.validation``).
"""

import dataclasses
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bench_pipeline.errors import BenchError, SandboxError, StoreError
from bench_pipeline.pipeline.working import work
from bench_pipeline.tasks import (
    PatchError,
    Task,
    TaskValidation,
    brought_by_tests,
    stale,
    touched_by_reference,
    validation_fingerprint,
    write_validation,
)
from bench_pipeline.tasks.leaks import find_leaks

if TYPE_CHECKING:
    from bench_pipeline.execution.job import Kit
    from bench_pipeline.execution.overlay import Overlay
    from bench_pipeline.execution.verification import Verification
    from bench_pipeline.pipeline.bench import Bench

# What a shell says when it cannot start a command: a failure that proves nothing about the base.
_NO_COMMAND = {
    126: "verify.command could not be started: a program in it may not be executed (exit status 126)",
    127: "verify.command could not be started: a program in it was not found in the sandbox (exit status 127)",
}
_SHOWN_NAMES = 5
_SHOWN_LINES = 12


@dataclass(frozen=True)
class Validated:
    """What validating one task found; it is valid when ``reasons`` is empty.

    ``base_failed`` and ``reference_passed`` are None where that was not measured; ``flaky`` are tests whose
    result differed between repetitions; ``output`` are the last lines of a check that went wrong.
    """

    task_id: str
    reasons: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    base_failed: bool | None = None
    reference_passed: bool | None = None
    tests: tuple[str, ...] = ()
    base_tests_run: int | None = None
    reference_tests_run: int | None = None
    flaky: tuple[str, ...] = ()
    seconds: float | None = None
    output: str | None = None

    def row(self) -> dict[str, object]:
        """The finding as a row for people and for JSON."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}
        return {"task_id": plain.pop("task_id"), "valid": not self.reasons, **plain}


def tasks_to_validate(
    bench: "Bench", ids: Sequence[str], tiers: Sequence[str], *, every: bool
) -> tuple[Task, ...]:
    """The tasks that were named; without ids those whose validation does not hold, or ``every`` one."""
    chosen = bench.tasks.selected(ids, tiers)
    return chosen if ids or every else tuple(task for task in chosen if stale(task) is not None)


def unfit_tasks(tasks: Iterable[Task]) -> dict[str, str]:
    """Why, by task, for the tasks that may not be measured with: never validated, stale or not valid."""
    reasons = {task.id: stale(task) for task in tasks}
    return {task_id: why for task_id, why in reasons.items() if why is not None}


def validate_tasks(
    bench: "Bench", tasks: Sequence[Task], *, repeat: int = 1, allow_leaks: bool = False
) -> Iterator[Validated]:
    """Validate tasks side by side, and record in each task's document what was measured.

    Args:
        bench: the project.
        tasks: what to validate.
        repeat: how often each check runs; differences between repetitions are faults.
        allow_leaks: validate although the prompt gives the fix away.

    Raises:
        SandboxError: no sandbox is at hand.
    """
    kit = bench.kit()

    def one(task: Task) -> Validated:
        return _validate(bench, kit, task, repeat=repeat, allow_leaks=allow_leaks)

    with bench.interrupts(bench.stop):
        yield from work(tasks, one, workers=bench.project.config.defaults.concurrency, stop=bench.stop)


def _validate(bench: "Bench", kit: "Kit", task: Task, *, repeat: int, allow_leaks: bool) -> Validated:
    from bench_pipeline.execution.overlay import overlay_from_patch

    started = time.monotonic()
    # Earlier results must not decide: every test that the reference passes is found anew.
    fresh = dataclasses.replace(task, validation=None)
    warnings: tuple[str, ...] = ()
    try:
        fingerprint = validation_fingerprint(fresh)
        base_tree, _ = bench.base_tree(fresh)
        faults, warnings = _read(fresh, base_tree, allow_leaks=allow_leaks)
        if faults:
            return Validated(task.id, faults, warnings)
        left_out = [
            f"left out of the base tree: {item.path} ({item.why})" for item in bench.bases.left_out(fresh)
        ]
        warnings = (*warnings, *left_out)
        reference = overlay_from_patch(base_tree, task.reference_patch)
    except PatchError as error:
        why = f"the reference does not apply to the base: {error.wrong}"
        return Validated(task.id, (why,), warnings)
    except (StoreError, SandboxError):
        raise
    except BenchError as error:
        return Validated(task.id, (str(error),), warnings)
    checks = _Checks(bench, kit, fresh, base_tree)
    bases = [checks.run(None) for _ in range(repeat)]
    references = [checks.run(reference) for _ in range(repeat)]
    found = dataclasses.replace(
        judge(task.id, bases, references), warnings=warnings, seconds=round(time.monotonic() - started, 3)
    )
    if found.reasons:
        found = dataclasses.replace(found, output=_last_lines(bench, bases, references))
    _record(task, found, fingerprint)
    return found


def _read(task: Task, base_tree: Path, *, allow_leaks: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is wrong with a task's files before anything runs, and what a person should look at."""
    try:
        leaks = find_leaks(task, base_tree)
        guarded = _guarded(task)
    except PatchError as error:
        return (f"the hidden tests or the reference cannot be read: {error.wrong}",), ()
    words = {leak: f"{task.prompt_path} {leak}" for leak in leaks}
    fatal = [words[leak] for leak in leaks if leak.fatal and not allow_leaks]
    if fatal:
        fatal.append("the prompt gives the fix away: take this out of it, or see --allow-leaks")
    if guarded:
        fatal.append(f"the reference touches protected paths: {_names(guarded)}")
    return tuple(fatal), tuple(words[leak] for leak in leaks if allow_leaks or not leak.fatal)


def _guarded(task: Task) -> tuple[str, ...]:
    """What the reference touches although a candidate may not: nothing right could ever pass."""
    from bench_pipeline.execution.guard import violations

    touched = touched_by_reference(task)
    return violations(
        touched,
        declared=task.verify.protected_paths,
        brought_by_tests=brought_by_tests(task),
        touched_by_reference=touched,
    )


@dataclass(frozen=True)
class _Checks:
    bench: "Bench"
    kit: "Kit"
    task: Task
    base_tree: Path

    def run(self, overlay: "Overlay | None") -> "Verification":
        from bench_pipeline.execution.verification import verify_candidate

        limits = self.bench.limits(self.task, wall_s=self.task.verify.timeout_s)
        setup_limits = self.bench.limits(self.task)
        return verify_candidate(
            self.task, self.base_tree, overlay, kit=self.kit, limits=limits, setup_limits=setup_limits
        )


def judge(task_id: str, bases: "Sequence[Verification]", references: "Sequence[Verification]") -> Validated:
    """What the repetitions of both checks say about a task."""
    unmeasured = [check.problem for check in (*bases, *references) if check.problem is not None]
    if any(check.cancelled for check in (*bases, *references)):
        unmeasured.append("it was interrupted")
    if unmeasured:
        return Validated(task_id, tuple(dict.fromkeys(unmeasured)))
    base_reasons = _first(_base_fault(check) for check in bases)
    reference_reasons = _first(_reference_fault(check) for check in references)
    pair_reasons = [] if base_reasons or reference_reasons else _pair_faults(bases, references)
    flaky = _flaky(references)
    if flaky:
        pair_reasons.append(f"tests give different results with the reference: {_names(flaky)}")
    always = [_passed(check) for check in references]
    tests = always[0].intersection(*always)
    return Validated(
        task_id,
        tuple(dict.fromkeys([*base_reasons, *reference_reasons, *pair_reasons])),
        base_failed=not base_reasons,
        reference_passed=not reference_reasons and not pair_reasons,
        tests=tuple(sorted(tests)),
        base_tests_run=_run(bases),
        reference_tests_run=_run(references),
        flaky=flaky,
    )


def _first(faults: Iterator[str | None]) -> list[str]:
    return list(dict.fromkeys(fault for fault in faults if fault is not None))


def _ended_badly(check: "Verification") -> str | None:
    if check.timed_out:
        return "verify.command ran out of time"
    if check.memory_killed:
        return "verify.command was killed for its memory"
    return f"verify.command was killed by signal {check.signal}" if check.signal is not None else None


def _base_fault(check: "Verification") -> str | None:
    """Why this check does not prove that the base fails the hidden tests."""
    ended = _ended_badly(check)
    if ended:
        return f"on the base, {ended}: that does not show that tests ran and failed"
    if check.exit_code == 0:
        return "the base passes the hidden tests: there is nothing to fix"
    if check.exit_code in _NO_COMMAND:
        return f"on the base, {_NO_COMMAND[check.exit_code]}"
    fault = _report_fault(check)
    return f"on the base, {fault}" if fault else None


def _reference_fault(check: "Verification") -> str | None:
    """Why this check does not prove that the reference passes."""
    fault = _ended_badly(check) or _NO_COMMAND.get(check.exit_code or 0)
    failed = _names(check.results.failed) if check.results else ""
    if fault is None and check.exit_code != 0:
        named = f"; failed: {failed}" if failed else ""
        return f"the reference does not pass the hidden tests: exit status {check.exit_code}{named}"
    fault = fault or _report_fault(check)
    if fault is None and failed:
        fault = f"verify.command ends with 0 although tests fail: {failed}"
    return f"with the reference, {fault}" if fault else None


def _report_fault(check: "Verification") -> str | None:
    if check.results is None:
        return None
    if check.results.problem is not None:
        return f"the test report cannot be relied on: {check.results.problem}"
    return None if check.results.run else "no test ran"


def _pair_faults(bases: "Sequence[Verification]", references: "Sequence[Verification]") -> list[str]:
    faults = []
    for base, reference in zip(bases, references, strict=True):
        if base.results is None or reference.results is None:
            continue
        if reference.results.run < base.results.run:
            faults.append(
                f"with the reference, fewer tests run than on the base: {reference.results.run} of {base.results.run}"
            )
        elif not {*reference.results.passed} - {*base.results.passed}:
            faults.append("the reference makes no test pass that did not pass before")
    return list(dict.fromkeys(faults))


def _flaky(checks: "Sequence[Verification]") -> tuple[str, ...]:
    passed = [_passed(check) for check in checks]
    return tuple(sorted(passed[0].union(*passed) - passed[0].intersection(*passed)))


def _passed(check: "Verification") -> set[str]:
    return set(check.results.passed) if check.results is not None else set()


def _run(checks: "Sequence[Verification]") -> int | None:
    counts = [check.results.run for check in checks if check.results is not None]
    return min(counts) if counts else None


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return ", ".join(names[:_SHOWN_NAMES]) + more


def _record(task: Task, found: Validated, fingerprint: str) -> None:
    """Write what was measured, a fault too; what could not be measured leaves the document alone."""
    if found.base_failed is None or found.reference_passed is None or found.seconds is None:
        return
    validation = TaskValidation(
        at=datetime.now(UTC).replace(microsecond=0),
        fingerprint=fingerprint,
        base_failed=found.base_failed,
        reference_passed=found.reference_passed,
        tests=found.tests if not found.reasons else (),
        seconds=found.seconds,
        reasons=found.reasons,
    )
    write_validation(task.file, validation)


def _last_lines(
    bench: "Bench", bases: "Sequence[Verification]", references: "Sequence[Verification]"
) -> str | None:
    """The end of what the check that went wrong printed."""
    wrong = [check for check in references if _reference_fault(check)] or [
        check for check in bases if _base_fault(check)
    ]
    for check in wrong:
        texts = [bench.store.artifacts.get(check.evidence[name]) for name in ("verify_stdout", "verify_stderr")
                 if name in check.evidence]  # fmt: skip
        lines = [
            line for text in texts for line in text.decode("utf-8", "replace").splitlines() if line.strip()
        ]
        if lines:
            return "\n".join(lines[-_SHOWN_LINES:])
    return None
