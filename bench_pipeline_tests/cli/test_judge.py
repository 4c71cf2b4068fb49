"""``bench judge``: the plain lines, JSON, tables and exit statuses."""

import json
from pathlib import Path

import pytest

from bench_pipeline.scenarios import write_cell
from bench_pipeline_tests.cli.calling import call
from bench_pipeline_tests.scenarios.making import cell


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One win, three losses and a tie for ``l``, and one more scenario on either side."""
    monkeypatch.chdir(tmp_path)
    for name, left, right in (
        ("a", True, False), ("b", False, True), ("c", False, True), ("d", False, True), ("e", True, True),
    ):  # fmt: skip
        write_cell(Path("l"), cell(name, left, cell="one"))
        write_cell(Path("r"), cell(name, right, cell="two"))
    write_cell(Path("l"), cell("only \x1b[1m left", True, cell="one"))
    write_cell(Path("r"), cell("only right", True, cell="two"))


def test_plain_lines_are_those_of_the_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("judge", "l", "r", "--out", "report.json") == 0
    assert capsys.readouterr().out.splitlines() == [
        "pairs=5",
        "left_wins=1",
        "right_wins=3",
        "ties=1",
        "left_winrate=0.3000",
        "left_only=only \\u001b[1m left",
        "right_only=only right",
        "out=report.json",
    ]
    assert json.loads(Path("report.json").read_text())["left_winrate"] == 0.3


def test_json_has_every_pair_in_scenario_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("judge", "l", "r", "--json", "--seed", "7") == 0
    document = json.loads(capsys.readouterr().out)
    assert [item["scenario"] for item in document["verdicts"]] == list("abcde")
    assert document["verdicts"][4] | {"swapped": None} == {
        "scenario": "e", "verdict": "tie", "swapped": None, "rule": "tie",
    }  # fmt: skip
    assert (document["left_only"], document["right_only"]) == (["only \x1b[1m left"], ["only right"])


@pytest.mark.usefixtures("terminal")
def test_a_terminal_shows_the_interval_and_warns_of_a_lead_by_chance(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call("judge", "l", "r") == 0
    text = capsys.readouterr().out
    assert "win rate of l: 30.0% (" in text
    assert "the lead of r is not distinguishable from chance" in text
    assert "not paired, only in r: only right" in text
    assert "\x1b" not in text


def test_nothing_to_compare_is_5_with_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "none").mkdir()
    assert call("judge", "l", "none") == 5
    assert "left_winrate=0.5000" in capsys.readouterr().out


def test_one_folder_is_2_and_one_that_is_not_there_1() -> None:
    assert call("judge", "l") == 2
    assert call("judge", "l", "absent") == 1


def test_a_tournament_lists_standings_and_writes_every_pair(capsys: pytest.CaptureFixture[str]) -> None:
    for name in "abcde":
        write_cell(Path("m"), cell(name, name in "abd", cell="three"))
    assert call("judge", "--tournament", "l", "m", "r", "--out", "t.json") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("rank=1 cell=")
    assert lines[-1] == "out=t.json"
    document = json.loads(Path("t.json").read_text())
    assert len(document["pairs"]) == 3
    assert {row["cell"] for row in document["cells"]} == {"l", "m", "r"}


@pytest.mark.usefixtures("terminal")
def test_a_tournament_on_a_terminal_says_how_sure_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    for name in "abcde":
        write_cell(Path("m"), cell(name, name in "abd", cell="three"))
    assert call("judge", "--tournament", "l", "m", "r") == 0
    text = capsys.readouterr().out
    assert "strengths: Bradley-Terry maximum likelihood, n=15 comparisons" in text
    assert "intervals: " in text


def test_a_tournament_that_identifies_nothing_is_3_and_two_folders_are_2() -> None:
    for folder, passed in (("x", True), ("y", False), ("z", False)):
        write_cell(Path(folder), cell("a", passed, cell=folder))
    assert call("judge", "--tournament", "x", "y", "z") == 3
    assert call("judge", "--tournament", "x", "y") == 2
    assert call("judge", "--tournament", "x", "y", "x") == 2
