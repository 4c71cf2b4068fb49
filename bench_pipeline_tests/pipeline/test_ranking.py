"""Rankings from cells and verdicts: denominators, coverage, shared tasks, ties, unknown costs."""

import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_pipeline.errors import StoreError
from bench_pipeline.pipeline.ranking import rank_evaluation, rank_evaluations
from bench_pipeline.tables import table_schema
from bench_pipeline_tests.outcomes import sha, tables, tasks


def rows(ranking: pa.Table) -> dict[str, dict[str, object]]:
    return {row["setup"]: row for row in ranking.to_pylist()}


def test_one_pass_among_nine_failures_to_run_is_not_ranked_above_six_of_ten() -> None:
    """A setup that seldom produced a verdict must not look perfect because of the one that it did."""
    results = {"x": tasks(True, *["timeout"] * 9), "y": tasks(*[True] * 6, *[False] * 4)}
    ranking = rank_evaluation(*tables(results))
    x, y = rows(ranking)["x"], rows(ranking)["y"]
    assert (x["measured"], x["attempted"], x["total"], x["passed"]) == (1, 10, 10, 1)
    assert (x["ranked"], x["rank"], x["band_low"]) == (False, None, None)
    assert x["missing"] == [f"t{place:03} attempt 1: timeout" for place in range(1, 10)]
    assert x["method"] == "wilson n=1, own tasks, not ranked"
    assert (y["ranked"], y["rank"], y["pass_rate"], y["shared_tasks"]) == (True, 1, 0.6, 10)
    assert ranking["setup"].to_pylist() == ["y", "x"]


def test_setups_measured_on_50_and_30_tasks_are_ranked_on_the_28_they_share() -> None:
    """The setup with fewer, easier tasks must not win by them."""
    wide = {
        **tasks(*[True] * 20, *[False] * 8),
        **tasks(*[True] * 22, start=28),
        **tasks(None, None, start=50),
    }
    narrow = {
        **tasks(*[True] * 10, *[False] * 18),
        **tasks(*[None] * 22, start=28),
        **tasks(True, True, start=50),
    }
    (ranking,) = rank_evaluations(*tables({"wide": wide, "narrow": narrow}), min_coverage=0.5)
    found = {row["setup"]: row for row in ranking.rows}
    assert found["wide"]["shared_tasks"] == found["narrow"]["shared_tasks"] == 28
    assert (found["wide"]["rank"], found["wide"]["pass_rate"]) == (1, 20 / 28)
    assert (found["narrow"]["rank"], found["narrow"]["pass_rate"]) == (2, 10 / 28)
    assert (found["wide"]["measured"], found["narrow"]["measured"]) == (50, 30)
    assert len(ranking.left_out) == 24
    assert ranking.left_out["t028"] == "not measured by narrow"
    assert ranking.left_out["t051"] == "not measured by wide"


def test_the_default_coverage_leaves_the_narrow_setup_unranked() -> None:
    wide, narrow = tasks(*[True] * 10), tasks(*[True] * 8, None, None)
    (ranking,) = rank_evaluations(*tables({"wide": wide, "narrow": narrow}))
    assert [(row["setup"], row["ranked"]) for row in ranking.rows] == [("wide", True), ("narrow", False)]
    assert ranking.commands == {sha("narrow"): "bench run nightly --task t008 --task t009"}


def test_ninety_percent_of_ten_cells_is_nine() -> None:
    ranking = rows(rank_evaluation(*tables({"a": tasks(*[True] * 9, None), "b": tasks(*[True] * 10)})))
    assert ranking["a"]["ranked"] is True
    assert ranking["a"]["shared_tasks"] == 9


@pytest.mark.parametrize("min_coverage", [0.0, 0.9])
def test_a_setup_measured_on_one_task_never_leads(min_coverage: float) -> None:
    results = {"full": tasks(*[True, False] * 10), "lucky": tasks(True)}
    ranking = rank_evaluation(*tables(results), min_coverage=min_coverage)
    lucky = rows(ranking)["lucky"]
    assert (lucky["ranked"], lucky["rank"], lucky["measured"], lucky["total"]) == (False, None, 1, 1)
    assert rows(ranking)["full"]["shared_tasks"] == 20
    assert lucky["missing"][0] == "t001 attempt 1: not planned"


def test_execution_failures_are_filled_with_a_retry_and_odd_names_are_quoted() -> None:
    results = {
        "a": {"it's": ["timeout"], "-x": [True], "t": [True]},
        "b": {"it's": [True], "-x": [True], "t": [True]},
    }
    (ranking,) = rank_evaluations(*tables(results))
    assert ranking.commands[sha("a")] == """bench run nightly --task 'it'"'"'s' --retry 1"""
    assert sha("b") not in ranking.commands


def test_many_missing_tasks_are_filled_by_running_the_whole_evaluation() -> None:
    (ranking,) = rank_evaluations(*tables({"a": tasks(*[None] * 40), "b": tasks(*[True] * 40)}))
    assert ranking.commands[sha("a")] == "bench run nightly"


