"""Live calls: never one more than the budget, counted whatever comes back, in one order however many overlap."""

import threading
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench_pipeline.policies.cases import CaseSet
from bench_pipeline.policies.comparing import Attempt, Terms, run_attempt
from bench_pipeline.policies.live import LiveModel
from bench_pipeline.policies.models import Settings
from bench_pipeline.policies.recordings import Replay, recorded
from bench_pipeline.providers.endpoint import read_endpoint
from bench_pipeline_tests.policies.orchard import BASELINE, EVIDENCE, RETRY, case_set
from bench_pipeline_tests.providers.chat_server import ChatServer, Response, answer, serving

CASES = case_set(
    *((f"c{number}", f"p{number}", "ready", ["x"] if number % 2 else []) for number in range(12))
)


def live(server: ChatServer, cases: CaseSet, terms: Terms, concurrency: int = 1, number: int = 1) -> Attempt:
    endpoint = read_endpoint(server.url)
    model = LiveModel(endpoint, "m", Settings(temperature=0, max_tokens=16), None, concurrency)
    return run_attempt(cases, model, terms, number)


def prompt_of(document: dict[str, Any]) -> str:
    return str(document["messages"][0]["content"])


def told(attempt: Attempt) -> list[object]:
    """Everything about an attempt but its clock."""
    return [
        (
            result.policy.name,
            result.tally.correct,
            result.tally.attempted,
            result.tally.errors,
            result.tally.state,
            [call[:6] for call in result.tally.calls],
        )
        for result in attempt.results
    ]


def test_a_live_run_counts_asks_in_order_and_measures() -> None:
    with serving(lambda _: answer()) as server:
        attempt = live(server, CASES, Terms(20, 60))
    assert [result.tally.correct for result in attempt.results] == [12, 12, 12]
    assert [prompt_of(asked.document) for asked in server.asked[:12]] == [case.prompt for case in CASES.cases]
    assert prompt_of(server.asked[-1].document) == "p11\n\nEvidence:\nx"
    call = attempt.results[0].tally.calls[0]
    assert (call.tokens_input, call.tokens_output) == (12, 3)
    assert call.latency_s is not None
    assert call.latency_s > 0
    assert call.started_at is not None
    assert attempt.scope == "live_provider"


@pytest.mark.parametrize("status", [429, 500, 401])
def test_no_policy_tries_again_behind_the_budget(status: int) -> None:
    with serving(lambda _: Response(b"{}", status, {"Retry-After": "0"})) as server:
        attempt = live(server, CASES, Terms(100, 60))
    assert [len(result.tally.calls) for result in attempt.results] == [12, 24, 12]
    assert len(server.asked) == 48
    assert [result.tally.errors for result in attempt.results] == [12, 12, 12]
    assert {call.failure for result in attempt.results for call in result.tally.calls} == {
        {429: "rate_limited", 500: "server_error", 401: "unauthorised"}[status] + f": status {status}"
    }


def test_one_bad_case_does_not_end_the_run() -> None:
    with serving(lambda document: None if prompt_of(document) == "p3" else answer()) as server:
        (result,) = live(server, CASES, Terms(100, 60, (BASELINE,))).results
    assert (result.tally.correct, result.tally.errors, result.tally.state) == (11, 1, "completed")


def test_calls_overlap_where_their_prompts_are_known_and_only_there() -> None:
    def slow(_: object) -> Response:
        time.sleep(0.03)
        return answer()

    for policies, most in (((BASELINE,), 4), ((RETRY,), 1), ((EVIDENCE,), 4)):
        with serving(slow) as server:
            live(server, CASES, Terms(100, 60, policies), concurrency=4)
        assert server.most_in_flight == most


BEHAVIOUR = st.lists(st.sampled_from(["ready", "wrong", "500", "drop"]), min_size=12, max_size=12)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(BEHAVIOUR, st.integers(0, 26), st.integers(2, 16))
def test_concurrency_changes_no_counter_and_no_trace_and_the_budget_holds(
    behaviour: list[str], budget: int, concurrency: int
) -> None:
    def handler(document: dict[str, Any]) -> Response | None:
        what = behaviour[int(prompt_of(document).split("\n")[0][1:])]
        if what == "drop":
            return None
        return Response(b"{}", 500) if what == "500" else answer(what)

    with serving(handler) as server:
        alone = live(server, CASES, Terms(budget, 60))
        calls = sum(len(result.tally.calls) for result in alone.results)
        assert len(server.asked) == calls
        together = live(server, CASES, Terms(budget, 60), concurrency)
        assert len(server.asked) == 2 * calls
    assert told(together) == told(alone)
    assert all(len(result.tally.calls) <= budget for result in together.results)
    replayed = run_attempt(CASES, Replay(recorded([together])), Terms(budget, 60), 1)
    assert told(replayed) == told(alone)


def test_with_eight_in_flight_a_budget_of_ten_sends_no_eleventh_call() -> None:
    lock, sent = threading.Lock(), []

    def failing_late(document: dict[str, Any]) -> None:
        with lock:
            sent.append(prompt_of(document))
        time.sleep(0.02)

    with serving(failing_late) as server:
        (result,) = live(server, CASES, Terms(10, 60, (BASELINE,)), concurrency=8).results
    assert len(sent) == 10
    tally = result.tally
    assert (tally.attempted, tally.errors, len(tally.calls), tally.total) == (10, 10, 10, 12)
    assert tally.state == "budget-exhausted"


@pytest.mark.parametrize("concurrency", [1, 5])
def test_a_server_that_hangs_costs_the_policy_its_time_and_what_was_sent_is_counted(concurrency: int) -> None:
    with serving(lambda _: None) as server:
        server.handler = lambda document: (
            answer() if prompt_of(document) in {"p0", "p1"} else server.hang(document)
        )
        started = time.monotonic()
        (result,) = live(server, CASES, Terms(100, 0.6, (BASELINE,)), concurrency).results
        assert time.monotonic() - started < 6
        sent = len(server.asked)
    tally = result.tally
    assert (tally.correct, tally.errors, len(tally.calls)) == (2, concurrency, sent)
    assert sent == 2 + concurrency
    assert tally.state == "cancelled"
    assert tally.attempted == sent
    assert {call.failure and call.failure.split(":")[0] for call in tally.calls[2:]} == {"deadline"}


def test_a_cancelled_policy_leaves_the_next_its_own_time() -> None:
    with serving(lambda _: None) as server:
        server.handler = lambda document: (
            answer() if "Evidence" in prompt_of(document) else server.hang(document)
        )
        cases = case_set(("a", "p", "ready", ["x"]))
        results = live(server, cases, Terms(5, 0.3)).results
    assert [result.tally.state for result in results] == ["cancelled", "cancelled", "completed"]


def test_attempts_of_a_live_model_are_recorded_apart() -> None:
    answers = iter(range(100))
    with serving(lambda _: answer(str(next(answers)))) as server:
        attempts = [live(server, CASES, Terms(12, 60), number=number) for number in (1, 2)]
    model = Replay(recorded(attempts))
    for attempt in attempts:
        assert told(run_attempt(CASES, model, Terms(12, 60), attempt.number)) == told(attempt)
