"""The outcome table: each row, the order of the rows, and that nothing falls between them."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.execution.outcome import CellFacts, decide
from bench_pipeline.execution.results import TestResults
from bench_pipeline.execution.usage import ToolEnd

CLASSES = {
    "infrastructure_error": "execution_failure",
    "adapter_error": "execution_failure",
    "timeout": "execution_failure",
    "no_changes": "verdict",
    "guard_violation": "verdict",
    "patch_apply_failed": "verdict",
    "failed": "verdict",
    "passed": "verdict",
    "not_attempted": "not_attempted",
}


@dataclass(frozen=True)
class Checked:
    problem: str | None = None
    cancelled: bool = False
    exit_code: int | None = 0
    signal: int | None = None
    timed_out: bool = False
    memory_killed: bool = False
    results: TestResults | None = None
    expected: tuple[str, ...] = ()
    unmet: tuple[str, ...] = ()


PASSING = CellFacts(end=ToolEnd("completed"), exit_code=0, candidate_empty=False, check=Checked())
EXIT = replace(PASSING, end=ToolEnd("exit"))
LIMIT = replace(PASSING, end=ToolEnd("limit"))
TWO = ("a", "b")


def _reported(passed=(), failed=(), skipped=(), problem=None, **changes):
    results = TestResults(tuple(passed), tuple(failed), tuple(skipped), problem)
    return replace(PASSING, check=Checked(results=results, expected=TWO, **changes))


def test_a_cell_that_did_everything_right_passes_without_a_reason():
    decision = decide(PASSING)
    assert (decision.outcome, decision.outcome_class, decision.passed, decision.reason) == (
        "passed",
        "verdict",
        True,
        None,
    )


@pytest.mark.parametrize(
    ("facts", "outcome", "reason"),
    [
        # infrastructure
        (CellFacts(infrastructure="sandbox did not start"), "infrastructure_error", "sandbox did not start"),
        (
            replace(PASSING, check=Checked(problem="verify.setup[0] failed")),
            "infrastructure_error",
            "verify.setup[0]",
        ),
        (CellFacts(), "infrastructure_error", "not run"),
        (replace(PASSING, candidate_empty=None), "infrastructure_error", "captured"),
        (replace(PASSING, check=None), "infrastructure_error", "not verified"),
        # adapter
        (CellFacts(precondition="credential X is not set"), "adapter_error", "credential X is not set"),
        (replace(PASSING, end=ToolEnd("error", "x", "rate")), "adapter_error", "API error: rate: x"),
        (replace(PASSING, end=ToolEnd("error", "x", "refused")), "adapter_error", "refused"),
        (replace(PASSING, end=ToolEnd("none")), "adapter_error", "no end"),
        (replace(PASSING, end=ToolEnd("completed", unreadable="bad")), "adapter_error", "unreadable"),
        (replace(EXIT, exit_code=3), "adapter_error", "exit status 3"),
        (replace(EXIT, exit_code=0, success_exit_codes=(7,)), "adapter_error", "exit status 0"),
        (replace(EXIT, exit_code=None), "adapter_error", "exit status None"),
        (replace(PASSING, exit_code=None, signal=11), "adapter_error", "signal 11"),
        (replace(PASSING, exit_code=None, signal=9, killed_for="memory"), "adapter_error", "memory limit"),
        # timeout
        (replace(PASSING, timed_out=True), "timeout", "cell timeout"),
        (replace(PASSING, timed_out=True, timed_out_step="plan"), "timeout", "timeout of step plan"),
        (replace(PASSING, timed_out=True, exit_code=None, signal=9, end=ToolEnd("none")), "timeout", "cell"),
        (replace(EXIT, timed_out=True, exit_code=143), "timeout", "cell"),
        (replace(PASSING, timed_out=True, end=ToolEnd("error", "aborted", "unknown")), "timeout", "cell"),
        (replace(PASSING, timed_out=True, end=ToolEnd("none", unreadable="cut")), "timeout", "cell"),
        (replace(PASSING, timed_out=True, end=ToolEnd("error", "x", "auth")), "adapter_error", "auth"),
        # verdicts without a check
        (replace(PASSING, candidate_empty=True, check=None), "no_changes", None),
        (replace(PASSING, violations=("tests/x.py",), check=None), "guard_violation", "touches tests/x.py"),
        (
            replace(PASSING, candidate_empty=None, patch_problem="hunk 1 does not apply", check=None),
            "patch_apply_failed",
            "hunk 1",
        ),
        # the check
        (replace(PASSING, check=Checked(exit_code=1)), "failed", "exit status 1"),
        (replace(PASSING, check=Checked(exit_code=None, signal=9)), "failed", "signal 9"),
        (
            replace(PASSING, check=Checked(exit_code=None, signal=9, timed_out=True)),
            "failed",
            "verify timeout",
        ),
        (replace(PASSING, check=Checked(exit_code=None, signal=9, memory_killed=True)), "failed", "memory"),
        (_reported(passed=TWO), "passed", None),
        (_reported(passed=("a", "b", "more"), failed=("unknown",)), "passed", None),
        (_reported(passed=TWO, exit_code=1), "failed", "exit status 1"),
        (_reported(passed=("a",), failed=("b",)), "failed", "tests failed: b"),
        (_reported(passed=("a",)), "failed", "did not run and pass: b"),
        (_reported(passed=("a",), skipped=("b",)), "failed", "did not run and pass: b"),
        (_reported(), "failed", "did not run and pass: a, b"),
        (_reported(passed=TWO, problem="cut"), "failed", "test results: cut"),
        (replace(PASSING, check=Checked(expected=TWO)), "failed", "no test results"),
        # stopped by hand
        (replace(PASSING, cancelled=True), "not_attempted", "cancelled"),
        (
            replace(PASSING, check=Checked(cancelled=True, problem="interrupted")),
            "not_attempted",
            "cancelled",
        ),
    ],
)
def test_each_row_of_the_table(facts, outcome, reason):
    decision = decide(facts)
    assert (decision.outcome, decision.outcome_class) == (outcome, CLASSES[outcome])
    assert decision.reason == reason or reason in decision.reason


def test_the_exit_status_of_a_tool_whose_end_was_parsed_decides_nothing():
    assert decide(replace(PASSING, exit_code=1)).outcome == "passed"


def test_an_outage_in_which_the_tool_exits_0_without_a_change_is_no_verdict():
    """An agent that swallows API errors would otherwise be measured as one that did nothing."""
    outage = replace(PASSING, candidate_empty=True, exit_code=0, end=ToolEnd("error", "503", "overload"))
    killed = replace(outage, end=ToolEnd("none"))
    assert {decide(outage).outcome, decide(killed).outcome} == {"adapter_error"}


@pytest.mark.parametrize("exit_code", [0, 1, 143])
def test_a_tool_that_stopped_at_its_limit_is_verified_whatever_its_exit_status(exit_code):
    facts = replace(LIMIT, exit_code=exit_code)
    assert (decide(facts).outcome, decide(facts).reason) == ("passed", "limit")
    failing = replace(facts, check=Checked(exit_code=1))
    assert (decide(failing).outcome, decide(failing).reason) == ("failed", "limit")
    empty = replace(facts, candidate_empty=True)
    assert (decide(empty).outcome, decide(empty).reason) == ("no_changes", "limit")


def test_a_limit_does_not_hide_why_a_check_could_not_finish():
    assert decide(replace(LIMIT, check=Checked(timed_out=True))).reason == "limit; verify timeout"
    assert decide(replace(LIMIT, violations=("t",))).reason == "limit; touches t"


def test_work_that_would_pass_after_time_ran_out_is_a_timeout():
    assert decide(replace(PASSING, timed_out=True)).outcome == "timeout"


def test_a_verifier_that_hangs_is_a_failure_and_a_sandbox_that_never_starts_is_none():
    assert decide(replace(PASSING, check=Checked(exit_code=None, timed_out=True))).outcome == "failed"
    assert decide(CellFacts(infrastructure="no sandbox")).passed is None


def test_hidden_tests_that_vanish_under_the_candidate_fail_it():
    """All that ran passed and the command exits 0, but one validated test is gone."""
    assert decide(_reported(passed=("a",))).outcome == "failed"


def test_an_empty_candidate_can_pass_where_a_tasks_signals_decide():
    assert decide(replace(PASSING, candidate_empty=True, empty_decides=False)).outcome == "passed"


def test_reasons_are_one_line_that_any_column_can_hold():
    many = tuple(f"tests/{'x' * 500}{number}\n\0\udc80" for number in range(50))
    reason = decide(replace(PASSING, violations=many)).reason
    reason.encode("utf-8")
    assert len(reason) <= 400
    assert not set(reason) & {"\n", "\0"}
    assert reason.endswith("and 47 more")


RESULTS = st.builds(
    TestResults,
    st.lists(st.sampled_from("abc"), unique=True).map(tuple),
    st.lists(st.sampled_from("de"), unique=True).map(tuple),
    st.just(()),
    st.none() | st.just("cut"),
)
CHECKS = st.builds(
    Checked,
    problem=st.none() | st.just("p"),
    cancelled=st.booleans(),
    exit_code=st.none() | st.integers(0, 2),
    signal=st.none() | st.integers(1, 15),
    timed_out=st.booleans(),
    memory_killed=st.booleans(),
    results=st.none() | RESULTS,
    expected=st.lists(st.sampled_from("abcd"), unique=True).map(tuple),
)
ENDS = st.builds(
    ToolEnd,
    st.sampled_from(["completed", "limit", "error", "none", "exit"]),
    error_class=st.none() | st.sampled_from(["auth", "refused", "unknown"]),
    unreadable=st.none() | st.just("u"),
)
FACTS = st.builds(
    CellFacts,
    cancelled=st.booleans(),
    infrastructure=st.none() | st.just("i"),
    precondition=st.none() | st.just("p"),
    end=st.none() | ENDS,
    exit_code=st.none() | st.integers(0, 3),
    signal=st.none() | st.integers(1, 15),
    success_exit_codes=st.lists(st.integers(0, 3), max_size=2).map(tuple),
    timed_out=st.booleans(),
    killed_for=st.none() | st.just("memory"),
    candidate_empty=st.none() | st.booleans(),
    empty_decides=st.booleans(),
    violations=st.lists(st.just("t"), max_size=1).map(tuple),
    patch_problem=st.none() | st.just("p"),
    check=st.none() | CHECKS,
)


@given(FACTS)
def test_any_facts_have_exactly_one_outcome_and_only_passed_is_a_pass(facts):
    decision = decide(facts)
    assert decision.outcome_class == CLASSES[decision.outcome]
    verdict = decision.outcome_class == "verdict"
    assert decision.passed == ((decision.outcome == "passed") if verdict else None)
    assert decision == decide(facts)


@given(FACTS)
def test_a_pass_needs_every_part_to_be_right(facts):
    if decide(facts).passed:
        check = facts.check
        wrong = [facts.cancelled, facts.infrastructure, facts.precondition, facts.timed_out, facts.violations]
        wrong += [facts.patch_problem, facts.signal, facts.killed_for]
        wrong += [check.problem, check.cancelled, check.timed_out, check.memory_killed, check.signal]
        assert not any(wrong)
        assert facts.end.state in {"completed", "limit", "exit"}
        assert check.exit_code == 0
        assert set(check.expected) <= set(check.results.passed if check.results else ())


# What makes each row match, in the order of the table.
ROWS = [
    ("not_attempted", lambda facts: replace(facts, cancelled=True)),
    ("infrastructure_error", lambda facts: replace(facts, infrastructure="i")),
    ("adapter_error", lambda facts: replace(facts, precondition="p")),
    ("timeout", lambda facts: replace(facts, timed_out=True)),
    ("no_changes", lambda facts: replace(facts, candidate_empty=True, empty_decides=True)),
    ("guard_violation", lambda facts: replace(facts, violations=("t",))),
    ("patch_apply_failed", lambda facts: replace(facts, patch_problem="p")),
    ("failed", lambda facts: replace(facts, check=Checked(exit_code=1))),
]
ORDER = [outcome for outcome, _ in ROWS] + ["passed"]


@given(st.lists(st.integers(0, len(ROWS) - 1)))
def test_of_the_rows_that_match_the_first_wins(picked):
    facts = PASSING
    for row in picked:
        facts = ROWS[row][1](facts)
    assert decide(facts).outcome == ORDER[min(picked, default=len(ROWS))]


@given(FACTS, st.integers(0, 3))
def test_what_a_row_above_needs_never_moves_an_outcome_down(facts, row):
    before, after = decide(facts).outcome, decide(ROWS[row][1](facts)).outcome
    assert ORDER.index(after) <= max(row, ORDER.index(before))
