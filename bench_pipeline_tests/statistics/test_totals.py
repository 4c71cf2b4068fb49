import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.statistics.totals import segment_sums, total


def test_a_total_says_over_how_many_values_it_is() -> None:
    some = total([1.0, None])
    assert (some.known_sum, some.known, some.unknown, some.complete) == (1.0, 1, 1, None)
    assert total([0.1] * 10).complete == 1.0


def test_nothing_known_is_no_sum_rather_than_zero() -> None:
    assert total([None, None]).known_sum is None
    assert total([]).complete is None


def test_the_sum_is_exact_in_any_order() -> None:
    values = [1e16, 1.0, -1e16, 1e-9]
    assert total(values).known_sum == total(values[::-1]).known_sum == 1.000000001


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_what_is_not_finite_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        total([1.0, bad])


@given(st.lists(st.lists(st.floats(0, 1e300, allow_infinity=False), min_size=1, max_size=9), max_size=5))
def test_sums_of_runs_are_those_of_fsum(runs: list[list[float]]) -> None:
    values = np.array([value for run in runs for value in run], dtype=np.float64)
    starts = np.cumsum([0, *map(len, runs)])[:-1]
    assert segment_sums(values, starts).tolist() == [math.fsum(run) for run in runs]


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_sums_of_runs_refuse_what_is_no_amount(value: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        segment_sums(np.array([1.0, value]), np.array([0]))
