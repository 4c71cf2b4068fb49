"""``bench rank``: rows, notes and exit status."""

import json
from pathlib import Path

import pytest

from bench_pipeline.tables import table_schema
from bench_pipeline_tests.cli.calling import call, project
from bench_pipeline_tests.outcomes import tasks

CLOSE = {
    "a": tasks(*[True] * 7, *[False] * 3),
    "b": tasks(*[True] * 6, *[False] * 4),
    "c": tasks("timeout", *[True] * 5),
}


def test_json_is_the_rows_of_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--project", project(tmp_path, CLOSE, cost_usd=0.5), "rank", "nightly", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["setup"], row["ranked"], row["rank"]) for row in rows] == [
        ("a", True, 1),
        ("b", True, 2),
        ("c", False, None),
    ]
    assert set(rows[0]) == set(table_schema("evaluation_rankings").schema.names)
    assert (rows[0]["pass_rate"], rows[0]["pass_at_k"], rows[0]["cost_usd"]) == (0.7, {"1": 0.7}, 5.0)
    assert rows[2]["missing"][0] == "t000 attempt 1: timeout"


def test_plain_lines_carry_the_rows_and_every_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("rank", "nightly", "--project", project(tmp_path, CLOSE)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("evaluation=nightly ranked=yes rank=1")
    assert any(
        "note=warning" in line and "the lead of a is not distinguishable from b" in line for line in lines
    )
    assert any("bench run nightly --task t000" in line and "--retry 1" in line for line in lines)


@pytest.mark.usefixtures("terminal")
def test_a_terminal_shows_denominators_and_what_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = {"cost_usd": 0.5, "duration_s": 65.0}
    assert call("rank", "nightly", "--project", project(tmp_path, CLOSE, **facts)) == 0
    text = capsys.readouterr().out
    assert "7/10 measured, 10 attempted" in text
    assert "5.00 USD over 10 of 10 cells" in text
    assert "70.0% (39.7 to 89.2)" in text
    assert "10m50s" in text
    assert "warning: the lead of a is not distinguishable from b" in text
    assert "missing: c: not ranked, 5 cells missing" in text


@pytest.mark.usefixtures("terminal")
def test_a_clear_lead_is_said_with_its_p_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = {"good": tasks(*[True] * 20), "poor": tasks(*[False] * 20)}
    assert call("rank", "nightly", "--project", project(tmp_path, results)) == 0
    text = capsys.readouterr().out
    assert "told apart: good above poor, difference +100.0 points, p 1.91e-06 after Holm" in text
    assert "warning" not in text


def test_all_ranks_every_evaluation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("rank", "--all", "--json", "--project", project(tmp_path, CLOSE)) == 0
    assert {row["evaluation"] for row in json.loads(capsys.readouterr().out)} == {"nightly"}


def test_nothing_planned_is_5_nothing_ranked_3_and_an_unknown_name_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "untried").mkdir()
    empty = project(tmp_path / "empty", {"a": {}})
    assert call("rank", "nightly", "--project", empty) == 5
    assert "bench run nightly" in capsys.readouterr().err
    assert call("rank", "nightyl", "--project", empty) == 1
    assert "nearest: nightly" in capsys.readouterr().err
    assert call("rank", "nightly", "--project", project(tmp_path / "untried", {"a": tasks(None, None)})) == 3
    assert "no setup can be ranked" in capsys.readouterr().out


def test_an_evaluation_or_all_is_asked_for(tmp_path: Path) -> None:
    assert call("rank", "--project", str(tmp_path)) == 2
    assert call("rank", "nightly", "--all", "--project", str(tmp_path)) == 2


def test_the_seed_is_in_the_method(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("rank", "nightly", "--seed", "5", "--json", "--project", project(tmp_path, CLOSE)) == 0
    assert "10000 resamples, seed 5" in json.loads(capsys.readouterr().out)[0]["method"]
