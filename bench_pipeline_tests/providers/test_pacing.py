"""An upstream's pace holds for all who share it: so many requests in any minute, and none while it rests."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.providers.chat import ChatAnswer, ChatFailure
from bench_pipeline.providers.pacing import Pace
from bench_pipeline.providers.retrying import Patient


class Clock:
    """A clock that is set by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Model:
    """A model that answers, and counts how often it was asked."""

    asked = 0

    def ask(self, prompt: str, seconds: float) -> ChatAnswer:
        self.asked += 1
        return ChatAnswer(f"{prompt} {seconds:g}")


@given(st.integers(1, 5), st.lists(st.floats(0, 30), max_size=60))
def test_no_minute_has_more_requests_than_it_may(per_minute: int, pauses: list[float]) -> None:
    clock = Clock()
    pace, begun = Pace(per_minute, clock), []
    for pause in pauses:
        clock.now += pause
        if pace.begin() == 0:
            begun.append(clock.now)
    for first, beyond in zip(begun, begun[per_minute:], strict=False):
        assert beyond - first >= 59.999


@given(st.integers(1, 5), st.floats(0, 30))
def test_the_wait_that_is_told_is_enough(per_minute: int, rest: float) -> None:
    clock = Clock()
    pace = Pace(per_minute, clock)
    for _ in range(per_minute):
        assert pace.begin() == 0
    pace.rest(rest)
    clock.now += pace.begin() + 1e-6
    assert pace.begin() == 0


def test_without_a_number_only_a_rest_holds_anybody_up() -> None:
    clock = Clock()
    pace = Pace(None, clock)
    assert [pace.begin() for _ in range(1000)] == [0] * 1000
    pace.rest(5)
    assert pace.begin() == 5


def test_who_shares_a_pace_does_not_ask_beyond_it_and_stops_waiting_when_told() -> None:
    pace, model, stop = Pace(2), Model(), threading.Event()
    judges = [Patient(model, pace=pace, stop=stop) for _ in range(2)]
    for judge in judges:
        judge.ask("?")
    waiting = threading.Timer(0.05, stop.set)
    waiting.start()
    with pytest.raises(ChatFailure, match="not asked"):
        judges[0].ask("?")
    waiting.join()
    assert model.asked == 2
