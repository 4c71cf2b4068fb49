"""What a cell cost, from a project's table, from what the tool reported, from the built-in table."""

import math
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import genai_prices
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.errors import DocumentError
from bench_pipeline.registry import PriceTable, TokenCounts, cost_of_cell
from bench_pipeline.registry.pricing import ModelPrice, builtin_price

HEAD = "apiVersion: bench.ber.run/v1alpha1\nkind: Pricing\n"
FOUR = HEAD + "models: {mine: {input: 2.00, cache_read: 0.20, cache_write: 2.50, output: 10.00}}\n"
WORK = TokenCounts(200_000, 1_000_000, 0, 40_000)
# A model that the library prices with one rate per class.
KNOWN = "claude-opus-4-1"


def table(tmp_path: Path, text: str) -> PriceTable:
    (tmp_path / "pricing.yaml").write_text(text)
    return PriceTable.load(tmp_path, None)


def test_the_worked_example_costs_one_dollar(tmp_path: Path) -> None:
    assert table(tmp_path, FOUR).cost("mine", WORK) == 1.00


def test_a_missing_rate_of_a_used_class_makes_the_cell_unknown_and_never_a_partial_sum(
    tmp_path: Path,
) -> None:
    prices = table(tmp_path, HEAD + "models: {mine: {input: 2, output: 10}}\n")
    assert prices.cost("mine", WORK) is None
    assert prices.cost("mine", TokenCounts(200_000, 0, 0, 40_000)) == 0.8
    assert cost_of_cell(prices, "mine", WORK, 5.0, True) is None, "a table that names the model decides"


@pytest.mark.parametrize(
    "tokens",
    [
        TokenCounts(),
        TokenCounts(None, 0, 0, 0),
        TokenCounts(1, None, 0, 1),
        TokenCounts(1, 0, None, 1),
        TokenCounts(1, 0, 0, None),
        TokenCounts(-1, 0, 0, 1),
    ],
)
def test_unknown_counts_have_an_unknown_cost(tmp_path: Path, tokens: TokenCounts) -> None:
    assert table(tmp_path, FOUR).cost("mine", tokens) is None


def test_no_tokens_cost_nothing_even_at_unknown_rates(tmp_path: Path) -> None:
    assert table(tmp_path, HEAD + "models: {mine: {}}\n").cost("mine", TokenCounts(0, 0, 0, 0)) == 0.0


def test_without_a_table_a_reported_real_figure_counts_and_a_guess_does_not() -> None:
    none = PriceTable()
    assert cost_of_cell(none, "unheard-of", WORK, 0.25, True) == 0.25
    assert cost_of_cell(none, "unheard-of", WORK, 0.25, False) is None
    assert cost_of_cell(none, "unheard-of", WORK, None, True) is None
    assert cost_of_cell(none, None, WORK, 0.25, True) == 0.25
    assert cost_of_cell(none, None, WORK, None, False) is None


def test_a_reported_zero_is_unknown_unless_a_price_is_known() -> None:
    none = PriceTable()
    assert cost_of_cell(none, "unheard-of", WORK, 0.0, True) is None
    assert cost_of_cell(none, None, WORK, 0.0, True) is None
    assert cost_of_cell(none, KNOWN, WORK, 0.0, True) == 0.0


@pytest.mark.parametrize("figure", [math.nan, math.inf, -0.01])
def test_a_reported_figure_that_is_no_amount_is_not_taken(figure: float) -> None:
    assert cost_of_cell(PriceTable(), "unheard-of", WORK, figure, True) is None


def test_a_project_s_price_comes_before_the_reported_and_the_built_in_one(tmp_path: Path) -> None:
    prices = table(tmp_path, FOUR.replace("mine", KNOWN))
    assert prices.names(KNOWN)
    assert cost_of_cell(prices, KNOWN, WORK, 7.0, True) == 1.00
    assert not PriceTable().names(KNOWN)
    assert cost_of_cell(PriceTable(), KNOWN, WORK, 7.0, True) == 7.0
    assert cost_of_cell(PriceTable(), KNOWN, WORK, 7.0, False) == PriceTable().cost(KNOWN, WORK)


