"""``bench table``: rows as JSON, lines and a table."""

import json
from pathlib import Path

import pytest

from bench_pipeline.tables import table_schema
from bench_pipeline_tests.cli.calling import call, project
from bench_pipeline_tests.outcomes import sha, tasks

DATA = {"a": tasks(True, False), "b": tasks("timeout", None)}


def test_json_is_a_list_of_row_objects_with_the_columns_of_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("table", "verdicts", "--json", "--project", project(tmp_path, DATA)) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 4
    assert list(rows[0]) == table_schema("verdicts").schema.names
    assert rows[0]["cost_usd"] is None


def test_rows_and_columns_can_be_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = project(tmp_path, DATA)
    chosen = ("--where", "outcome = 'timeout'", "--columns", "setup, outcome", "--limit", "5")
    assert call("table", "verdicts", *chosen, "--json", "--project", folder) == 0
    assert json.loads(capsys.readouterr().out) == [{"setup": "b", "outcome": "timeout"}]
    assert call("table", "verdicts", *chosen, "--project", folder) == 0
    assert capsys.readouterr().out == "setup=b outcome=timeout\n"


def test_a_table_that_was_never_written_is_an_empty_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("table", "run_cells", "--json", "--project", project(tmp_path, DATA)) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_an_unknown_table_is_1_and_a_bad_condition_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path, DATA)
    assert call("table", "verdict", "--project", folder) == 1
    assert "known: evaluation_cells, verdicts" in capsys.readouterr().err
    assert call("table", "verdicts", "--where", "nonsense", "--project", folder) == 2


@pytest.mark.usefixtures("terminal")
def test_a_terminal_gets_short_digests_and_no_empty_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path, DATA)
    assert call("table", "verdicts", "--columns", "setup_digest,outcome,cost_usd", "--project", folder) == 0
    text = capsys.readouterr().out
    assert sha("a")[:12] in text
    assert sha("a")[:13] not in text
    assert "4 rows" in text
    assert "unknown in every row: cost_usd" in text


@pytest.mark.usefixtures("terminal")
def test_a_row_with_more_columns_than_fit_is_shown_as_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert call("table", "verdicts", "--where", "task_id = 't000'", "--project", project(tmp_path, DATA)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines.count("  task_id: t000") == 2
    assert "row 2" in lines


def test_hostile_text_is_escaped_on_the_way_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = project(tmp_path, DATA, reason="\x1b[31mred\u202e\nnext")
    assert call("table", "verdicts", "--columns", "reason", "--limit", "1", "--project", folder) == 0
    assert capsys.readouterr().out == "reason=\\u001b[31mred\\u202e\\nnext\n"
