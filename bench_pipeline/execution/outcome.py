"""The outcome table: what came of a cell, as a pure function of what was measured.

What belongs here: the outcomes, their classes, and the order in which they are looked at; the first that
matches wins. What does not: measuring anything. Only ``passed`` is a pass; a verdict can be reused, an
execution failure is history. A cell that was stopped by hand is none of these: it stays not attempted and
is not recorded.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from bench_pipeline.execution.results import TestResults
from bench_pipeline.execution.usage import ToolEnd

Outcome = Literal[
    "infrastructure_error",
    "adapter_error",
    "timeout",
    "no_changes",
    "guard_violation",
    "patch_apply_failed",
    "failed",
    "passed",
    "not_attempted",
]
OutcomeClass = Literal["verdict", "execution_failure", "not_attempted"]

LIMIT = "limit"
_FAILURES = ("infrastructure_error", "adapter_error", "timeout")


class Check(Protocol):
    """What verifying a candidate measured.

    ``problem`` says that the check could not be made: hidden tests that do not apply to the base, a failed
    setup command. ``results`` are None where the task reports none; ``expected`` are the validated test
    ids; ``unmet`` the signals of a golden task that do not hold.
    """

    @property
    def problem(self) -> str | None: ...  # noqa: D102
    @property
    def cancelled(self) -> bool: ...  # noqa: D102
    @property
    def exit_code(self) -> int | None: ...  # noqa: D102
    @property
    def signal(self) -> int | None: ...  # noqa: D102
    @property
    def timed_out(self) -> bool: ...  # noqa: D102
    @property
    def memory_killed(self) -> bool: ...  # noqa: D102
    @property
    def results(self) -> TestResults | None: ...  # noqa: D102
    @property
    def expected(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def unmet(self) -> tuple[str, ...]: ...  # noqa: D102


@dataclass(frozen=True)
class CellFacts:
    """What is known about one cell when its work is over. What was not reached keeps its default.

    ``cancelled``: stopped by hand. ``infrastructure``: what went wrong with a sandbox, a workspace, a setup
    command or the store. ``precondition``: why the tool could not be started at all. ``end``: the tool's
    parsed end; for a stored candidate that is checked again, ``completed`` or ``limit`` as it was stored;
    None when no tool was run. ``exit_code`` or ``signal``: how its process ended. ``timed_out``: the cell's
    time passed, or that of the step ``timed_out_step``. ``killed_for``: the resource whose limit ended it
    (memory, processes, disk). ``cap``: the cap that the gateway refused a request for; ``outage``: the
    class and words of the failure with which its last request to a model API ended; ``diverged``: where a
    replay left its recording. ``candidate_empty``: None when no candidate was captured; ``empty_decides`` is
    False for a task whose own signals judge an empty candidate. ``violations``: the protected paths that it
    touches. ``patch_problem``: why a delivered patch does not apply. ``check``: its verification.
    """

    cancelled: bool = False
    infrastructure: str | None = None
    precondition: str | None = None
    end: ToolEnd | None = None
    exit_code: int | None = None
    signal: int | None = None
    success_exit_codes: tuple[int, ...] = (0,)
    timed_out: bool = False
    timed_out_step: str | None = None
    killed_for: str | None = None
    cap: str | None = None
    outage: tuple[str, str] | None = None
    diverged: str | None = None
    candidate_empty: bool | None = None
    empty_decides: bool = True
    violations: tuple[str, ...] = ()
    patch_problem: str | None = None
    check: Check | None = None


@dataclass(frozen=True)
class Decision:
    """What came of a cell. ``passed`` is None unless the outcome is a verdict; ``reason`` is short text."""

    outcome: Outcome
    reason: str | None = None

    @property
    def outcome_class(self) -> OutcomeClass:
        """Whether the outcome is a verdict, an execution failure, or no attempt."""
        if self.outcome == "not_attempted":
            return "not_attempted"
        return "execution_failure" if self.outcome in _FAILURES else "verdict"

    @property
    def passed(self) -> bool | None:
        """Whether a verdict is a pass; None for anything else."""
        return self.outcome == "passed" if self.outcome_class == "verdict" else None


def decide(facts: CellFacts) -> Decision:
    """The outcome of a cell; total, and the first row of the table that matches wins.

    A verdict on a candidate whose tool stopped at a limit has the reason ``limit``, whatever the exit status.
    """
    check = facts.check
    if facts.cancelled or (check is not None and check.cancelled):
        return Decision("not_attempted", "cancelled")
    infrastructure = facts.infrastructure or (check.problem if check is not None else None)
    if infrastructure is not None:
        return Decision("infrastructure_error", _short(infrastructure))
    adapter = _adapter_problem(facts)
    if adapter is not None:
        return Decision("adapter_error", _short(adapter))
    if facts.timed_out:
        step = facts.timed_out_step
        return Decision("timeout", "cell timeout" if step is None else _short(f"timeout of step {step}"))
    skipped = _skipped(facts)
    return Decision("infrastructure_error", skipped) if skipped is not None else _verdict(facts)


def _adapter_problem(facts: CellFacts) -> str | None:
    """Why the tool's run measured nothing; None when its candidate may be judged."""
    end = facts.end
    if facts.precondition is not None or end is None:
        return facts.precondition
    if facts.diverged is not None:
        return f"diverged from the recording: {facts.diverged}"
    if facts.cap is not None:
        return f"cap: {facts.cap}"
    # When time ran out, we sent the signal: what a kill explains (no end, a cut file, an exit status, a tool
    # that calls itself aborted) is then no fault of the tool's.
    ours = facts.timed_out
    rows = (
        (end.state == "error" and not (ours and end.error_class in {None, "unknown"}), _tool_error(end)),
        (facts.outage is not None, _outage(facts)),
        (facts.killed_for is not None and not ours, f"{facts.killed_for} limit of the sandbox reached"),
        (facts.signal is not None and not ours, f"killed by signal {facts.signal}"),
        (end.unreadable is not None and not ours, f"unreadable output: {end.unreadable}"),
        (end.state == "none" and not ours, f"no end in the tool's output, exit status {facts.exit_code}"),
        (
            end.state == "exit" and not ours and facts.exit_code not in facts.success_exit_codes,
            f"exit status {facts.exit_code}",
        ),
    )
    return _first(rows)


