"""``bench table``: rows as JSON, lines and a table."""

import hashlib
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
