"""What a person sees of a table in the UI: denominators, no unknown numbers, nothing that could be markup."""

from datetime import UTC, datetime

from bench_pipeline.pipeline.glances import glance
from bench_pipeline.tables import table_schema

KEYS = {"identity": "a" * 64, "run_key": "b" * 64, "verify_key": "c" * 64, "setup_digest": "d" * 64}
CELL = {
    **KEYS,
    "evaluation": "models",
    "tier": "smoke",
    "attempt": 1,
    "task_id": "t1",
    "setup": "tool/model/-",
}
RANKED = {
    "evaluation": "models", "ranked": True, "rank": 1, "band_low": 1, "band_high": 2, "setup": "a", "setup_digest": "1",
    "shared_tasks": 4, "total": 4, "attempted": 4, "measured": 4, "passed": 3, "pass_rate": 0.75, "rate_low": 0.3,
    "rate_high": 0.95, "cost_known": 0, "cost_unknown": 4,
}  # fmt: skip
PAIR = {
    "evaluation": "models", "setup_a": "a", "setup_b": "b", "shared_tasks": 4, "only_a": 0, "only_b": 0,
    "difference": 0.5, "diff_low": 0.1, "diff_high": 0.8, "p_value": 0.01, "p_holm": 0.02,
}  # fmt: skip


def verdict(**values: object) -> dict[str, object]:
    row = {**CELL, "outcome": "passed", "outcome_class": "verdict", "passed": True, "tries": 1, **values}
    return {"measured_at": datetime(2026, 1, 2, 3, 4, tzinfo=UTC), **row}


def test_verdicts_are_summed_up_by_outcome_and_failures_come_first() -> None:
    rows = [
        verdict(),
        verdict(
            task_id="t2", outcome="timeout", outcome_class="execution_failure", passed=None, identity="e" * 64
        ),
    ]
    seen = glance("verdicts", table_schema("verdicts").from_rows(rows))
    assert seen.summary == "2 cells: 1 passed, 1 timeout"
    lines = seen.preview.splitlines()
    assert "t2" in lines[2]
    assert "t1" in lines[3]
    assert seen.numbers == {"not_attempted": 0}


def test_text_of_documents_and_tools_cannot_be_markup() -> None:
    evil = "<script>|x\n[link](http://evil) `code` \x1b[31m\u202e"
    seen = glance("verdicts", table_schema("verdicts").from_rows([verdict(reason=evil, setup=evil)]))
    for char in "<>`[]":
        assert char not in seen.preview
    assert all(
        line.count("|") == seen.preview.splitlines()[0].count("|") for line in seen.preview.splitlines()
    )
    assert not set("\x1b\u202e") & set(seen.preview)


def test_a_ranking_is_charted_by_evaluation_with_its_denominators() -> None:
    other = {
        **RANKED,
        "setup": "b",
        "setup_digest": "2",
        "ranked": False,
        "rank": None,
        "measured": 1,
        "passed": 0,
    }
    seen = glance("evaluation_rankings", table_schema("evaluation_rankings").from_rows([RANKED, other]))
    assert seen.numbers == {
        "evaluations": 1,
        "setups_ranked": 1,
        "setups_not_ranked": 1,
        "coverage: models": 5 / 8,
        "tasks_shared: models": 4,
        "top_pass_rate: models": 0.75,
    }
    assert (
        seen.summary == "- models: a, 75.0% (30.0 to 95.0); 1 setup ranked over 4 shared tasks; 1 not ranked"
    )


def test_an_evaluation_without_a_ranked_setup_has_no_top_pass_rate() -> None:
    row = {**RANKED, "ranked": False, "rank": None}
    seen = glance("evaluation_rankings", table_schema("evaluation_rankings").from_rows([row]))
    assert "top_pass_rate: models" not in seen.numbers
    assert "none of 1 setup can be ranked" in seen.summary


def test_comparisons_say_how_many_pairs_are_told_apart() -> None:
    rows = [
        PAIR,
        {**PAIR, "setup_b": "c", "p_holm": None, "p_value": None, "shared_tasks": 0, "difference": None},
    ]
    seen = glance("paired_comparisons", table_schema("paired_comparisons").from_rows(rows))
    assert seen.summary == "- models: 1 of 2 pairs told apart, over 0 shared tasks or more"
    assert seen.numbers == {
        "pairs": 2,
        "pairs_told_apart": 1,
        "tasks_shared: models": 0,
        "pairs_told_apart: models": 1,
    }


def test_empty_tables_are_said_to_be_empty() -> None:
    for name in ("evaluation_cells", "verdicts", "evaluation_rankings", "paired_comparisons"):
        seen = glance(name, table_schema(name).empty())
        assert seen.preview == "No rows."
        assert seen.summary
