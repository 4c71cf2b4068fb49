import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bench_pipeline.statistics.ranking import competition_ranks, rank_bands, whole_scores


def test_equal_scores_share_a_rank_and_the_next_one_is_skipped() -> None:
    assert competition_ranks(np.array([3, 5, 3, 1])).tolist() == [2, 1, 2, 4]


@settings(deadline=None)
@given(hnp.arrays(np.int64, st.tuples(st.integers(1, 5), st.integers(2, 12)), elements=st.integers(0, 3)))
def test_the_order_of_the_setups_moves_bands_along_with_them(scores: np.ndarray) -> None:
    forward = rank_bands(scores, resamples=200)
    backward = rank_bands(scores[::-1], resamples=200)
    assert forward is not None
    assert backward is not None
    assert forward.low == backward.low[::-1]
    assert forward.high == backward.high[::-1]
    ranks = competition_ranks(scores.sum(axis=1))
    assert all(low <= rank <= high for low, rank, high in zip(forward.low, ranks, forward.high, strict=True))


def test_a_band_is_reproducible_from_what_its_method_names() -> None:
    scores = np.random.default_rng(3).integers(0, 2, (5, 40))
    bands = rank_bands(scores, seed=9, resamples=2500)
    assert bands is not None
    assert bands.method == "rank band: bootstrap of 40 tasks, 2500 resamples, seed 9"
    assert bands == rank_bands(scores, seed=9, resamples=2500)


def test_the_bands_agree_with_a_plain_bootstrap() -> None:
    scores = np.random.default_rng(4).integers(0, 2, (4, 60))
    bands = rank_bands(scores, resamples=4000)
    assert bands is not None
    generator = np.random.default_rng(99)
    ranks = []
    for _ in range(4000):
        sums = scores[:, generator.integers(0, 60, 60)].sum(axis=1)
        ranks.append([1 + int((sums > own).sum()) for own in sums])
    low, high = np.percentile(ranks, [2.5, 97.5], axis=0, method="inverted_cdf")
    assert np.abs(low - bands.low).max() <= 1
    assert np.abs(high - bands.high).max() <= 1


def test_a_setup_that_wins_every_task_has_a_band_of_one_rank() -> None:
    bands = rank_bands(np.array([[1] * 20, [0] * 20]), resamples=100)
    assert bands is not None
    assert (bands.low, bands.high) == ((1, 2), (1, 2))


def test_one_task_has_no_band() -> None:
    assert rank_bands(np.array([[1], [0]])) is None
    assert rank_bands(np.zeros((0, 5), dtype=np.int64)) is None


def test_scores_of_unequal_attempts_become_whole_numbers_without_rounding() -> None:
    numerators, denominator = whole_scores(np.array([[1, 2], [1, 1]]), np.array([[3, 3], [2, 2]]))
    assert denominator == 6
    assert numerators.tolist() == [[2, 4], [3, 3]]
    assert numerators.sum(axis=1).tolist() == [6, 6]


def test_a_denominator_that_is_too_large_is_replaced_by_a_fixed_one() -> None:
    attempts = np.arange(1, 101)[None, :]
    numerators, denominator = whole_scores(attempts - 1, attempts)
    assert denominator == 2**40 // 100
    assert abs(numerators[0, 99] / denominator - 0.99) < 1e-9
