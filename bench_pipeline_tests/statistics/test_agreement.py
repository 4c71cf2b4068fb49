import krippendorff
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa, to_table

from bench_pipeline.statistics.agreement import cohen_kappa, krippendorff_alpha

FIRST, SECOND = [1, 1, 0, 1, 0, 0, 1, 0], [1, 0, 0, 1, 0, 1, 1, 0]


def test_kappa_and_alpha_give_the_published_values() -> None:
    assert cohen_kappa(FIRST, SECOND).value == 0.5
    assert krippendorff_alpha([FIRST, SECOND]).value == 0.53125


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=3, max_size=40))
def test_kappa_agrees_with_statsmodels(pairs: list[tuple[int, int]]) -> None:
    ours = cohen_kappa([a for a, _ in pairs], [b for _, b in pairs])
    if ours.value is not None and len({value for pair in pairs for value in pair}) > 1:
        assert ours.value == pytest.approx(cohens_kappa(to_table(pairs)[0], return_results=False))


@given(st.lists(st.lists(st.sampled_from([1, 2, 3, None]), min_size=8, max_size=8), min_size=2, max_size=4))
def test_alpha_with_gaps_agrees_with_krippendorff(ratings: list[list[int | None]]) -> None:
    ours = krippendorff_alpha(ratings)
    if ours.value is not None:
        gaps = [[float("nan") if value is None else float(value) for value in row] for row in ratings]
        assert ours.value == pytest.approx(krippendorff.alpha(gaps, level_of_measurement="nominal"))


def test_a_gap_is_no_category() -> None:
    result = cohen_kappa([*FIRST, None, 1], [*SECOND, 1, None])
    assert (result.value, result.units) == (0.5, 8)
    assert result.method == "Cohen kappa n=8 units"


def test_agreement_without_variation_or_without_pairs_is_undefined() -> None:
    assert cohen_kappa([1, 1], [1, 1]).value is None
    assert cohen_kappa([], []).value is None
    assert krippendorff_alpha([[1, 1], [1, 1]]).value is None
    assert krippendorff_alpha([[1, None], [None, 2]]).value is None
    assert krippendorff_alpha([]).value is None


def test_raters_with_unequal_units_are_refused() -> None:
    with pytest.raises(ValueError, match="same units"):
        cohen_kappa([1], [1, 0])
    with pytest.raises(ValueError, match="one entry per unit"):
        krippendorff_alpha([[1], [1, 0]])
