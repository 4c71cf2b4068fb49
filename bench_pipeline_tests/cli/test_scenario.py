"""``bench scenario``: the plain lines, JSON, tables and exit statuses."""

import json
from pathlib import Path

import pytest

from bench_pipeline_tests.cli.calling import call
from bench_pipeline_tests.scenarios.making import RUN_ID, scenario_file, trace_file

END = {"type": "end", "time": "2026-01-31T12:00:07Z"}
USAGE = {"type": "usage", "prompt_tokens": 10, "completion_tokens": 2}
AGENTS = Path(__file__).parents[1] / "fixtures" / "agents"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_plain_lines_stand_in_the_order_of_the_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario_file(tmp_path, required=("a", "b", "c"))
    trace_file(tmp_path / "traces", {"type": "step"}, {"type": "artifact", "text": "b"}, USAGE, END)
    command = ("scenario", "run", "scenario.toml", "--replay", RUN_ID, "--cell", "A 1", "--out", "out")
    assert call(*command) == 0
    assert capsys.readouterr().out.splitlines() == [
        "scenario=fix the sum",
        "cell=A 1",
        "passed=false",
        "steps=1",
        "seconds=7",
        "missing_evidence=a,c",
        "prompt_tokens=10 completion_tokens=2 total_tokens=12",
        "out=out/fix-the-sum.a-1.json",
    ]
    written = json.loads((tmp_path / "out" / "fix-the-sum.a-1.json").read_text())
    assert (written["replay"], written["winning_artifact"], written["total_tokens"]) == (RUN_ID, "b", 12)


def test_without_a_label_usage_and_a_folder_their_lines_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario_file(tmp_path)
    trace_file(tmp_path / "traces", {"type": "step"}, END)
    assert call("scenario", "run", "scenario.toml", "--replay", RUN_ID) == 0
    assert capsys.readouterr().out.splitlines() == [
        "scenario=fix the sum",
        "passed=true",
        "steps=1",
        "seconds=7",
        "missing_evidence=",
    ]


def test_what_is_exceeded_is_named_and_fail_exits_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario_file(tmp_path, max_steps=0, max_seconds=6)
    trace_file(tmp_path / "traces", {"type": "step"}, END)
    assert call("scenario", "run", "scenario.toml", "--replay", RUN_ID, "--fail") == 4
    assert {"over_steps=true", "over_seconds=true"} <= set(capsys.readouterr().out.splitlines())
    scenario_file(tmp_path)
    assert call("scenario", "run", "scenario.toml", "--replay", RUN_ID, "--fail") == 0


def test_json_is_the_cell_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario_file(tmp_path)
    trace_file(tmp_path / "traces", {"type": "step"}, END, cell="from the header", mode="single")
    assert (
        call("scenario", "run", "scenario.toml", "--replay", RUN_ID, "--json", "--out", "o", "--attempt", "2")
        == 0
    )
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads((tmp_path / "o" / "fix-the-sum.from-the-header.a2.json").read_text())
    assert (document["cell"], document["mode"], document["attempt"]) == ("from the header", "single", 2)


@pytest.mark.usefixtures("terminal")
def test_a_terminal_shows_what_was_measured_beside_what_is_allowed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario_file(tmp_path, name="evil \x1b[31m", required=("\u202egone",))
    trace_file(tmp_path / "traces", {"type": "step"}, USAGE, END, scenario="evil \x1b[31m")
    assert call("scenario", "run", "scenario.toml", "--replay", RUN_ID) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert "missing evidence: \\u202egone" in text
    assert "tokens: 10 prompt, 2 completion" in text


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--tool", "shell", "--replay", RUN_ID),
        ("--replay", RUN_ID, "--model", "m"),
        ("--tool", "shell", "--option", "x"),
    ],
)
def test_words_that_do_not_fit_together_are_2(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    scenario_file(tmp_path)
    assert call("scenario", "run", "scenario.toml", *arguments) == 2


def test_a_result_without_a_label_is_not_filed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario_file(tmp_path)
    trace_file(tmp_path / "traces", {"type": "step"}, END)
    assert call("scenario", "run", "scenario.toml", "--replay", RUN_ID, "--out", "o") == 2
    assert "--cell" in capsys.readouterr().err


def test_a_transcript_becomes_a_trace_that_replays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario_file(tmp_path, required=("unittest passes",))
    transcript = str(AGENTS / "claude" / "success.jsonl")
    command = ("scenario", "import", "claude-stream-json", transcript, "--scenario", "scenario.toml")
    assert call(*command, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["steps"] == 4
    assert "blocks of type thinking: 1" in document["unmapped"]
    assert call("scenario", "run", "scenario.toml", "--replay", document["run_id"], "--fail") == 0
    assert call(*command, "--traces", "elsewhere") == 0
    assert (tmp_path / "elsewhere").is_dir()
