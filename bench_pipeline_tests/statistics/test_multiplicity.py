import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from bench_pipeline.statistics.multiplicity import benjamini_hochberg, holm


def test_holm_and_benjamini_hochberg_give_the_published_values() -> None:
    raw = [0.01, 0.04, 0.03, 0.005]
    assert holm(raw) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert benjamini_hochberg(raw) == pytest.approx([0.02, 0.04, 0.04, 0.02])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_both_agree_with_statsmodels(raw: list[float]) -> None:
    assert holm(raw) == pytest.approx(list(multipletests(raw, method="holm")[1]))
    assert benjamini_hochberg(raw) == pytest.approx(list(multipletests(raw, method="fdr_bh")[1]))


def test_an_unknown_p_value_stays_unknown_and_is_no_comparison() -> None:
    assert holm([None, 0.02, None, 0.04]) == pytest.approx([None, 0.04, None, 0.04])
    assert holm([]) == []
    assert benjamini_hochberg([None]) == [None]


def test_what_is_no_probability_is_refused() -> None:
    for raw in ([1.2], [-0.1], [float("nan")]):
        with pytest.raises(ValueError, match="outside"):
            holm(raw)
