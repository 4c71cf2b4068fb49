import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.statistics.attempts import mean_pass_at_k, mean_pass_hat_k, pass_at_k, pass_hat_k

THREE_TASKS = {"all": (5, 5), "none": (5, 0), "one": (5, 1)}


def test_pass_at_k_gives_the_published_values() -> None:
    assert [round(pass_at_k(5, 2, k) or 0, 6) for k in (1, 2, 3)] == [0.4, 0.7, 0.9]
    assert round(mean_pass_at_k(THREE_TASKS, 2).value or 0, 6) == 0.466667


def test_pass_hat_k_gives_the_published_values() -> None:
    assert round(pass_hat_k(5, 2, 2) or 0, 6) == 0.1
    assert round(mean_pass_hat_k(THREE_TASKS, 2).value or 0, 6) == 0.333333


@given(st.lists(st.booleans(), min_size=1, max_size=7), st.integers(1, 7))
def test_both_are_shares_of_all_ways_to_draw_k_attempts(results: list[bool], k: int) -> None:
    draws = list(itertools.combinations(results, k))
    at_least_one = pass_at_k(len(results), sum(results), k)
    all_of = pass_hat_k(len(results), sum(results), k)
    if not draws:
        assert at_least_one is None
        assert all_of is None
    else:
        assert at_least_one == pytest.approx(sum(any(d) for d in draws) / len(draws))
        assert all_of == pytest.approx(sum(all(d) for d in draws) / len(draws))


def test_a_task_with_too_few_attempts_is_named_and_not_counted() -> None:
    result = mean_pass_at_k({**THREE_TASKS, "short": (1, 1), "gone": (0, 0)}, 2)
    assert (round(result.value or 0, 6), result.tasks) == (0.466667, 3)
    assert result.left_out == ("gone", "short")
    assert mean_pass_at_k({"short": (1, 1)}, 2).value is None


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="no sense"):
        pass_at_k(2, 3, 1)
    with pytest.raises(ValueError, match="no sense"):
        pass_hat_k(2, 1, 0)
