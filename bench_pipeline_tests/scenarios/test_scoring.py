"""Scoring: both bounds inclusive, evidence letter for letter, harness checks by their own label."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.scenarios.checks import CHECK_NAMES
from bench_pipeline.scenarios.scenario import Scenario
from bench_pipeline.scenarios.scoring import Evidence, Measured, score


def _scenario(*required: str, max_steps: int = 5, max_seconds: int = 20) -> Scenario:
    return Scenario("s", "g", max_steps, max_seconds, required, Path("s.toml"), "0" * 64)


@pytest.mark.parametrize(
    ("steps", "seconds", "passed"),
    [(5, 20, True), (0, 0, True), (6, 20, False), (5, 21, False), (6, 21, False)],
)
def test_both_bounds_are_inclusive(steps: int, seconds: int, passed: bool) -> None:
    scored = score(_scenario(), Measured(steps, seconds, ()))
    assert (scored.passed, scored.over_steps, scored.over_seconds) == (passed, steps > 5, seconds > 20)


def test_a_required_string_has_to_stand_in_a_single_item_letter_for_letter() -> None:
    evidence = (Evidence("all tests"), Evidence(" pass"), Evidence("Done"))
    scored = score(_scenario("tests pass", "done", "Done", "all"), Measured(1, 1, evidence))
    assert scored.missing == ("tests pass", "done")
    assert not scored.passed


def test_what_is_missing_stands_in_the_scenarios_order() -> None:
    assert score(_scenario("z", "a", "m"), Measured(1, 1, (Evidence("m"),))).missing == ("z", "a")


@pytest.mark.parametrize("name", sorted(CHECK_NAMES))
def test_a_harness_check_is_met_by_its_own_passed_label_only(name: str) -> None:
    claims = (
        Evidence(f"I ran {name} and it passed"),
        Evidence(name),
        Evidence(f"{name} passed"),
        *(Evidence(f"{other} passed", other) for other in CHECK_NAMES - {name}),
    )
    assert score(_scenario(name), Measured(1, 1, claims)).missing == (name,)
    assert score(_scenario(name), Measured(1, 1, (*claims, Evidence("x", name)))).passed


TEXTS = st.lists(st.text(max_size=8).filter(str.strip), unique=True, max_size=4)


@given(TEXTS, TEXTS, st.integers(0, 9), st.integers(0, 30))
def test_passed_is_exactly_within_both_caps_and_nothing_missing(
    required: list[str], items: list[str], steps: int, seconds: int
) -> None:
    scored = score(_scenario(*required), Measured(steps, seconds, tuple(map(Evidence, items))))
    missing = tuple(
        text for text in required if text in CHECK_NAMES or not any(text in item for item in items)
    )
    assert scored.missing == missing
    assert scored.passed == (steps <= 5 and seconds <= 20 and not missing)


@given(TEXTS, TEXTS, TEXTS)
def test_more_evidence_never_makes_more_missing(
    required: list[str], items: list[str], more: list[str]
) -> None:
    few = score(_scenario(*required), Measured(1, 1, tuple(map(Evidence, items))))
    many = score(_scenario(*required), Measured(1, 1, tuple(map(Evidence, items + more))))
    assert set(many.missing) <= set(few.missing)
