"""Who is on the front of cost against gain."""

from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.statistics.pareto import pareto_front

POINTS = st.lists(st.tuples(st.integers(0, 4).map(float), st.integers(0, 4).map(float)), max_size=8)


def test_the_front_holds_whom_nobody_beats_in_both_and_equal_points_together() -> None:
    points = [(1.0, 0.3), (2.0, 0.3), (2.0, 0.7), (2.0, 0.7), (3.0, 0.6), (0.5, 0.1)]
    assert pareto_front(points) == [True, False, True, True, False, True]
    assert pareto_front([]) == []


@given(POINTS)
def test_a_point_is_on_the_front_exactly_when_no_other_dominates_it(
    points: list[tuple[float, float]],
) -> None:
    def beaten(one: tuple[float, float]) -> bool:
        return any(x <= one[0] and y >= one[1] and (x, y) != one for x, y in points)

    assert pareto_front(points) == [not beaten(point) for point in points]