def test_the_project_s_table_stands_over_the_user_s_per_model(tmp_path: Path) -> None:
    user, project = tmp_path / "user", tmp_path / "project"
    user.mkdir()
    project.mkdir()
    (user / "pricing.yaml").write_text(HEAD + "models: {a: {input: 1}, b: {input: 1}}\n")
    (project / "pricing.yaml").write_text(HEAD + "models: {a: {output: 1}}\n")
    prices = PriceTable.load(project, user)
    assert prices.cost("a", TokenCounts(1_000_000, 0, 0, 0)) is None, "the whole entry is replaced"
    assert prices.cost("b", TokenCounts(1_000_000, 0, 0, 0)) == 1.0


@pytest.mark.parametrize("rate", ["-1", ".nan", ".inf", "'2'", "two", "1:30"])
def test_a_rate_is_a_number_of_at_least_zero(tmp_path: Path, rate: str) -> None:
    with pytest.raises(DocumentError) as caught:
        table(tmp_path, HEAD + f"models:\n  mine:\n    input: {rate}\n")
    (problem,) = caught.value.problems
    assert (problem.line, problem.field) == (5, "models.mine.input")


def test_a_wrong_table_of_the_user_and_of_the_project_are_told_together(tmp_path: Path) -> None:
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "pricing.yaml").write_text(HEAD + "model: {}\n")
    (tmp_path / "pricing.yaml").write_text(HEAD + "models: {a: {inputs: 1}}\n")
    with pytest.raises(DocumentError) as caught:
        PriceTable.load(tmp_path, tmp_path / "user")
    assert len(caught.value.problems) == 2


def test_the_built_in_price_agrees_with_the_library_s_own_arithmetic() -> None:
    usage = genai_prices.Usage(
        input_tokens=1_000 + 5_000 + 700, cache_read_tokens=5_000, cache_write_tokens=700, output_tokens=300
    )
    expected = genai_prices.calc_price(usage, KNOWN).total_price
    assert PriceTable().cost(KNOWN, TokenCounts(1_000, 5_000, 700, 300)) == pytest.approx(
        float(expected), rel=1e-12
    )
    assert builtin_price(f"anthropic/{KNOWN}") == builtin_price(KNOWN)


@pytest.mark.parametrize("model", ["unheard-of", "openai/unheard-of", "claude-unheard-of-9", "", "/", "gold"])
def test_a_model_that_the_library_does_not_know_has_no_price(model: str) -> None:
    assert builtin_price(model) is None


def test_a_price_that_rises_with_the_size_of_a_request_is_known_below_that_size_only() -> None:
    price = ModelPrice((Decimal(1), Decimal(1), Decimal(1), Decimal(1)), below=200_000)
    assert price.cost(TokenCounts(199_999, 0, 0, 1)) == 0.2
    assert price.cost(TokenCounts(100_000, 90_000, 10_000, 1)) is None
    tiered = builtin_price("gemini-2.5-pro")
    assert tiered is not None
    assert tiered.below == 200_000


def test_a_price_that_depends_on_the_hour_is_no_price() -> None:
    assert builtin_price("deepseek-chat") is None


COUNTS = st.one_of(st.none(), st.integers(0, 10**12))
RATES = st.one_of(st.none(), st.decimals(0, 1000, places=4))


@given(st.tuples(COUNTS, COUNTS, COUNTS, COUNTS), st.tuples(RATES, RATES, RATES, RATES))
def test_a_cost_is_the_exact_sum_or_unknown(
    counts: tuple[int | None, ...],
    rates: tuple[Decimal | None, Decimal | None, Decimal | None, Decimal | None],
) -> None:
    cost = ModelPrice(rates).cost(TokenCounts(*counts))
    knowable = all(
        count is not None and (count == 0 or rate is not None)
        for count, rate in zip(counts, rates, strict=True)
    )
    assert (cost is not None) is knowable
    if cost is not None:
        total = sum((count or 0) * (rate or 0) for count, rate in zip(counts, rates, strict=True))
        assert cost == float(Decimal(total) / 10**6)


def test_the_price_library_is_loaded_when_a_price_is_asked_for_and_not_before() -> None:
    code = "import sys, bench_pipeline.registry; print('genai_prices' in sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "False\n"
