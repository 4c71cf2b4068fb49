"""``bench gate``: the document and the exit status."""

import json
from pathlib import Path

import pytest

from bench_pipeline_tests.cli.calling import call, project
from bench_pipeline_tests.outcomes import Result, tasks

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
