import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from bench_pipeline.statistics.paired import compare_scores, mcnemar_exact, paired_difference, sign_flip

A = [1, 1, 1, 0, 1, 0, 1, 1, 0, 1]
B = [1, 0, 1, 0, 0, 0, 1, 1, 0, 0]


def test_the_paired_difference_gives_the_published_values() -> None:
    result = paired_difference(A, B)
    assert result.difference == pytest.approx(0.3, abs=1e-12)
    assert result.error is not None
    assert round(result.error, 6) == 0.152753
    assert result.interval is not None
    low, high = stats.t.interval(0.95, 9, loc=0.3, scale=result.error)
    assert (result.interval.low, result.interval.high) == pytest.approx((low, high))
    assert result.method == "paired t, independent tasks, n=10 tasks"


def test_tasks_that_share_a_repository_are_clustered() -> None:
    repositories = ["r", "r", "r", "s", "s", "t", "t", "u", "u", "u"]
    result = paired_difference(A, B, clusters=repositories)
    assert result.method == "paired t, clustered by 4 repositories, n=10 tasks"
    assert result.error != paired_difference(A, B).error
    assert result.interval is not None
    assert result.error is not None
    assert result.interval.high - result.interval.low == pytest.approx(
        2 * stats.t.isf(0.025, 3) * result.error
    )


def test_a_single_repository_says_so_instead_of_dropping_the_interval() -> None:
    result = paired_difference(A, B, clusters=["r"] * 10)
    assert result.interval is not None
    assert result.method == "paired t, one repository, n=10 tasks"
    assert paired_difference(A, B, clusters=range(10)).method == "paired t, independent tasks, n=10 tasks"


def test_below_ten_tasks_binary_results_have_the_exact_score_interval_and_scores_none() -> None:
    binary = paired_difference(A[:9], B[:9])
    assert binary.interval is not None
    assert binary.method == "exact unconditional score interval (Tango statistic) n=9 tasks"
    graded = paired_difference([0.5, 1.0, 0.0], [0.0, 0.5, 0.0])
    assert graded.interval is None
    assert graded.method == "no interval: fewer than 10 tasks, n=3 tasks"


def test_zero_variance_never_gives_an_interval_of_width_zero() -> None:
    alike = paired_difference(A, A)
    assert alike.difference == 0
    assert alike.interval is not None
    assert alike.interval.low < -0.2
    assert alike.interval.high > 0.2
    graded = paired_difference([0.75] * 12, [0.5] * 12)
    assert graded.interval is None
    assert graded.method == "no interval: no variance, n=12 tasks"


def test_no_shared_task_is_no_difference() -> None:
    assert paired_difference([], []).difference is None
    with pytest.raises(ValueError, match="same tasks"):
        paired_difference([1], [])


@pytest.mark.parametrize(
    ("b", "c", "p"),
    [(3, 0, 0.25), (5, 0, 0.0625), (6, 0, 0.03125), (8, 2, 0.109375), (10, 1, 0.011719), (0, 0, 1.0)],
)
def test_mcnemar_gives_the_published_values_from_either_side(b: int, c: int, p: float) -> None:
    assert round(mcnemar_exact(b, c), 6) == p
    assert mcnemar_exact(c, b) == mcnemar_exact(b, c)


@given(st.integers(0, 80), st.integers(0, 80))
def test_mcnemar_agrees_with_statsmodels(b: int, c: int) -> None:
    assert mcnemar_exact(b, c) == pytest.approx(min(1.0, mcnemar([[1, b], [c, 1]], exact=True).pvalue))


def test_mcnemar_refuses_negative_counts() -> None:
    with pytest.raises(ValueError, match="negative"):
        mcnemar_exact(-1, 0)


@settings(max_examples=60)
@given(
    st.lists(
        st.sampled_from([-1.0, -2 / 3, 1 / 3 - 1, -1 / 3, 0.0, 1 / 3, 1 - 1 / 3, 1.0]), min_size=1, max_size=9
    )
)
def test_the_sign_flip_test_counts_every_assignment_of_signs(differences: list[float]) -> None:
    observed = abs(sum(differences))
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in itertools.product((-1, 1), repeat=len(differences))
    ]
    expected = sum(value >= observed - 1e-9 for value in sums) / len(sums)
    assert sign_flip(differences).p_value == pytest.approx(expected)


def test_the_sign_flip_test_on_single_attempts_is_mcnemar() -> None:
    assert sign_flip([1.0] * 8 + [-1.0] * 2 + [0.0] * 90).p_value == pytest.approx(mcnemar_exact(8, 2))


def test_many_distinct_differences_are_permuted_with_a_named_seed() -> None:
    differences = [0.01 * place * (1 if place % 3 else -1) for place in range(1, 41)]
    first = sign_flip(differences, seed=5, resamples=4000)
    assert first.method == "sign-flip n=40 tasks (40 differ), 4000 permutations, seed 5"
    assert first == sign_flip(list(reversed(differences)), seed=5, resamples=4000)
    oracle = stats.permutation_test(
        (differences,), sum, permutation_type="samples", n_resamples=4000, rng=1, alternative="two-sided"
    )
    assert first.p_value == pytest.approx(oracle.pvalue, abs=0.03)


def test_a_permutation_p_value_is_never_zero() -> None:
    result = sign_flip([1.0 + place / 100 for place in range(60)], resamples=100)
    assert result.p_value == pytest.approx(1 / 101)


def test_the_number_of_attempts_decides_the_test_and_the_method_says_which() -> None:
    single = compare_scores(A, B, single_attempts=True)
    assert (single.p_value, single.method) == (0.25, "exact McNemar n=10 tasks")
    several = compare_scores([0.5, 1.0], [0.0, 0.5], single_attempts=False)
    assert (several.p_value, several.method) == (0.5, "sign-flip n=2 tasks (2 differ), exact enumeration")
    assert compare_scores([], [], single_attempts=True).p_value is None
    assert sign_flip([]).p_value is None


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=10, max_size=40), st.randoms())
def test_the_order_of_tasks_changes_nothing(rows: list[tuple[float, float]], shuffler: random.Random) -> None:
    mixed = list(rows)
    shuffler.shuffle(mixed)
    first = paired_difference([a for a, _ in rows], [b for _, b in rows])
    assert first == paired_difference([a for a, _ in mixed], [b for _, b in mixed])
