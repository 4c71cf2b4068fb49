"""``bench ledger summarize`` and its aliases."""

import json
from pathlib import Path

import pytest

from bench_pipeline_tests.cli.calling import call
from bench_pipeline_tests.ledgers.writing import line, write_ledger

Output = pytest.CaptureFixture[str]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return write_ledger(
        tmp_path / "ledger.jsonl",
        line(partial=0.5127, output_tokens=7, steps=3, peak_context=11),
        line(valid=False),
        line(route="baseline x", valid=None, partial=None, f2p=None, input_tokens=None),
    )


@pytest.mark.parametrize(
    "words",
    [
        ("ledger", "summarize"),
        ("deepswe-ledger", "summarize"),
        ("deepswe-ledger",),
        ("deep-swe-ledger",),
    ],
)
def test_the_plain_form_has_the_counts_and_a_line_for_each_route(
    words: tuple[str, ...], ledger: Path, capsys: Output
) -> None:
    assert call(*words, str(ledger)) == 0
    assert capsys.readouterr().out.splitlines() == [
        "rows=3",
        "valid_rows=2",
        "invalid_rows=1",
        "fair_agent_rows=2",
        "valid_fair_agent_rows=1",
        "router_only_rows=0",
        "unparsable_lines=0",
        (
            "route=npc-agent-local kind=FairLocalNpcAgent rows=2 valid=1 passes=1 avg_partial=0.5127 avg_f2p=1.0000 "
            "input_tokens=100 output_tokens=7 steps=3 peak_context=11"
        ),
        (
            'route="baseline x" kind=Baseline rows=1 valid=1 passes=1 avg_partial=- avg_f2p=- '
            "input_tokens=- output_tokens=- steps=- peak_context=-"
        ),
    ]


def test_json_has_the_same_names_and_null_for_what_is_unknown(ledger: Path, capsys: Output) -> None:
    assert call("deepswe-ledger", "--json", str(ledger)) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["total_rows"], document["valid_rows"], document["incomplete_tail"]) == (3, 2, False)
    assert [row["route"] for row in document["routes"]] == ["npc-agent-local", "baseline x"]
    assert document["routes"][1]["avg_partial"] is None


def test_an_unparsable_line_is_exit_status_1_with_its_number_unless_it_is_allowed(
    tmp_path: Path, capsys: Output
) -> None:
    path = str(write_ledger(tmp_path / "ledger.jsonl", line(), "?", line()))
    assert call("ledger", "summarize", path) == 1
    captured = capsys.readouterr()
    assert "unparsable_lines=1" in captured.out
    assert "1 line that is no JSON object: 2" in captured.err
    assert call("ledger", "summarize", path, "--allow-unparsable") == 0


def test_a_cut_off_last_line_is_said_and_is_no_error(tmp_path: Path, capsys: Output) -> None:
    path = str(write_ledger(tmp_path / "ledger.jsonl", line(), '{"rou', end=""))
    assert call("ledger", "summarize", path) == 0
    captured = capsys.readouterr()
    assert "incomplete_tail=yes" in captured.out
    assert "still being written" in captured.err


def test_a_route_cannot_forge_a_line_or_a_field(tmp_path: Path, capsys: Output) -> None:
    path = str(write_ledger(tmp_path / "ledger.jsonl", line(route='a\nrows=9 kind="x"\u202e\x1b[2J')))
    assert call("ledger", "summarize", path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8
    assert lines[-1].startswith(r'route="a\\nrows=9 kind=\"x\"')
    assert not any(mark in lines[-1] for mark in "\u202e\x1b")


def test_a_named_project_says_what_kind_its_routes_are(ledger: Path, tmp_path: Path, capsys: Output) -> None:
    config = "apiVersion: bench.ber.run/v1alpha1\nkind: Project\nledgers: {routes: {baseline x: %s}}\n"
    (tmp_path / "config.yaml").write_text(config % "RouterOnly")
    assert call("ledger", "summarize", str(ledger), "--project", str(tmp_path)) == 0
    assert "router_only_rows=1" in capsys.readouterr().out
    (tmp_path / "config.yaml").write_text(config % "Fair")
    assert call("ledger", "summarize", str(ledger), "--project", str(tmp_path)) == 1
    assert "known: FairLocalNpcAgent, RouterOnly, Baseline, Other" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_one_clear_error(tmp_path: Path, capsys: Output) -> None:
    assert call("ledger", "summarize", str(tmp_path / "none.jsonl")) == 1
    assert "none.jsonl: cannot be read" in capsys.readouterr().err
