"""What comes of what agents do: the outcome, its reason, and nothing that is left running."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any

import psutil
import pytest

from bench_pipeline.errors import SandboxError
from bench_pipeline.execution.sandbox import Command, ProcessEnd, Sandbox
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.selection import Selection
from bench_pipeline_tests.e2e.projects import BRIEF, HASTY, Measured, Project, run_in

Make = Callable[..., Project]

# A name of the time to sleep that only processes of this test have.
NAP = f"3600.{uuid.uuid4().int % 10**9}"
ACTS = ("fix", "wrong", "nothing", "pretend", "vanish", "protected", "rename", "tests", "exit 3", "crash",
        "outage", "limit 0", "limit 1", "garbage", f"daemon {NAP}")  # fmt: skip
Rows = Mapping[str, dict[str, Any]]


@pytest.fixture(scope="module")
def project(make: Make) -> Project:
    made = make("alpha", HASTY, BRIEF)
    made.acts("one", *ACTS)
    made.acts("hang", f"hang {NAP}")
    made.acts("slow", f"slow-check {NAP}")
    return made


@pytest.fixture(scope="module")
def measured(project: Project) -> Measured:
    return project.measure("one", tasks=["alpha"])


@pytest.fixture(scope="module")
def rows(measured: Measured) -> Rows:
    """The verdict by what the agent did."""
    return {row["setup"].partition("+act=")[2] or "fix": row for row in measured.rows}


def still_napping() -> list[psutil.Process]:
    return [process for process in psutil.process_iter(["cmdline"]) if NAP in (process.info["cmdline"] or [])]


@pytest.mark.parametrize(
    ("act", "outcome", "reason"),
    [
        ("fix", "passed", None),
        ("wrong", "failed", "tests failed: adds, zero"),
        ("nothing", "no_changes", None),
        ("protected", "guard_violation", "touches pinned/rules"),
        ("rename", "guard_violation", "touches pinned/rules"),
        ("tests", "guard_violation", "touches tests/check.sh"),
        ("exit 3", "adapter_error", "no end in the tool's output, exit status 3"),
        ("crash", "adapter_error", "killed by signal 11"),
    ],
)
def test_the_outcome_table_decides(rows: Rows, act: str, outcome: str, reason: str | None) -> None:
    assert (rows[act]["outcome"], rows[act]["reason"]) == (outcome, reason)
    passed = {"passed": True, "adapter_error": None}.get(outcome, False)
    assert rows[act]["passed"] is passed


def test_printed_pass_marks_mean_nothing(rows: Rows) -> None:
    assert (rows["pretend"]["outcome"], rows["pretend"]["reason"]) == ("failed", "tests failed: adds")


def test_hidden_tests_that_vanish_are_a_failure_although_the_check_exits_0(rows: Rows) -> None:
    row = rows["vanish"]
    assert (row["outcome"], row["tests_run"]) == ("failed", 0)
    assert row["reason"] == "tests that did not run and pass: adds, zero"


def test_an_outage_is_no_empty_candidate_although_the_agent_exits_0(rows: Rows) -> None:
    row = rows["outage"]
    assert (row["outcome"], row["outcome_class"], row["exit_code"]) == (
        "adapter_error",
        "execution_failure",
        0,
    )
    assert row["reason"].startswith("API error")


@pytest.mark.parametrize("status", [0, 1])
def test_a_limit_is_verified_whatever_the_exit_status(rows: Rows, status: int) -> None:
    row = rows[f"limit {status}"]
    assert (row["outcome"], row["reason"], row["exit_code"]) == ("passed", "limit", status)


def test_a_report_that_cannot_be_read_is_no_success(rows: Rows) -> None:
    assert rows["garbage"]["outcome"] == "adapter_error"
    assert rows["garbage"]["reason"].startswith("unreadable output")


def test_a_daemon_is_counted_and_ended(rows: Rows) -> None:
    row = rows[f"daemon {NAP}"]
    assert (row["outcome"], row["orphans"]) == ("passed", 2)
    assert rows["fix"]["orphans"] == 0
    assert still_napping() == []


def test_every_cell_called_the_agent_once_and_four_are_without_a_verdict(
    project: Project, measured: Measured, rows: Rows
) -> None:
    classes = [row["outcome_class"] for row in rows.values()]
    assert len(rows) == measured.summary["executed"] == len(ACTS)
    assert classes.count("execution_failure") == measured.summary["not_measured"] == 4
    assert sorted(project.calls())[:1] == ["crash|alpha"]


def test_a_timeout_is_never_a_pass_and_keeps_the_work_as_a_diagnostic(project: Project) -> None:
    row = project.measure("hang", tasks=[HASTY]).row
    assert (row["outcome"], row["reason"], row["passed"]) == ("timeout", "cell timeout", None)
    kept = Bench(project.root).store.artifacts.get(dict(row["artifacts"])["patch"])
    assert b"+echo $(($1 + $2))" in kept
    assert Bench(project.root).store.candidates.newest([bytes.fromhex(row["run_key"])]).num_rows == 0
    assert still_napping() == []


def test_a_check_that_hangs_is_a_failure_with_its_reason(project: Project) -> None:
    row = project.measure("slow", tasks=[BRIEF]).row
    assert (row["outcome"], row["reason"], row["passed"]) == ("failed", "verify timeout", False)
    assert still_napping() == []


def test_a_sandbox_that_does_not_start_is_no_fault_of_the_tool(project: Project) -> None:
    class Broken:
        def __init__(self, sandbox: Sandbox) -> None:
            self._sandbox = sandbox

        def __getattr__(self, name: str) -> Any:
            return getattr(self._sandbox, name)

        def run(self, command: Command, *more: Any, **options: Any) -> ProcessEnd:
            if any(word.endswith("act.sh") for word in command.argv):
                raise SandboxError("starting a command", "no user namespaces here", "allow them")
            return self._sandbox.run(command, *more, **options)

    project.acts("broken", "free")
    bench = Bench(project.root, backend="process")
    bench.__dict__["sandbox"] = Broken(bench.sandbox)
    row = run_in(bench, Selection(("broken",), ("alpha",))).row
    assert (row["outcome"], row["passed"], row["cost_usd"]) == ("infrastructure_error", None, 0.0)
    assert "no user namespaces here" in row["reason"]
