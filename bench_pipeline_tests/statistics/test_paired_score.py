import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bench_pipeline.statistics.paired_score import (
    EXACT_TASKS,
    score_interval_paired,
    score_statistic,
)


def limits(only_a: int, only_b: int, tasks: int) -> tuple[float, float]:
    interval = score_interval_paired(only_a, only_b, tasks)
    return interval.low, interval.high


@pytest.mark.parametrize("tasks", [2, 5, 9])
def test_the_exact_interval_covers_the_truth_at_least_95_times_in_100(tasks: int) -> None:
    outcomes = [(a, b) for a in range(tasks + 1) for b in range(tasks + 1 - a)]
    intervals = {outcome: limits(*outcome, tasks) for outcome in outcomes}
    generator = np.random.default_rng(11)
    chances = [
        *generator.dirichlet([1, 1, 1], 120),
        *generator.dirichlet([0.2, 0.2, 0.2], 120),
        [0.5, 0.5, 0],
        [1, 0, 0],
    ]
    for chance in chances:
        truth = chance[0] - chance[1]
        covered = sum(
            float(stats.multinomial.pmf([a, b, tasks - a - b], tasks, chance))
            for (a, b), (low, high) in intervals.items()
            if low - 1e-9 <= truth <= high + 1e-9
        )
        assert covered >= 0.95 - 1e-3


def test_the_asymptotic_interval_inverts_the_score_statistic() -> None:
    low, high = limits(40, 20, 160)
    z = [float(score_statistic(np.array(40.0), np.array(20.0), 160, delta)) for delta in (low, high)]
    assert z == pytest.approx([1.959964, -1.959964], abs=1e-5)
    assert (round(low, 4), round(high, 4)) == (0.0309, 0.2181)


@pytest.mark.parametrize("tasks", [31, 100, 5000])
def test_without_any_discordant_task_the_asymptotic_end_has_its_closed_form(tasks: int) -> None:
    square = float(stats.norm.isf(0.025)) ** 2
    assert limits(0, 0, tasks) == pytest.approx((-square / (tasks + square), square / (tasks + square)))


def test_results_that_all_point_one_way_reach_the_end_of_the_scale() -> None:
    for tasks in (3, EXACT_TASKS, EXACT_TASKS + 1, 400):
        low, high = limits(tasks, 0, tasks)
        assert high == 1.0
        assert -1 < low < 1
        assert limits(0, tasks, tasks) == (-1.0, -low)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.integers(0, n), st.just(n))))
def test_swapping_the_setups_mirrors_the_interval_and_it_holds_the_estimate(
    counts: tuple[int, int, int],
) -> None:
    only_a, only_b, tasks = counts
    if only_a + only_b > tasks:
        only_b = tasks - only_a
    low, high = limits(only_a, only_b, tasks)
    assert -1 <= low <= (only_a - only_b) / tasks <= high <= 1
    assert limits(only_b, only_a, tasks) == (-high, -low)


def test_the_exact_and_the_asymptotic_interval_meet_where_one_takes_over() -> None:
    below, above = limits(0, 0, EXACT_TASKS), limits(0, 0, EXACT_TASKS + 1)
    assert below[1] == pytest.approx(above[1], abs=0.015)
    assert "exact unconditional" in score_interval_paired(0, 0, EXACT_TASKS).method
    assert (
        score_interval_paired(0, 0, EXACT_TASKS + 1).method
        == f"score interval (Tango statistic) n={EXACT_TASKS + 1} tasks"
    )


def test_impossible_counts_are_refused() -> None:
    for counts in [(-1, 0, 3), (2, 2, 3), (0, 0, 0)]:
        with pytest.raises(ValueError, match="no sense"):
            score_interval_paired(*counts)
