import pytest

from bench_pipeline.statistics.totals import total


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
