"""``bench compare``: rows, sentences and exit status."""

import json
from pathlib import Path

import pytest

from bench_pipeline.tables import table_schema
from bench_pipeline_tests.cli.calling import call, project
from bench_pipeline_tests.outcomes import sha, tasks

PAIR = {"x/high": tasks(*[True] * 8, *[False] * 4), "x/low": tasks(*[True] * 5, *[False] * 6, None)}


def test_json_is_rows_of_the_table_with_flips_and_sums(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path, PAIR, cost_usd=0.25)
    assert call("compare", "x/high", "x/low", "--json", "--project", folder) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert set(table_schema("paired_comparisons").schema.names) <= set(row)
    assert (row["shared_tasks"], row["only_a"], row["tasks_only_a"], row["p_value"]) == (
        11,
        1,
        ["t011"],
        0.25,
    )
    assert row["flips"] == [{"task_id": f"t{n:03}", "a": 1.0, "b": 0.0} for n in (5, 6, 7)]
    assert row["sums"][0] == {"quantity": "cost_usd", "a": 2.75, "b": 2.75, "cells": 11, "of": 11}


def test_a_digest_prefix_names_a_setup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = project(tmp_path, PAIR)
    assert call("compare", sha("x/low")[:10], "x/high", "--json", "--project", folder) == 0
    assert json.loads(capsys.readouterr().out)[0]["setup_a"] == "x/low"


def test_an_unknown_setup_names_the_nearest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("compare", "x/hihg", "x/low", "--project", project(tmp_path, PAIR)) == 1
    assert "nearest: x/high" in capsys.readouterr().err


def test_plain_lines_are_the_row_the_sums_and_the_flips(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("compare", "x/high", "x/low", "--project", project(tmp_path, PAIR)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(
        "evaluation=nightly setup_a=x/high setup_b=x/low shared_tasks=11 only_a=1 only_b=0"
    )
    assert "quantity=cost_usd a=- b=- cells=0 of=11" in lines
    assert "task_id=t005 a=1 b=0" in lines


@pytest.mark.usefixtures("terminal")
def test_a_terminal_reads_as_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("compare", "x/high", "x/low", "--project", project(tmp_path, PAIR, cost_usd=1.0)) == 0
    text = capsys.readouterr().out
    assert "difference a - b: +27.3 points (-4.1 to +58.7) over 11 shared tasks" in text
    assert "p: 0.25, after Holm over all pairs 0.25" in text
    assert "only a measured 1 task: t011" in text
    assert "warning: the difference is not distinguishable from none" in text
    assert "8/11 measured" in text
    assert "cost over 11 of 11 cells" in text
    assert "tasks that differ" in text


def test_no_shared_task_is_incomplete(tmp_path: Path) -> None:
    folder = project(tmp_path, {"a": tasks(True, None), "b": tasks(None, True)})
    assert call("compare", "a", "b", "--project", folder) == 3
    assert call("compare", "a", "b", "--evaluation", "nihgtly", "--project", folder) == 1