@settings(max_examples=25, deadline=None)
@given(st.randoms())
def test_ties_share_a_rank_whatever_the_order_of_the_input(shuffler: random.Random) -> None:
    results = {
        "c": tasks(True, True, False, False),
        "a": tasks(False, False, True, True),
        "b": tasks(True, True, True, False),
        "d": tasks(False, False, False, True),
    }
    cells, verdicts = tables(results)
    expected = rank_evaluation(cells, verdicts, resamples=200)
    assert [(row["setup"], row["rank"]) for row in expected.to_pylist()] == [
        ("b", 1),
        ("a", 2),
        ("c", 2),
        ("d", 4),
    ]
    orders = [list(range(16)), list(range(16))]
    for order in orders:
        shuffler.shuffle(order)
    assert rank_evaluation(cells.take(orders[0]), verdicts.take(orders[1]), resamples=200).equals(expected)


def test_thirds_that_add_up_to_one_tie_with_one() -> None:
    results = {
        "thirds": {"s": [True, False, False], "t": [True, True, False]},
        "halves": {"s": [True, True, True], "t": [False, False, False]},
    }
    ranking = rows(rank_evaluation(*tables(results)))
    assert ranking["thirds"]["rank"] == ranking["halves"]["rank"] == 1
    assert ranking["thirds"]["pass_rate"] == ranking["halves"]["pass_rate"] == 0.5


def test_cost_orders_the_display_within_a_rank_with_the_unknown_last() -> None:
    same = tasks(True, False)
    facts = {
        "dear": {"cost_usd": 2.0},
        "cheap": {"cost_usd": 1.0, "duration_s": 9.0},
        "cheap and quick": {"cost_usd": 1.0, "duration_s": 3.0},
        "secret": {},
    }
    ranking = rank_evaluation(*tables(dict.fromkeys(facts, same), of_setup=facts))
    assert ranking["setup"].to_pylist() == ["cheap and quick", "cheap", "dear", "secret"]
    assert set(ranking["rank"].to_pylist()) == {1}


def test_a_partly_unknown_cost_is_summed_with_its_counts_and_never_ranked_on() -> None:
    """A free-looking setup was only one whose prices nobody knew."""
    cells, verdicts = tables(
        {"a": tasks(True, True), "b": tasks(True, True)}, of_setup={"b": {"cost_usd": 5.0}}
    )
    costs = [
        1.0 if row["setup"] == "a" and row["task_id"] == "t000" else row["cost_usd"]
        for row in verdicts.to_pylist()
    ]
    verdicts = verdicts.set_column(verdicts.schema.get_field_index("cost_usd"), "cost_usd", pa.array(costs))
    ranking = rank_evaluation(cells, verdicts)
    a, b = rows(ranking)["a"], rows(ranking)["b"]
    assert (a["cost_usd"], a["cost_known"], a["cost_unknown"]) == (1.0, 1, 1)
    assert (b["cost_usd"], b["cost_known"], b["cost_unknown"]) == (10.0, 2, 0)
    assert ranking["setup"].to_pylist() == ["b", "a"]


def test_the_cost_of_failed_tries_counts_and_cells_never_tried_do_not() -> None:
    facts = {"a": {"cost_usd": 4.0}}
    cells, verdicts = tables({"a": {**tasks(True, "timeout"), "t009": [None]}}, of_setup=facts)
    row = rows(rank_evaluation(cells, verdicts, min_coverage=0.1))["a"]
    assert (row["cost_usd"], row["cost_known"], row["cost_unknown"], row["attempted"]) == (8.0, 2, 0, 2)


def test_cached_tokens_count_once_and_one_unknown_class_makes_the_sum_unknown() -> None:
    classes = {"tokens_input": 10, "tokens_cache_read": 100, "tokens_cache_write": 0, "tokens_output": 5}
    facts = {"a": classes, "b": {**classes, "tokens_cache_write": None}}
    ranking = rows(rank_evaluation(*tables(dict.fromkeys("ab", tasks(True, False)), of_setup=facts)))
    assert (ranking["a"]["tokens"], ranking["b"]["tokens"]) == (230, None)


def test_several_attempts_are_averaged_inside_a_task_first() -> None:
    results = {"a": {"s": [True, True, True, True], "t": [False, None, None, None]}}
    row = rows(rank_evaluation(*tables(results), min_coverage=0.5))["a"]
    assert row["pass_rate"] == 0.5
    assert (row["passed"], row["measured"]) == (4, 5)


def test_pass_at_k_is_given_for_every_k_up_to_the_attempts() -> None:
    results = {
        "a": {"s": [True] * 5, "t": [False] * 5, "u": [True, False, False, False, False]},
        "b": {"s": [True] * 5, "t": [True] * 5, "u": [True] * 5},
    }
    row = rows(rank_evaluation(*tables(results)))["a"]
    at_k, hat_k = dict(row["pass_at_k"]), dict(row["pass_hat_k"])
    assert sorted(at_k) == [1, 2, 3, 4, 5]
    assert (round(at_k[2], 6), round(hat_k[2], 6)) == (0.466667, 0.333333)
    assert row["method"].startswith("clustered t over tasks n=3; rank band: bootstrap of 3 tasks")