def _tool_error(end: ToolEnd) -> str:
    kind = (
        "refused by the model"
        if end.error_class == "refused"
        else f"API error: {end.error_class or 'unknown'}"
    )
    said = " ".join((end.error or "").split())
    return f"{kind}: {said}" if said else kind


def _outage(facts: CellFacts) -> str:
    kind, said = facts.outage or ("unknown", "")
    return f"API error: {kind}: {said}"


def _skipped(facts: CellFacts) -> str | None:
    """What a verdict needs and nobody did; None in every cell that was run to its end."""
    judged = facts.patch_problem is None and not facts.violations
    empty = facts.candidate_empty and facts.empty_decides
    return _first(
        (
            (facts.end is None, "the tool was not run"),
            (facts.candidate_empty is None and facts.patch_problem is None, "no candidate was captured"),
            (facts.check is None and judged and not empty, "the candidate was not verified"),
        )
    )


def _verdict(facts: CellFacts) -> Decision:
    limit = LIMIT if facts.end is not None and facts.end.state == "limit" else None
    if facts.candidate_empty and facts.empty_decides:
        return Decision("no_changes", limit)
    if facts.violations:
        return Decision("guard_violation", _joined(limit, _listed("touches", facts.violations)))
    if facts.patch_problem is not None or facts.check is None:
        return Decision("patch_apply_failed", _joined(limit, _short(facts.patch_problem or "")))
    problem = _check_problem(facts.check)
    if problem is not None:
        return Decision("failed", _joined(limit, problem))
    if facts.check.exit_code != 0:
        return Decision("failed", limit or f"verify.command: exit status {facts.check.exit_code}")
    return Decision("passed", limit)


def _check_problem(check: Check) -> str | None:
    """What besides the exit status makes a check a failure; what was printed means nothing."""
    results = check.results
    lacking = set(check.expected) - set(results.passed if results is not None else ())
    failed = sorted(lacking & set(results.failed if results is not None else ()))
    return _first(
        (
            (check.timed_out, "verify timeout"),
            (check.memory_killed, "verify memory kill"),
            (check.signal is not None, f"verify.command: killed by signal {check.signal}"),
            (results is None and bool(check.expected), "no test results"),
            (
                results is not None and results.problem is not None,
                f"test results: {results and results.problem}",
            ),
            (bool(failed), _listed("tests failed:", failed)),
            (bool(lacking), _listed("tests that did not run and pass:", sorted(lacking))),
            (bool(check.unmet), _listed("does not hold:", check.unmet)),
        )
    )


def _first(rows: Iterable[tuple[bool, str]]) -> str | None:
    return next((_short(reason) for holds, reason in rows if holds), None)


def _joined(limit: str | None, reason: str) -> str:
    return reason if limit is None else f"{limit}; {reason}"


def _listed(what: str, names: Sequence[str], shown: int = 3) -> str:
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return f"{what} {', '.join(_short(name, 80) for name in names[:shown])}{more}"


def _short(text: str, limit: int = 300) -> str:
    """Text that a column can hold: one line, cut, and without what UTF-8 cannot say."""
    line = " ".join(text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ").split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
