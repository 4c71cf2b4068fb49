"""Live runs: the tool in a sandbox, checks of the harness, a trace that scores as it was scored."""

import os
from pathlib import Path

import pytest

from bench_pipeline.errors import BenchError, RefusedError, UsageError
from bench_pipeline.pipeline.scenario_runs import Choice, Ran, replay, run_tool
from bench_pipeline.scenarios import read_trace
from bench_pipeline_tests.scenarios.making import scenario_file

TEST = """import unittest
from calc import add
class Adding(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)
"""
TOOL = """apiVersion: bench.ber.run/v1alpha1
kind: Tool
tool: reporter
invoke: {command: [/bin/sh, -c, 'cat; echo; printf %s "$REPORT"'], stdin: prompt, env: {}}
usage: {format: bench-json}
options: {report: {free: true, env: {REPORT: "{value}"}}}
credentials: {env: [REPORTER_KEY]}
"""


@pytest.fixture(autouse=True)
def _away_from_projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No project, and the user's own tools in a folder of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    tools = tmp_path / "config" / "ber" / "bench" / "tools"
    tools.mkdir(parents=True)
    (tools / "reporter.yaml").write_text(TOOL)
    monkeypatch.setenv("REPORTER_KEY", "key-0123456789abcdef")


def _calc(folder: Path) -> None:
    start = folder / "scenario"
    start.mkdir()
    (start / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (start / "test_calc.py").write_text(TEST)


def _run(file: Path, command: str, **fields: object) -> Ran:
    return _with(file, Choice("shell", options={"command": command}), **fields)


def _with(file: Path, choice: Choice, **fields: object) -> Ran:
    arguments = {"traces": None, "cell": None, "mode": None, "attempt": 1} | fields
    return run_tool(None, file, choice, backend="process", **arguments)  # type: ignore[arg-type]


def test_a_fix_passes_and_the_replay_of_its_trace_scores_alike(tmp_path: Path) -> None:
    _calc(tmp_path)
    file = scenario_file(tmp_path, required=("python-tests",))
    live = _run(file, "sed -i s/-/+/ calc.py", cell="fixed", mode="single")
    assert live.result.passed
    assert (live.result.cell, live.result.mode, live.result.harness) == ("fixed", "single", "shell")
    run_id = live.trace.stem
    again = replay(file, run_id, traces=None, cell=None, mode=None, attempt=1).result
    assert again == live.result._replace(replay=run_id)
    (evidence,) = read_trace(live.trace).of_type("evidence")
    assert evidence.check is not None
    assert evidence.check.commands


@pytest.mark.parametrize(
    "command",
    [
        "true",
        "echo > test_calc.py",
        "rm test_calc.py",
        "echo python-tests passed",
        "printf 'def load_tests(*_):\\n    pass\\n' > test_calc.py",
        "mkdir unittest; echo 'import sys; sys.exit(0)' > unittest/__init__.py",
    ],
)
def test_no_agent_passes_by_its_words_or_by_touching_the_tests(tmp_path: Path, command: str) -> None:
    _calc(tmp_path)
    ran = _run(scenario_file(tmp_path, required=("python-tests",)), command)
    assert ran.result.missing_evidence == ("python-tests",)


def test_no_tests_are_no_success(tmp_path: Path) -> None:
    ran = _run(scenario_file(tmp_path, required=("python-tests",)), "echo x = 1 > test_nothing.py")
    assert not ran.result.passed


def test_an_empty_workspace_can_be_filled(tmp_path: Path) -> None:
    ran = _run(scenario_file(tmp_path, required=("shell-fixture-test",)), "echo 'exit 0' > test.sh")
    assert ran.result.passed


def test_a_run_that_takes_too_long_is_cut_off_and_over(tmp_path: Path) -> None:
    ran = _run(scenario_file(tmp_path, max_seconds=0), "sleep 60")
    assert (ran.result.passed, ran.result.over_seconds) == (False, True)
    assert ran.result.seconds < 30


def test_a_tools_own_report_gives_steps_tokens_and_the_artifact(tmp_path: Path) -> None:
    report = '{"state": "completed", "turns": 3, "tokens": {"input": 5, "cache_read": 2, "output": 4}, '
    report += '"final_text": "Done."}'
    file = scenario_file(tmp_path, required=("Done",))
    ran = _with(file, Choice("reporter", options={"report": report}))
    assert (ran.result.passed, ran.result.steps, ran.result.winning_artifact) == (True, 3, "Done.")
    assert (ran.result.prompt_tokens, ran.result.completion_tokens, ran.result.total_tokens) == (7, 4, 11)


@pytest.mark.parametrize(
    ("report", "said"),
    [
        ('{"state": "error", "error": "status 401"}', r"the model or its API failed \(auth\)"),
        ("nothing", "did not say how"),
        ('{"state": "completed"}', "its steps are unknown"),
    ],
)
def test_a_run_that_measured_nothing_is_an_error_and_leaves_no_trace(
    tmp_path: Path, report: str, said: str
) -> None:
    with pytest.raises(BenchError, match=said):
        _with(scenario_file(tmp_path), Choice("reporter", options={"report": report}))
    assert not (tmp_path / "traces").exists()


def test_a_key_that_a_tool_prints_reaches_no_trace(tmp_path: Path) -> None:
    key = os.environ["REPORTER_KEY"]
    report = f'{{"state": "completed", "turns": 1, "final_text": "it is {key}"}}'
    ran = _with(scenario_file(tmp_path, goal="Say it."), Choice("reporter", options={"report": report}))
    assert ran.result.winning_artifact == "it is [redacted:REPORTER_KEY]"
    for path in (tmp_path / "traces").rglob("*"):
        assert key.encode() not in path.read_bytes()


def test_a_key_in_a_tools_reason_for_its_failure_reaches_no_error(tmp_path: Path) -> None:
    report = f'{{"state": "error", "error": "bad key {os.environ["REPORTER_KEY"]}"}}'
    with pytest.raises(BenchError) as raised:
        _with(scenario_file(tmp_path), Choice("reporter", options={"report": report}))
    assert "bad key [redacted:REPORTER_KEY]" in str(raised.value)
    assert os.environ["REPORTER_KEY"] not in str(raised.value)


def test_a_missing_credential_refuses_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REPORTER_KEY")
    with pytest.raises(RefusedError, match="REPORTER_KEY is not set"):
        _with(scenario_file(tmp_path), Choice("reporter", options={"report": "x"}))


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (Choice("shel"), "did you mean shell"),
        (Choice("claude-code"), "needs a model"),
        (Choice("claude-code", model="sonet-5"), "sonnet-5"),
        (Choice("claude-code", model="sonnet-5"), "effort"),
        (Choice("shell", options={"comand": "x"}), "did you mean command"),
    ],
)
def test_a_choice_that_fits_no_tool_is_told(tmp_path: Path, choice: Choice, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        _with(scenario_file(tmp_path), choice)


@pytest.mark.services
def test_a_run_in_bubblewrap_sees_its_workspace_and_nothing_else(tmp_path: Path) -> None:
    file = scenario_file(tmp_path, required=("shell-fixture-test",))
    (tmp_path / "secret").write_text("x")
    command = f"test ! -e {tmp_path}/secret && echo 'exit 0' > test.sh"
    ran = run_tool(
        None,
        file,
        Choice("shell", options={"command": command}),
        backend="bubblewrap",
        traces=None,
        cell=None,
        mode=None,
        attempt=1,
    )
    assert ran.result.passed
