import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from statsmodels.stats.proportion import proportion_confint

from bench_pipeline.statistics.intervals import (
    CONFIDENCE,
    clustered_se,
    mean,
    normal_quantile,
    score_interval,
    standard_error,
    t_interval,
    wilson,
)

SCORES = [1, 1, 0, 1, 0, 0, 1, 1, 1, 0]
CLUSTERS = [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("confidence", [CONFIDENCE, 0.9, 0.99])
def test_a_normal_quantile_is_that_of_scipy_to_the_last_digit(confidence: float) -> None:
    tail = (1 - confidence) / 2
    assert normal_quantile(tail) == -float(special.ndtri(tail))


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (0, 10, 0.0, 0.277533),
        (3, 10, 0.107791, 0.603222),
        (10, 10, 0.722467, 1.0),
        (72, 113, 0.545359, 0.719957),
    ],
)
def test_wilson_gives_the_published_values(successes: int, trials: int, low: float, high: float) -> None:
    interval = wilson(successes, trials)
    assert interval is not None
    assert (round(interval.low, 6), round(interval.high, 6)) == (low, high)
    assert interval.method == f"wilson n={trials}"


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_agrees_with_statsmodels_and_stays_within_0_and_1(counts: tuple[int, int]) -> None:
    interval = wilson(*counts)
    assert interval is not None
    low, high = proportion_confint(*counts, method="wilson")
    assert interval.low == pytest.approx(low, abs=1e-12)
    assert interval.high == pytest.approx(high, abs=1e-12)
    assert 0 <= interval.low <= counts[0] / counts[1] <= interval.high <= 1


def test_no_trials_have_no_interval_and_impossible_counts_are_refused() -> None:
    assert wilson(0, 0) is None
    with pytest.raises(ValueError, match="no proportion"):
        wilson(3, 2)


def test_clustered_standard_errors_give_the_published_values() -> None:
    corrected = clustered_se(SCORES, CLUSTERS)
    assert corrected is not None
    assert round(corrected, 6) == 0.134660
    assert round(corrected * math.sqrt(3 / 4), 6) == 0.116619
    plain = standard_error(SCORES)
    assert plain is not None
    assert round(plain, 6) == 0.163299


def test_one_cluster_or_one_value_has_no_standard_error() -> None:
    assert clustered_se([1, 0, 1], ["r", "r", "r"]) is None
    assert standard_error([1.0]) is None
    assert standard_error([]) is None
    with pytest.raises(ValueError, match="clusters"):
        clustered_se([1, 0], ["r"])


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 4)), min_size=2, max_size=60), st.randoms())
def test_the_order_of_the_input_changes_no_bit(
    rows: list[tuple[float, int]], shuffler: random.Random
) -> None:
    mixed = list(rows)
    shuffler.shuffle(mixed)
    assert mean([v for v, _ in rows]) == mean([v for v, _ in mixed])
    assert clustered_se(*zip(*rows, strict=True)) == clustered_se(*zip(*mixed, strict=True))


def test_a_t_interval_needs_an_error_freedom_and_variance() -> None:
    interval = t_interval(0.5, 0.1, 9, "t")
    assert interval is not None
    assert round(interval.high, 6) == 0.726216
    assert t_interval(0.5, None, 9, "t") is None
    assert t_interval(0.5, 0.0, 9, "t") is None
    assert t_interval(0.5, 0.1, 0, "t") is None


def test_scores_of_several_attempts_have_a_t_interval_over_tasks_within_0_and_1() -> None:
    interval = score_interval([1.0, 2 / 3, 1.0])
    assert interval is not None
    assert interval.method == "clustered t over tasks n=3"
    assert interval.high == 1.0


def test_equal_scores_are_never_given_an_interval_of_width_zero() -> None:
    everything = score_interval([1.0] * 10)
    assert everything is not None
    assert (round(everything.low, 6), everything.high) == (0.722467, 1.0)
    assert everything.method == "wilson over tasks n=10"
    assert score_interval([0.5] * 10) is None
    assert score_interval([1.0]) is None
