"""Looking whether the signals of a golden task hold of a candidate.

What belongs here: file signals on a fresh tree that nothing has run in, test commands in a fresh tree each, and the
document that keeps what was found. What does not: the grammar of signals (``tasks.signals``), what a failed signal
means (``outcome``) and scores (``golden``).
"""

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench_pipeline.execution.guard import protected
from bench_pipeline.execution.job import Kit
from bench_pipeline.execution.overlay import Overlay
from bench_pipeline.execution.results import TestResults
from bench_pipeline.execution.sandbox import Command, Limits
from bench_pipeline.execution.verification import (
    Verification,
    describe_end,
    end_of,
    plain_parents,
    read_inside,
)
from bench_pipeline.identity import canonical_json
from bench_pipeline.tasks import Signal, SignalCheck
from bench_pipeline.tasks.paths import path_text
from bench_pipeline.tasks.trees import walk_tree

DOCUMENT_SCHEMA = 1
# What a signal looks for is text that people wrote; a larger file is searched as far as this.
_MAX_FILE_BYTES = 64 * 1024 * 1024
_MAX_OUTPUT_BYTES = 1024 * 1024
# How Python and Node name a module that is not there.
_MISSING = re.compile(
    rb"No module named '([\w.]{1,200})'|cannot import name '(\w{1,200})'|Cannot find module '([\w@./-]{1,200})'"
)


@dataclass(frozen=True)
class Looked:
    """What was found of one tree.

    ``held`` has one entry per signal, in order: whether it holds, None where only a judge can say; ``passed`` maps
    each test command to whether it ended with 0, None when it was stopped before it could tell; ``why`` says of those
    that did not end with 0, how they ended. ``missing``
    are modules and names that commands asked for in vain; ``outputs`` what each printed, by the command's number.
    """

    held: tuple[bool | None, ...]
    passed: Mapping[str, bool | None]
    why: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    outputs: Mapping[int, bytes] = field(default_factory=dict, repr=False)
    cancelled: bool = False

    def unmet(self, check: SignalCheck) -> tuple[str, ...]:
        """The signals that do not hold or wait for a judge, and tests with another outcome than expected."""
        signals = [
            signal.text if held is False else f"{signal.text} (only a judge can say)"
            for signal, held in zip(check.signals, self.held, strict=True)
            if not held
        ]
        told = {signal.argument for signal in check.signals if signal.kind == "test_passes"}
        tests = [
            f"{command} was to {'pass' if expected else 'fail'}"
            for command, expected in check.tests.items()
            if self.passed.get(command) is not expected and not (expected and command in told)
        ]
        return (*signals, *tests)

    def holds(self, check: SignalCheck) -> bool:
        """Whether all that can be measured holds; what waits for a judge is left aside."""
        return False not in self.held and self.passed == check.tests


def look(check: SignalCheck, base_tree: Path, overlay: Overlay | None, *, kit: Kit, limits: Limits) -> Looked:
    """Look at ``overlay`` on the base (None: the base as it is); ``limits`` bound each command.

    Raises:
        SandboxError: a tree could not be made, or no command could be run.
    """
    change = overlay or Overlay()
    with kit.workspaces.open(base_tree) as workspace:
        change.apply(workspace.place.tree)
        files = {signal.text: _file_signal(signal, workspace.place.tree, change) for signal in check.signals}
    passed: dict[str, bool | None] = {}
    why: dict[str, str] = {}
    outputs: dict[int, bytes] = {}
    for number, command in enumerate(check.tests, start=1):
        # Each command has a tree of its own: what the candidate's code does in one run cannot help another.
        with kit.workspaces.open(base_tree) as workspace:
            change.apply(workspace.place.tree)
            end = kit.sandbox.run(
                Command(("/bin/sh", "-c", command)),
                workspace.place,
                limits,
                stdout=workspace.logs / "test.stdout",
                stderr=workspace.logs / "test.stderr",
                cancel=kit.cancel,
            )
            if end.cancelled:
                return Looked((), {}, cancelled=True)
            outputs[number] = end_of(end.stdout, _MAX_OUTPUT_BYTES) + end_of(end.stderr, _MAX_OUTPUT_BYTES)
        # A hang or a kill for memory is no failure that a task could expect.
        passed[command] = None if end.timed_out or end.memory_killed else end.exit_code == 0
        if not passed[command]:
            why[command] = "it ran out of time" if end.timed_out else f"it ended with {describe_end(end)}"
    failed = [outputs[number] for number, command in enumerate(check.tests, start=1) if not passed[command]]
    return Looked(
        held=tuple(
            passed[signal.argument] is True if signal.kind == "test_passes" else files[signal.text]
            for signal in check.signals
        ),
        passed=passed,
        why=why,
        missing=_missing_names(failed),
        outputs=outputs,
    )


