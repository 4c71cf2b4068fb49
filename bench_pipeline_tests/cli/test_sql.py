"""``bench sql``: results, and what a query cannot do."""

import io
import json
from pathlib import Path

import pytest

from bench_pipeline_tests.cli.calling import call, project
from bench_pipeline_tests.outcomes import tasks

DATA = {"a": tasks(True, False), "b": tasks("timeout", None)}


def test_json_is_a_list_of_row_objects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "select setup, count(*) as cells from evaluation_cells group by setup order by setup"
    assert call("sql", query, "--json", "--project", project(tmp_path, DATA)) == 0
    assert json.loads(capsys.readouterr().out) == [{"setup": "a", "cells": 2}, {"setup": "b", "cells": 2}]


def test_tables_can_be_joined_and_what_is_not_finite_is_null(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = "select count(*) as n, 'nan'::double as x from evaluation_cells join verdicts using (evaluation, identity)"
    assert call("sql", query, "--json", "--project", project(tmp_path, DATA)) == 0
    assert json.loads(capsys.readouterr().out) == [{"n": 4, "x": None}]


def test_a_query_may_come_from_standard_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"select 1 as one")))
    assert call("sql", "-", "--project", project(tmp_path, DATA)) == 0
    assert capsys.readouterr().out == "one=1\n"


def test_a_query_that_would_read_or_write_a_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path, DATA)
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    for query in (
        f"select * from read_text('{folder}/config.yaml')",
        f"copy verdicts to '{folder}/out.csv'",
        "drop view verdicts",
    ):
        assert call("sql", query, "--json", "--project", folder) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "apiVersion" not in captured.err
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before


@pytest.mark.usefixtures("terminal")
def test_a_terminal_gets_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("sql", "select 'x' as a, null as b", "--project", project(tmp_path, DATA)) == 0
    text = capsys.readouterr().out
    assert "1 row\n" in text
    assert "unknown in every row: b" in text


def test_column_names_that_a_query_makes_up_do_no_harm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("sql", 'select 1 as "\x1b[31m"', "--project", project(tmp_path, DATA)) == 0
    assert capsys.readouterr().out == "\\u001b[31m=1\n"
