"""``bench sql``: results, and what a query cannot do."""

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bench_pipeline.cli.main import main
from bench_pipeline.project import find_project
from bench_pipeline.store import Store
from bench_pipeline.tables import table_schema

HEAD = "apiVersion: bench.ber.run/v1alpha1\n"

# What came of a cell: True or False is a verdict, a text is an execution failure, None was not attempted.
Result = bool | str | None


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def tables(
    results: Mapping[str, Mapping[str, Sequence[Result]]], *, evaluation: str = "nightly", **facts: object
) -> tuple[pa.Table, pa.Table]:
    """Cells and verdicts of setup -> task -> one result per attempt; ``facts`` are in every verdict."""
    cells, verdicts = [], []
    for setup, by_task in results.items():
        for task, attempts in by_task.items():
            for attempt, result in enumerate(attempts, 1):
                key = {
                    "identity": sha(f"{setup} {task} {attempt}"),
                    "run_key": "r",
                    "verify_key": "v",
                    "evaluation": evaluation,
                    "tier": "standard",
                    "attempt": attempt,
                    "task_id": task,
                    "setup": setup,
                    "setup_digest": sha(setup),
                }
                cells.append({**key, "tool": "shell", "reusable": True, "task_digest": sha(task)})
                verdicts.append({**key, **outcome(result), **facts})
    return table_schema("evaluation_cells").from_rows(cells), table_schema("verdicts").from_rows(verdicts)


def outcome(result: Result) -> dict[str, object]:
    if result is None:
        return {"outcome": "not_attempted", "outcome_class": "not_attempted", "tries": 0}
    if isinstance(result, str):
        return {"outcome": result, "outcome_class": "execution_failure", "tries": 3}
    word = "passed" if result else "failed"
    return {"outcome": word, "outcome_class": "verdict", "passed": result, "tries": 1}


def tasks(*results: Result, start: int = 0) -> dict[str, list[Result]]:
    return {f"t{place:03}": [result] for place, result in enumerate(results, start)}


def project(folder: Path, results: Mapping[str, Mapping[str, Sequence[Result]]], **facts: object) -> str:
    """A project with an evaluation ``nightly`` whose cells and verdicts are in its store."""
    (folder / "evaluations").mkdir()
    (folder / "evaluations" / "nightly.yaml").write_text(
        f"{HEAD}kind: Evaluation\ntools: [{{tool: shell}}]\n"
    )
    (folder / "config.yaml").write_text(f"{HEAD}kind: Project\n")
    store = Store.open(find_project(folder).store_url)
    for name, table in zip(("evaluation_cells", "verdicts"), tables(results, **facts), strict=True):
        for attempt in table["attempt"].unique().to_pylist():
            rows = table.filter(pc.equal(table["attempt"], attempt))
            store.tables.write(name, rows, tier="standard", attempt=attempt)
    return str(folder)


def call(*arguments: str) -> int:
    """The exit status of ``bench`` with these arguments."""
    with pytest.raises(SystemExit) as done:
        main(arguments)
    return int(done.value.code or 0)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard output as a wide terminal without colours."""
    monkeypatch.setattr("bench_pipeline.cli.output.wants_plain", lambda plain: plain)
    monkeypatch.setattr("bench_pipeline.cli.rows.wants_plain", lambda plain: plain)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")


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
    monkeypatch.setattr("sys.stdin", io.StringIO("select 1 as one"))
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
