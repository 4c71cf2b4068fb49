"""``bench cell show``: the tries of a cell, and each piece of what they left behind."""

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bench_pipeline.project import find_project
from bench_pipeline.store import Store
from bench_pipeline.store.schemas import VERDICT_PARTS
from bench_pipeline_tests.cli.calling import call, project
from bench_pipeline_tests.outcomes import sha, tasks

IDENTITY = sha("a t000 1")
BYTES = bytes(range(256))
START = datetime(2025, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A cell with an execution failure and, after it, a verdict."""
    folder = project(tmp_path, {"a": tasks(True), "b": tasks(None)})
    store = Store.open(find_project(tmp_path).store_url)
    hostile = b"caf\xc3\xa9\t\x1b]0;title\x07 \xff\n"
    for number, (outcome, pieces) in enumerate(
        (
            ("adapter_error", {"tool.stdout": b"first\n", "tool.stderr": b"quota"}),
            ("passed", {"tool.stdout": hostile, "patch": b"--- a\n", "overlay": BYTES}),
        )
    ):
        row = {
            "identity": bytes.fromhex(IDENTITY),
            "run_key": bytes(32),
            "verify_key": bytes(32),
            "outcome": outcome,
            "outcome_class": "verdict" if outcome == "passed" else "execution_failure",
            "passed": outcome == "passed" or None,
            "tool_ran": True,
            "measured_at": START + timedelta(hours=number),
            "artifacts": {name: store.artifacts.put(data) for name, data in pieces.items()},
        }
        store.verdicts.append(VERDICT_PARTS.from_rows([row]))
    return folder


def show(root: str, *words: str) -> int:
    return call("cell", "show", IDENTITY[:8], "--project", root, *words)


def test_json_lists_each_try_with_its_own_evidence(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(root, "--json") == 0
    tries = json.loads(capsys.readouterr().out)["tries"]
    assert [(row["try"], row["outcome"]) for row in tries] == [(1, "adapter_error"), (2, "passed")]
    listed = [[(piece["name"], piece["bytes"]) for piece in row["evidence"]] for row in tries]
    assert listed == [
        [("tool.stderr", 5), ("tool.stdout", 6)],
        [("overlay", 256), ("patch", 6), ("tool.stdout", 19)],
    ]
    assert all(len(piece["digest"]) == 64 for row in tries for piece in row["evidence"])


def test_plain_lines_say_which_try_a_piece_is_from(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(root) == 0
    lines = capsys.readouterr().out.splitlines()
    pieces = [dict(word.split("=", 1) for word in line.split()) for line in lines if " evidence=" in line]
    assert [(piece["try"], piece["evidence"]) for piece in pieces] == [
        ("1", "tool.stderr"),
        ("1", "tool.stdout"),
        ("2", "overlay"),
        ("2", "patch"),
        ("2", "tool.stdout"),
    ]


@pytest.mark.usefixtures("terminal")
def test_a_terminal_shows_pieces_below_their_try_and_how_to_print_one(
    root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert show(root) == 0
    text = capsys.readouterr().out
    first, second = text.index("try 1"), text.index("try 2")
    assert first < text.index("tool.stderr  5 bytes") < second < text.index("overlay")
    assert f"bench cell show {IDENTITY[:12]} --evidence NAME [--try N]" in text


def test_one_try_is_shown_when_it_is_asked_for(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(root, "--try", "1", "--json") == 0
    assert [row["try"] for row in json.loads(capsys.readouterr().out)["tries"]] == [1]
    assert show(root, "--try", "3") == 1
    assert "it has the tries 1 to 2" in capsys.readouterr().err


def test_a_piped_piece_is_byte_for_byte_as_it_was_kept(
    root: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert show(root, "--evidence", "overlay") == 0
    assert capfdbinary.readouterr().out == BYTES


@pytest.mark.usefixtures("terminal")
def test_a_piece_on_a_terminal_does_not_act_on_it(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(root, "--evidence", "tool.stdout") == 0
    assert capsys.readouterr().out == "café    \\u001b]0;title\\u0007 \\xff\n"


def test_without_a_try_a_piece_is_of_the_newest_that_has_it(
    root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert show(root, "--evidence", "tool.stderr", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["try"], found["name"], found["text"], found["base64"], found["bytes"]) == (
        1,
        "tool.stderr",
        "quota",
        None,
        5,
    )
    assert show(root, "--evidence", "tool.stdout", "--try", "1") == 0
    assert capsys.readouterr().out == "first\n"


def test_a_piece_that_is_no_text_is_base64_in_json(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(root, "--evidence", "overlay", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["text"], base64.b64decode(found["base64"])) == (None, BYTES)


def test_an_unknown_piece_or_try_names_what_there_is(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert show(root, "--evidence", "tool.stdou") == 1
    words = capsys.readouterr().err
    assert "did you mean tool.stdout?" in words
    assert "known: overlay, patch, tool.stderr, tool.stdout" in words
    assert show(root, "--evidence", "patch", "--try", "1") == 1
    assert "try 1 does not have it: known: tool.stderr, tool.stdout" in capsys.readouterr().err
    assert show(root, "--evidence", "patch", "--try", "7") == 1
    assert "it has the tries 1 to 2" in capsys.readouterr().err
    untried = sha("b t000 1")
    assert call("cell", "show", untried, "--evidence", "patch", "--project", root) == 1
    assert "known: none" in capsys.readouterr().err
