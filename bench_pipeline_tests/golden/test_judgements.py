"""Judgements: three states that are never confused."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench_pipeline.golden.judgements import Judgements, read_judgements

VERDICT: dict[str, Any] = {
    "task_id": "t",
    "correctness": 5,
    "style": 4,
    "test_coverage": 3,
    "safety": 4,
    "verdict": "does what was asked",
    "issues": ["no test for an empty list"],
}

TASKS = ("t", "other")


def read(folder: Path, *records: Any) -> Judgements:
    path = folder / "1.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return read_judgements(path, TASKS)


def test_a_judged_task_has_the_mean_of_its_marks(tmp_path: Path) -> None:
    found = read(tmp_path, VERDICT)
    assert not found.problems
    assert found.columns("t", None) == {"judged": "judged", "judge_score": 0.8, "judge_problem": None}


def test_a_task_that_nobody_judged_is_no_failure_of_a_judge(tmp_path: Path) -> None:
    assert read(tmp_path, VERDICT).columns("other", None)["judged"] == "not_judged"


def test_a_judge_that_failed_gave_no_marks_and_no_zeros(tmp_path: Path) -> None:
    found = read(tmp_path, {"task_id": "t", "failed": "the answer was cut off", "judge": "m"})
    assert not found.problems
    columns = found.columns("t", None)
    assert (columns["judged"], columns["judge_score"]) == ("judge_failed", None)
    assert columns["judge_problem"] == "the answer was cut off"


def test_a_judgement_of_no_known_task_is_named_with_its_line(tmp_path: Path) -> None:
    found = read(tmp_path, VERDICT, VERDICT | {"task_id": "othr"})
    (problem,) = found.problems
    assert (problem.line, problem.field) == (2, "task_id")
    assert problem.message == 'there is no golden task "othr"; did you mean other?'
    assert list(found.by_task) == ["t"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"style": 6}, "style: expected a number of at most 5"),
        ({"style": -1}, "style: expected a number of at least 0"),
        ({"style": 4.0}, "style: expected a whole number"),
        ({"style": "4"}, "style: expected a whole number"),
        ({"style": True}, "style: expected a whole number"),
        ({"style": None}, "style: expected a whole number"),
        ({"marks": 5}, "marks: is not a known field"),
    ],
)
def test_an_invalid_verdict_is_named_and_is_a_judge_that_failed(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    found = read(tmp_path, VERDICT | change)
    assert said in found.problems[0].message
    assert found.problems[0].line == 1
    assert found.columns("t", None)["judged"] == "judge_failed"


def test_a_task_that_is_judged_twice_is_not_judged_by_the_last(tmp_path: Path) -> None:
    found = read(tmp_path, VERDICT, VERDICT | {"correctness": 0})
    assert "lines 1, 2" in found.problems[0].message
    assert found.columns("t", None)["judged"] == "judge_failed"


def test_a_verdict_on_another_change_does_not_count(tmp_path: Path) -> None:
    found = read(tmp_path, VERDICT | {"candidate": "a" * 64, "signals_passed": ["it reads well"]})
    assert found.columns("t", "a" * 64)["judged"] == "judged"
    assert found.columns("t", "b" * 64)["judged"] == "not_judged"
    assert found.holds("t", "it reads well", "a" * 64)
    assert not found.holds("t", "it reads well", "b" * 64)
    assert not found.holds("t", "it is fast", "a" * 64)


def test_a_line_without_a_task_is_named(tmp_path: Path) -> None:
    assert [problem.line for problem in read(tmp_path, VERDICT, [1]).problems] == [2]


def test_a_file_that_is_gone_is_a_problem(tmp_path: Path) -> None:
    assert "cannot be read" in read_judgements(tmp_path / "gone.jsonl", TASKS).problems[0].message