def test_a_wilson_interval_stands_beside_single_attempts() -> None:
    row = rows(rank_evaluation(*tables({"a": tasks(*[True] * 3, *[False] * 7)}), seed=7, resamples=300))["a"]
    assert (round(row["rate_low"], 6), round(row["rate_high"], 6)) == (0.107791, 0.603222)
    assert row["method"] == "wilson n=10; rank band: bootstrap of 10 tasks, 300 resamples, seed 7"


def test_no_verdict_is_no_rate() -> None:
    row = rows(rank_evaluation(*tables({"a": tasks("timeout", None)})))["a"]
    assert (row["ranked"], row["pass_rate"], row["rate_low"], row["pass_at_k"]) == (False, None, None, None)
    assert (row["total"], row["attempted"], row["measured"], row["passed"], row["shared_tasks"]) == (
        2,
        1,
        0,
        0,
        0,
    )


def test_setups_without_a_common_task_are_not_ranked() -> None:
    results = {"a": tasks(True, True, None, None), "b": tasks(None, None, True, True)}
    ranking = rank_evaluation(*tables(results), min_coverage=0.5)
    assert ranking["ranked"].to_pylist() == [False, False]


def test_a_single_task_is_ranked_without_a_band() -> None:
    ranking = rows(rank_evaluation(*tables({"a": tasks(True), "b": tasks(False)})))
    assert (ranking["a"]["rank"], ranking["a"]["band_low"], ranking["b"]["rank"]) == (1, None, 2)
    assert ranking["a"]["method"] == "wilson n=1; no rank band: one task"


@pytest.mark.parametrize("part", ["task_digest", "verify_key"])
def test_a_task_that_changed_between_its_cells_is_left_out(part: str) -> None:
    cells, verdicts = tables({"a": tasks(True, True, True), "b": tasks(True, False, True)})
    digests = cells[part].to_pylist()
    digests[0] = sha("another content")
    cells = cells.set_column(cells.schema.get_field_index(part), part, pa.array(digests))
    (ranking,) = rank_evaluations(cells, verdicts)
    assert ranking.rows[0]["shared_tasks"] == 2
    assert ranking.left_out == {"t000": "the task changed between its cells; run the evaluation again"}


def test_verdicts_without_a_planned_cell_drop_out_and_cells_without_a_row_were_not_attempted() -> None:
    cells, verdicts = tables({"a": tasks(True, True, False)})
    row = rows(rank_evaluation(cells.slice(0, 2), verdicts))["a"]
    assert (row["total"], row["measured"], row["pass_rate"]) == (2, 2, 1.0)
    row = rows(rank_evaluation(cells, verdicts.slice(0, 2)))["a"]
    assert (row["total"], row["attempted"], row["measured"]) == (3, 2, 2)
    assert row["missing"] == ["t002 attempt 1: not_attempted"]


def test_every_evaluation_has_its_own_ranking() -> None:
    first, second = (
        tables({"a": tasks(True)}, evaluation="one"),
        tables({"a": tasks(False)}, evaluation="two"),
    )
    ranking = rank_evaluation(*(pa.concat_tables(pair) for pair in zip(first, second, strict=True)))
    assert ranking.select(["evaluation", "pass_rate"]).to_pylist() == [
        {"evaluation": "one", "pass_rate": 1.0},
        {"evaluation": "two", "pass_rate": 0.0},
    ]


def test_an_empty_project_has_an_empty_ranking_of_the_same_schema() -> None:
    ranking = rank_evaluation(table_schema("evaluation_cells").empty(), table_schema("verdicts").empty())
    assert ranking.num_rows == 0
    assert ranking.schema.equals(table_schema("evaluation_rankings").schema)


def test_what_is_not_finite_and_what_stands_twice_is_refused() -> None:
    cells, verdicts = tables({"a": tasks(True)}, of_setup={"a": {"cost_usd": float("nan")}})
    with pytest.raises(StoreError, match="not finite"):
        rank_evaluation(cells, verdicts)
    cells, verdicts = tables({"a": tasks(True)})
    with pytest.raises(StoreError, match="twice"):
        rank_evaluation(cells, pa.concat_tables([verdicts, verdicts]))


def test_two_setups_of_one_label_are_told_apart_by_their_digests() -> None:
    cells, verdicts = tables({"a": tasks(True), "b": tasks(False)})
    same = pa.array(["same"] * 2)
    renamed = [t.set_column(t.schema.get_field_index("setup"), "setup", same) for t in (cells, verdicts)]
    labels = rank_evaluation(*renamed)["setup"].to_pylist()
    assert labels == [f"same ({sha('a')[:12]})", f"same ({sha('b')[:12]})"]
