"""The call loop counts what the budget table says, for every budget, and never one call more."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.policies.calling import Tally, run_policy
from bench_pipeline.policies.comparing import Terms, run_attempt
from bench_pipeline.policies.models import Deadline, Reply
from bench_pipeline.policies.policy import POLICIES, Policy
from bench_pipeline.policies.recordings import Replay
from bench_pipeline_tests.policies.orchard import BASELINE, EVIDENCE, RETRY, case_set, orchard, recording

TABLE = {
    0: ("0/0/0/0 X", "0/0/0/0 X", "0/0/0/0 X"),
    1: ("0/1/0/1 X", "0/1/0/1 X", "1/1/0/1 X"),
    2: ("0/2/1/2 X", "0/2/1/2 X", "2/2/0/2 X"),
    3: ("1/3/1/3 D", "1/2/0/3 X", "3/3/0/3 D"),
    4: ("1/3/1/3 D", "2/3/0/4 D", "3/3/0/3 D"),
}
SHORT = {"budget-exhausted": "X", "completed": "D", "cancelled": "C"}


def counters(tally: Tally) -> str:
    return f"{tally.correct}/{tally.attempted}/{tally.errors}/{len(tally.calls)} {SHORT[tally.state]}"


@pytest.mark.parametrize("budget", [*range(12), 100, 10_000])
def test_the_fixture_has_the_counters_of_the_table_for_every_budget(budget: int) -> None:
    tallies = [result.tally for result in orchard(budget).results]
    assert tuple(map(counters, tallies)) == TABLE[min(budget, 4)]
    assert {tally.total for tally in tallies} == {3}


def test_evidence_is_joined_below_the_prompt_and_the_others_see_none() -> None:
    (case,) = case_set(("a", "Why?", "e", ["one", "two"])).cases
    assert [policy.prompt(case) for policy in POLICIES] == ["Why?", "Why?", "Why?\n\nEvidence:\none\ntwo"]
    (bare,) = case_set(("a", "Why?", "e")).cases
    assert EVIDENCE.prompt(bare) == "Why?"


def test_a_second_call_follows_only_a_failed_one() -> None:
    model = Replay(recording({"p": [("wrong", ""), ("e", "")], "q": [("", "down"), ("e", "")]}))
    cases = case_set(("a", "p", "e"), ("b", "q", "e"))
    tally = run_attempt(cases, model, Terms(10, 60), 1).results[1].tally
    assert [(call.case_id, call.number, call.failure, call.correct) for call in tally.calls] == [
        ("a", 1, None, False),
        ("b", 1, "down", False),
        ("b", 2, None, True),
    ]


def test_a_budget_used_exactly_by_the_last_case_leaves_the_policy_completed() -> None:
    model = Replay(recording({"p": [("", "down"), ("", "down")]}))
    tally = run_attempt(case_set(("a", "p", "e")), model, Terms(2, 60), 1).results[1].tally
    assert counters(tally) == "0/1/1/2 D"


def test_a_budget_that_ends_before_the_second_call_of_the_last_case_is_exhausted() -> None:
    model = Replay(recording({"p": [("", "down"), ("e", "")]}))
    tally = run_attempt(case_set(("a", "p", "e")), model, Terms(1, 60), 1).results[1].tally
    assert counters(tally) == "0/1/1/1 X"


class Clock:
    """A clock that stands at the given times, one reading after the other, and then at the last."""

    def __init__(self, *readings: float) -> None:
        self._readings = itertools.chain(readings, itertools.repeat(readings[-1]))

    def __call__(self) -> float:
        return next(self._readings)


def tally_by(clock: Clock, policy: Policy, replies: Sequence[Reply], budget: int = 10) -> Tally:
    cases = case_set(*((f"c{number}", "p", "e") for number in range(3))).cases
    given_replies = iter(replies)
    return run_policy(policy, cases, budget, Deadline(1.0, clock).keep(lambda _: next(given_replies)))


def test_nothing_is_called_once_the_time_is_over() -> None:
    assert counters(tally_by(Clock(1.0), BASELINE, [])) == "0/0/0/0 C"


def test_a_call_that_ends_late_is_an_error_and_ends_the_policy() -> None:
    tally = tally_by(Clock(0, 0, 0, 1.0), BASELINE, [Reply("e"), Reply("e")])
    assert counters(tally) == "1/2/1/2 C"
    assert tally.calls[-1].failure is not None
    assert not tally.calls[-1].correct


def test_a_late_failure_is_not_tried_again() -> None:
    tally = tally_by(Clock(0, 1.0), RETRY, [Reply("", failure="down")])
    assert counters(tally) == "0/1/1/1 C"


def test_a_late_last_call_cancels_even_though_nothing_was_left_to_do() -> None:
    assert counters(tally_by(Clock(0, 0, 0, 0, 0, 2.0), BASELINE, [Reply("e")] * 3)) == "2/3/1/3 C"


def test_time_that_ends_with_the_budget_leaves_the_policy_exhausted() -> None:
    assert counters(tally_by(Clock(0, 0, 2.0), BASELINE, [Reply("e")], budget=1)) == "1/1/0/1 X"


def test_a_passed_deadline_cancels_that_policy_only() -> None:
    cases = case_set(("a", "p", "e"))
    model = Replay(recording({"p": [("e", "")]}))
    readings = Clock(0, 0, 0, 0, 0, 999, 999, 999, 999)
    results = run_attempt(cases, model, Terms(5, 60), 1, clock=readings).results
    assert [result.tally.state for result in results] == ["completed", "cancelled", "completed"]


def test_each_attempt_starts_with_the_next_policy_and_reports_them_in_one_order() -> None:
    asked: list[str] = []

    class Noting(Replay):
        def asking(self, policy, *rest):  # type: ignore[no-untyped-def]
            asked.append(policy)
            return super().asking(policy, *rest)

    model = Noting(recording({"p": [("e", "")]}))
    reported = [
        [
            result.policy.name
            for result in run_attempt(case_set(("a", "p", "e")), model, Terms(5, 60), number).results
        ]
        for number in range(1, 5)
    ]
    names = ["baseline", "retry-errors", "evidence"]
    assert reported == [names] * 4
    assert asked == [*names, *names[1:], names[0], names[2], *names[:2], *names]


ANSWERS = st.lists(
    st.tuples(st.sampled_from(["e", "wrong", ""]), st.sampled_from(["", "", "down"])), min_size=1, max_size=4
)
PROMPTS = st.sampled_from(["p", "q", "r"])


@given(
    st.lists(PROMPTS, min_size=1, max_size=8),
    st.dictionaries(PROMPTS, ANSWERS),
    st.integers(0, 20),
)
def test_no_policy_exceeds_the_budget_and_its_counters_add_up(
    prompts: list[str], answers: dict[str, list[tuple[str, str]]], budget: int
) -> None:
    cases = case_set(*((str(number), prompt, "e") for number, prompt in enumerate(prompts)))
    for result in run_attempt(cases, Replay(recording(answers)), Terms(budget, 60), 1).results:
        tally = result.tally
        assert len(tally.calls) <= budget
        assert tally.correct + tally.errors <= tally.attempted <= min(len(tally.calls), tally.total)
        assert (tally.state == "completed") == (
            tally.attempted == tally.total
            and (
                not tally.calls
                or tally.calls[-1].failure is None
                or tally.calls[-1].number == result.policy.tries
            )
        )
        assert [call.case_id for call in tally.calls if call.number == 1] == [
            case.id for case in cases.cases[: tally.attempted]
        ]
