"""Spending caps."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.errors import RefusedError
from bench_pipeline.pipeline.spending import Budget


def test_a_cost_cap_without_any_known_cost_is_refused_and_names_the_setup() -> None:
    budget = Budget(max_cost_usd=1.0, expected_usd={"known": 0.5})
    with pytest.raises(RefusedError, match="other/model"):
        budget.check({"known": "known/model", "new": "other/model"})


def test_a_declared_cost_stands_in_for_an_unknown_one() -> None:
    budget = Budget(max_cost_usd=1.0, assume_cost_usd=0.4)
    budget.check({"new": "other/model"})
    for _ in range(2):
        budget.settle(budget.reserve("new"), None)
    assert budget.reserve("new").stopped_by == "max_cost_usd"


def test_the_real_cost_replaces_the_reservation_and_raises_the_next_one() -> None:
    budget = Budget(max_cost_usd=1.0, expected_usd={"s": 0.1})
    budget.settle(budget.reserve("s"), 0.6)
    assert budget.price("s") == 0.6
    assert budget.reserve("s").stopped_by == "max_cost_usd"


def test_an_unknown_cost_keeps_the_reservation_held() -> None:
    budget = Budget(max_cost_usd=1.0, expected_usd={"s": 0.6})
    budget.settle(budget.reserve("s"), None)
    assert budget.reserve("s").stopped_by == "max_cost_usd"


def test_a_cell_that_did_not_run_gives_its_place_back() -> None:
    budget = Budget(max_cells=1)
    budget.give_back(budget.reserve("s"))
    assert budget.reserve("s").stopped_by is None


def test_a_cell_that_does_not_fit_waits_for_what_the_running_ones_really_cost() -> None:
    budget = Budget(max_cost_usd=1.0, assume_cost_usd=0.8)
    running = budget.reserve("s")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(budget.reserve, "s")
        budget.settle(running, 0.1)
        assert waiting.result().amount_usd == 0.1


def test_after_the_first_cell_that_the_cap_stops_no_cheaper_setup_runs_on_alone() -> None:
    budget = Budget(max_cost_usd=1.0, expected_usd={"dear": 0.8, "cheap": 0.1})
    budget.settle(budget.reserve("dear"), 0.8)
    assert budget.reserve("dear").stopped_by == "max_cost_usd"
    assert budget.reserve("cheap").stopped_by == "max_cost_usd"


@given(
    cap=st.integers(0, 40),
    costs=st.lists(st.integers(0, 12), max_size=30),
)
def test_what_is_held_never_exceeds_the_cap_when_expectations_hold(cap: int, costs: list[int]) -> None:
    budget = Budget(max_cost_usd=cap, expected_usd={"s": 12.0})
    spent = 0
    for cost in costs:
        reservation = budget.reserve("s")
        if reservation.stopped_by is None:
            budget.settle(reservation, cost)
            spent += cost
    assert spent <= cap


def test_many_threads_together_start_no_more_cells_than_the_cap() -> None:
    budget = Budget(max_cells=7)
    with ThreadPoolExecutor(16) as pool:
        started = [r.stopped_by is None for r in pool.map(lambda _: budget.reserve("s"), range(200))]
    assert sum(started) == 7
