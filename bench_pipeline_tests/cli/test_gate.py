"""``bench gate``: the document and the exit status."""

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
    monkeypatch.setattr("bench_pipeline.cli.gate.wants_plain", lambda plain: plain)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")


SAME = {"old": tasks(*[True, False] * 100), "new": tasks(*[True, False] * 100)}
ASKED = ("--baseline", "old", "--candidate", "new")


def test_a_passed_gate_exits_0_and_its_document_has_every_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path, SAME, cost_usd=0.01)
    assert (
        call("gate", "nightly", *ASKED, "--max-cost", "2", "--min-rate", "0.5", "--json", "--project", folder)
        == 0
    )
    document = json.loads(capsys.readouterr().out)
    assert (document["passed"], document["reason"], document["shared_tasks"], document["difference"]) == (
        True,
        "passed",
        200,
        0,
    )
    assert [check["name"] for check in document["checks"]] == [
        "min_tasks",
        "non_inferiority",
        "min_rate",
        "max_cost",
    ]
    assert all(check["passed"] for check in document["checks"])


@pytest.mark.parametrize(
    ("old", "new", "status", "reason"),
    [
        ([True] * 20, [False] * 20, 4, "failed"),
        ([True] * 5, [True] * 5, 3, "insufficient"),
        ([True] * 20, [*[True] * 19, "timeout"], 3, "incomplete"),
        ([None] * 20, [None] * 20, 5, "nothing evaluated"),
    ],
)
def test_the_exit_status_tells_failure_from_missing_evidence(
    old: list[Result],
    new: list[Result],
    status: int,
    reason: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = project(tmp_path, {"old": tasks(*old), "new": tasks(*new)})
    assert call("gate", "nightly", *ASKED, "--json", "--project", folder) == status
    document = json.loads(capsys.readouterr().out)
    assert (document["passed"], document["reason"]) == (False, reason)


def test_plain_lines_are_the_decision_and_the_checks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("gate", "nightly", *ASKED, "--project", project(tmp_path, SAME)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("gate=non-inferiority passed=yes reason=passed")
    assert lines[1] == "name=min_tasks value=200 limit=10 passed=yes"


@pytest.mark.usefixtures("terminal")
def test_a_terminal_reads_as_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("gate", "nightly", *ASKED, "--margin", "0.01", "--project", project(tmp_path, SAME)) == 4
    text = capsys.readouterr().out
    assert "gate non-inferiority: failed: a loss of 0.01 or more cannot be excluded" in text
    assert "check non_inferiority: -0.01885, limit -0.01: not met" in text


def test_wrong_words_are_usage_errors_and_an_unplanned_evaluation_is_5(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path, {"old": {}, "new": {}})
    assert call("gate", "nightly", *ASKED, "--margin", "7", "--project", folder) == 2
    assert call("gate", "nightly", "--baseline", "old", "--project", folder) == 2
    assert call("gate", "weekly", *ASKED, "--project", folder) == 1
    capsys.readouterr()
    assert call("gate", "nightly", *ASKED, "--json", "--project", folder) == 5
    assert json.loads(capsys.readouterr().out)["reason"] == "nothing evaluated"
