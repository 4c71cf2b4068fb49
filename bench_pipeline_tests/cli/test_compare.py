"""``bench compare``: rows, sentences and exit status."""

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
    monkeypatch.setattr("bench_pipeline.cli.compare.wants_plain", lambda plain: plain)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")


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
