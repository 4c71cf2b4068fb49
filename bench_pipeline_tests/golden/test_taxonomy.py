"""Which kind of failure a failed task is: each row of the taxonomy, its order, its words."""

from typing import Any

import pytest

from bench_pipeline.golden.taxonomy import CATEGORIES, SEVERITIES
from bench_pipeline_tests.golden.results import FAILED, PASSED, missing, row, table

Row = dict[str, Any]

# What makes each category hold, in order; each is put on top of those after it.
FACTS: dict[str, Row] = {
    "test_regression": {"tests_regressed": 2},
    "timeout": {"timed_out": True},
    "scope_creep": {"out_of_scope": ["setup.py"]},
    "conflict": {"conflict": True},
    "hallucination": {"compile_error": True},
    "orientation_miss": {"files_read": 9, "files_modified": 2},
    "incomplete": {"signals_checked": 2, "signals_passed": 1},
    "context_miss": {"signals_checked": 0, "signals_passed": 0},
}


def classified(facts: Row) -> Row:
    return table([row("t", facts)]).to_pylist()[0]


@pytest.mark.parametrize("category", CATEGORIES)
def test_each_category_has_its_condition_and_comes_before_those_below_it(category: str) -> None:
    place = CATEGORIES.index(category)
    facts = PASSED | {"tests_failed": 1}
    for below in reversed(CATEGORIES[place:]):
        facts = facts | FACTS[below]
    found = classified(facts)
    assert (found["failure_category"], found["failure_severity"]) == (category, SEVERITIES[category])
    assert found["failure_details"]


def test_severities_are_those_of_the_table() -> None:
    assert dict(SEVERITIES) == {
        "test_regression": "critical",
        "timeout": "high",
        "scope_creep": "high",
        "conflict": "high",
        "hallucination": "high",
        "orientation_miss": "medium",
        "incomplete": "medium",
        "context_miss": "medium",
    }


@pytest.mark.parametrize(
    ("facts", "category", "details"),
    [
        ({"tests_regressed": 2}, "test_regression", "2 tests that passed before the work fail after it"),
        ({"timed_out": True}, "timeout", "ran out of time"),
        ({"duration_s": 301.5, "max_duration_s": 300}, "timeout", "took 301.5 s, 300 s are allowed"),
        ({"duration_s": 300.0, "max_duration_s": 300}, "incomplete", "1 of 2 signals passed"),
        ({"duration_s": 9e9, "max_duration_s": 0}, "incomplete", "1 of 2 signals passed"),
        ({"out_of_scope": ["a", "b"]}, "scope_creep", "changed outside its files: a, b"),
        (
            {"out_of_scope": list("abcdefg")},
            "scope_creep",
            "changed outside its files: a, b, c, d, e and 2 more",
        ),
        ({"conflict": True}, "conflict", "the change does not apply"),
        ({"compile_error": True}, "hallucination", "does not compile"),
        ({"invented_names": ["totals.sum"]}, "hallucination", "refers to what does not exist: totals.sum"),
        ({"files_read": 3, "files_modified": 2}, "orientation_miss", "read 3 files and changed 2"),
        ({"files_read": 2, "files_modified": 2}, "incomplete", "1 of 2 signals passed"),
        ({"files_read": 0, "files_modified": 0}, "incomplete", "1 of 2 signals passed"),
        ({"files_read": 1, "files_modified": None}, "incomplete", "1 of 2 signals passed"),
        ({"signals_checked": 0, "signals_passed": 0}, "context_miss", "no signal was checked"),
        (
            {"signals_passed": 2, "tests_failed": 3},
            "context_miss",
            "3 tests failed, though every signal passed",
        ),
    ],
)
def test_conditions_and_words(facts: Row, category: str, details: str | None) -> None:
    found = classified(FAILED | facts)
    assert (found["failure_category"], found["failure_details"]) == (category, details)


def test_a_record_names_the_files_that_it_is_about() -> None:
    crept = classified(FAILED | {"out_of_scope": ["setup.py"], "modified_files": ["a.py", "setup.py"]})
    assert crept["failure_files"] == ["setup.py"]
    assert classified(FAILED | {"modified_files": ["a.py"]})["failure_files"] == ["a.py"]


def test_a_task_that_passed_keeps_its_pass_and_is_warned_about() -> None:
    facts = {
        "out_of_scope": ["setup.py"],
        "duration_s": 400.0,
        "max_duration_s": 300,
        "cost_usd": 2.5,
        "max_cost_usd": 1.0,
    }
    found = classified(PASSED | facts)
    assert found["passed"] is True
    assert found["failure_category"] is None
    assert found["warnings"] == [
        "changed outside its files: setup.py",
        "took 400 s, 300 s are allowed",
        "cost 2.5 USD, 1 USD are allowed",
    ]
    assert classified(PASSED)["warnings"] is None
    assert classified(FAILED | facts)["warnings"] is None


def test_a_task_without_telemetry_is_incomplete_and_says_what_is_wrong() -> None:
    (found,) = table([missing("t")]).to_pylist()
    assert found["passed"] is None
    assert (found["failure_category"], found["failure_details"]) == ("incomplete", "is no record")


def test_what_is_read_of_an_invalid_record_makes_its_category() -> None:
    (found,) = table([missing("t", tests_regressed=1)]).to_pylist()
    assert found["failure_category"] == "test_regression"
    assert "is no record" in found["failure_details"]


def test_failures_keep_the_order_of_rows() -> None:
    rows = [row("a", FAILED), row("b"), row("c", FAILED | {"conflict": True}), row("d", FAILED)]
    assert table(rows)["failure_category"].to_pylist() == ["incomplete", None, "conflict", "incomplete"]