def verify_signals(
    check: SignalCheck,
    base_tree: Path,
    overlay: Overlay,
    *,
    before: Looked | None,
    violations: Sequence[str],
    kit: Kit,
    limits: Limits,
) -> Verification:
    """Check a candidate of a golden task; ``before`` is what was found of the base.

    The evidence ``signals`` of the result is the document that scores are made from. Protected paths that the
    candidate touches are an entry of their own there, so that no reader can take it for a pass.
    """
    started = time.monotonic()
    found = look(check, base_tree, overlay, kit=kit, limits=limits)
    if found.cancelled:
        return Verification(cancelled=True, duration_s=time.monotonic() - started)
    invented = _invented(found, before, overlay)
    document = _document(check, found, before, overlay, violations, invented)
    evidence = {
        f"test_{number}_output": kit.keep(output, "text/plain") for number, output in found.outputs.items()
    }
    evidence["signals"] = kit.keep(canonical_json(document), "application/json")
    met = {command for command, expected in check.tests.items() if found.passed[command] is expected}
    return Verification(
        exit_code=0,
        unmet=found.unmet(check),
        results=TestResults(tuple(sorted(met)), tuple(sorted(set(check.tests) - met)), ())
        if check.tests
        else None,
        duration_s=time.monotonic() - started,
        evidence=evidence,
    )


def _document(
    check: SignalCheck,
    found: Looked,
    before: Looked | None,
    overlay: Overlay,
    violations: Sequence[str],
    invented: Sequence[str],
) -> dict[str, object]:
    signals = [
        {
            "signal": signal.text,
            "kind": signal.kind,
            "passed": held,
            "detail": found.why.get(signal.argument) if signal.kind == "test_passes" else None,
        }
        for signal, held in zip(check.signals, found.held, strict=True)
    ]
    if violations:
        touched = ", ".join(path_text(path) for path in violations)
        signals.append(
            {"signal": "no protected path is touched", "kind": "guard", "passed": False, "detail": touched}
        )
    return {
        "schema": DOCUMENT_SCHEMA,
        "signals": signals,
        "tests": [
            {
                "command": command,
                "expected": expected,
                "before": before.passed.get(command) if before is not None else None,
                "after": found.passed[command],
            }
            for command, expected in check.tests.items()
        ],
        "files_modified": [path_text(path) for path in overlay.touched_paths()],
        "missing_modules": list(invented),
    }


def _file_signal(signal: Signal, tree: Path, change: Overlay) -> bool | None:
    """Whether a signal about files holds; None for one that is not about files."""
    argument = signal.argument
    match signal.kind:
        case "path_exists":
            return plain_parents(tree, argument) and os.path.lexists(tree / argument)
        case "glob_exists":
            patterns = {argument, argument.removeprefix("**/")}
            return any(protected(path, pattern) for path, _ in walk_tree(tree) for pattern in patterns)
        case "file_contains":
            content = read_inside(tree, argument, _MAX_FILE_BYTES)
            return content is not None and (signal.needle or "").encode() in content
        case "file_unchanged":
            return not any(
                path == argument or path.startswith(f"{argument}/") for path in change.touched_paths()
            )
        case "no_files_modified":
            return change.empty
        case _:
            return None


def _missing_names(outputs: Iterable[bytes]) -> tuple[str, ...]:
    names = {name for output in outputs for groups in _MISSING.findall(output) for name in groups if name}
    return tuple(sorted(name.decode("utf-8", "replace") for name in names))


def _invented(found: Looked, before: Looked | None, overlay: Overlay) -> tuple[str, ...]:
    """The missing names that the candidate itself refers to and that were not missing before it."""
    known = set(before.missing) if before is not None else set()
    return tuple(
        name
        for name in found.missing
        if name not in known and any(name.encode() in entry.content for entry in overlay.entries)
    )
