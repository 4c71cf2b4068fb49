import choix
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_pipeline.statistics.pairwise import bradley_terry

CYCLE = [("A", "B", 7, 3, 0), ("B", "C", 6, 4, 0), ("A", "C", 8, 2, 0)]


def test_bradley_terry_gives_the_published_values_and_sums_to_zero() -> None:
    fit = bradley_terry(CYCLE)
    assert fit.values is not None
    assert {name: round(value, 4) for name, value in fit.values.items()} == {
        "A": 0.7406,
        "B": -0.1491,
        "C": -0.5915,
    }
    assert sum(fit.values.values()) == pytest.approx(0, abs=1e-12)
    assert fit.method == "Bradley-Terry maximum likelihood, n=30 comparisons, ties half a win"


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=6, max_size=6))
def test_the_fit_agrees_with_choix(counts: list[tuple[int, int]]) -> None:
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    data = [
        outcome
        for (left, right), (won, lost) in zip(pairs, counts, strict=True)
        for outcome in [(left, right)] * won + [(right, left)] * lost
    ]
    oracle = choix.opt_pairwise(4, data, alpha=0.0, tol=1e-10)
    fit = bradley_terry(
        (str(left), str(right), won, lost, 0)
        for (left, right), (won, lost) in zip(pairs, counts, strict=True)
    )
    assert fit.values is not None
    ours = [fit.values[str(place)] for place in range(4)]
    assert ours == pytest.approx([value - sum(oracle) / 4 for value in oracle], abs=1e-4)


def test_a_contestant_that_never_lost_is_not_identified_rather_than_very_strong() -> None:
    for results in ([("A", "B", 7, 0, 0)], [("A", "B", 3, 3, 0), ("C", "D", 1, 1, 0)], []):
        fit = bradley_terry(results)
        assert fit.values is None
        assert fit.method.startswith("not identified")


def test_a_tie_is_half_a_win_for_each_side() -> None:
    tied = bradley_terry([("A", "B", 2, 0, 2)])
    halves = bradley_terry([("A", "B", 3, 1, 0)])
    assert tied.values == halves.values
    assert tied.comparisons == 4


def test_a_lopsided_but_connected_contest_converges() -> None:
    fit = bradley_terry([("A", "B", 999_999, 1, 0), ("B", "C", 999_999, 1, 0)])
    assert fit.values is not None
    assert fit.values["A"] - fit.values["B"] == pytest.approx(13.815510, abs=1e-5)


def test_the_order_of_results_changes_nothing() -> None:
    assert bradley_terry(CYCLE).values == bradley_terry(reversed(CYCLE)).values


def test_impossible_results_are_refused() -> None:
    for row in (("A", "A", 1, 0, 0), ("A", "B", -1, 0, 0)):
        with pytest.raises(ValueError, match="no comparison"):
            bradley_terry([row])
