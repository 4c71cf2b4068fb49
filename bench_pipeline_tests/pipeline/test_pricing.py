"""Costs of tries, and of cells with the tries that failed before."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.pipeline.pricing import priced, summed_by_identity, total
from bench_pipeline.registry import PriceTable
from bench_pipeline.registry.pricing import ModelPrice
from bench_pipeline.store.schemas import VERDICT_PARTS

KEY = b"k" * 32
PRICES = PriceTable({"m": ModelPrice((2, 1, 1, 10))})  # type: ignore[arg-type]
START = datetime(2025, 1, 1, tzinfo=UTC)


def rows(*tries: dict[str, object]) -> pa.Table:
    """Rows of one identity, a minute apart; a try is a verdict unless it says otherwise."""
    return VERDICT_PARTS.from_rows(
        [
            {
                "identity": KEY,
                "run_key": KEY,
                "verify_key": KEY,
                "outcome": "passed",
                "outcome_class": "verdict",
                "passed": True,
                "tool_ran": True,
                "model_id": "m",
                "measured_at": START + timedelta(minutes=number),
                "sequence": number,
                **tried,
            }
            for number, tried in enumerate(tries)
        ]
    )


def used(tokens: int | None, **more: object) -> dict[str, object]:
    """A try with as many input tokens (millions) as it cost twice in USD."""
    count = None if tokens is None else tokens * 500_000
    classes = {"tokens_cache_read": 0, "tokens_cache_write": 0, "tokens_output": 0}
    return {"tokens_input": count, **classes, **more}


def failed(tokens: int | None, **more: object) -> dict[str, object]:
    return used(tokens, outcome="timeout", outcome_class="execution_failure", passed=None, **more)


def cost(*tries: dict[str, object]) -> float | None:
    table = summed_by_identity(priced(rows(*tries), PRICES))
    assert table["identity"].to_pylist() == [KEY]
    value: float | None = table["cost_usd"][0].as_py()
    return value


def test_failed_tries_before_a_verdict_are_in_its_cost() -> None:
    assert cost(failed(1), failed(2), used(4)) == 7


def test_a_fresh_measurement_costs_what_it_took_since_the_one_before() -> None:
    assert cost(failed(1), used(2), failed(4), used(8)) == 12


def test_a_failure_after_the_newest_verdict_is_not_in_the_verdict_s_cost() -> None:
    assert cost(used(2), failed(4)) == 2


def test_without_a_verdict_the_cost_is_that_of_all_tries() -> None:
    assert cost(failed(1), failed(2)) == 3


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_unknown_part_makes_the_cost_unknown_and_never_a_partial_sum(place: int) -> None:
    tries: list[dict[str, object]] = [failed(1), failed(1), used(1)]
    tries[place] |= {"tokens_input": None}
    assert cost(*tries) is None


def test_a_try_that_ended_before_its_tool_ran_cost_nothing() -> None:
    assert cost(failed(None, tool_ran=False), used(3)) == 3


def test_a_verdict_on_a_stored_candidate_shows_what_the_candidate_cost() -> None:
    assert cost(used(3, tool_ran=False)) == 3


def test_a_workflow_costs_the_sum_of_its_steps_and_nothing_known_when_one_is_unknown() -> None:
    step = {"input": 500_000, "cache_read": 0, "cache_write": 0, "output": 0}
    rest = {"cost_reported_usd": None, "cost_is_real": False}
    steps = [{"model_id": "m", **step, **rest}, {"model_id": "m", **step, **rest}]
    assert cost(used(None, step_usage=json.dumps(steps))) == 2
    steps[1]["model_id"] = "nobody-knows-this-model"
    assert cost(used(None, step_usage=json.dumps(steps))) is None


@given(st.permutations([failed(1), failed(2), used(4), failed(8), used(16)]), st.randoms())
def test_the_order_of_rows_in_the_store_changes_no_cost(
    tries: Sequence[dict[str, object]], random: object
) -> None:
    table = priced(rows(*tries), PRICES)
    order = list(range(len(tries)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert summed_by_identity(table.take(order)).equals(summed_by_identity(table))


def test_totals_say_over_how_many_they_are() -> None:
    assert total(pa.chunked_array([[1.0, None, 0.5]])) == (1.5, 2, 1)
    assert total(pa.chunked_array([[None]], pa.float64())) == (0.0, 0, 1)
