import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.statistics.planning import detectable_difference, tasks_needed


def test_the_plan_gives_the_published_values() -> None:
    assert tasks_needed(0.03) == 3876
    assert tasks_needed(0.03, 10) == 1260
    assert detectable_difference(3876).difference == pytest.approx(0.03, abs=1e-6)
    assert detectable_difference(1260, 10).difference == pytest.approx(0.03, abs=1e-5)


@given(st.integers(5, 10_000), st.integers(1, 10), st.integers(1, 10))
def test_the_two_directions_agree(tasks: int, attempts_a: int, attempts_b: int) -> None:
    shown = detectable_difference(tasks, attempts_a, attempts_b, between=0.05, within_a=0.1, within_b=0.2)
    if shown.difference is not None:
        assert tasks_needed(
            shown.difference * (1 + 1e-12), attempts_a, attempts_b, between=0.05, within_a=0.1, within_b=0.2
        ) in (tasks, tasks + 1)


def test_too_few_tasks_can_show_nothing_at_all() -> None:
    assert detectable_difference(3).difference is None
    assert detectable_difference(0).difference is None
    assert detectable_difference(4).difference is not None


def test_what_was_assumed_is_said_and_what_is_known_is_used() -> None:
    assumed = detectable_difference(100)
    assert "power 80%" in assumed.assumptions
    assert "0.1111" in assumed.assumptions
    assert "assumed where no earlier measurement is known" in assumed.assumptions
    known = detectable_difference(100, between=0.0, within_a=0.0, within_b=0.04)
    assert "assumed" not in known.assumptions
    assert known.difference == pytest.approx((7.848880 * 0.04 / 100) ** 0.5, abs=1e-6)


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="outside"):
        tasks_needed(0)
    with pytest.raises(ValueError, match="at least one attempt"):
        detectable_difference(10, 0)
