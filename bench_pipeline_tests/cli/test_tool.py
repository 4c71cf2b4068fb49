"""``bench tool``: the tools of a project, and one of them after every layer had its say."""

import json
from pathlib import Path

import pytest

from bench_pipeline.cli import tool
from bench_pipeline.cli.main import main

HEAD = "apiVersion: bench.ber.run/v1alpha1\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    root = tmp_path / "project"
    (root / "tools").mkdir(parents=True)
    (root / "config.yaml").write_text(HEAD + "kind: Project\n")
    (root / "tools" / "agent.yaml").write_text(
        HEAD + "kind: Tool\n"
        'description: "Mine.\\e[2J"\n'
        "invoke: {command: [agent]}\n"
        "models: {m: {id: vendor-m, effort: [low, max]}}\n"
        "options: {turns: {default: 5, values: {5: {}, 9: {args: [--turns, '{value}']}}}}\n"
    )
    (root / "tools" / "flow.yaml").write_text(
        HEAD + "kind: Workflow\ntype: workflow\nsteps: [{name: plan, tool: agent, timeout: 5m}]\n"
    )
    (root / "predictions").mkdir()
    (root / "predictions" / "gold.jsonl").write_text("")
    overlay = tmp_path / "user" / "ber" / "bench" / "tools" / "shell.yaml"
    overlay.parent.mkdir(parents=True)
    overlay.write_text(
        HEAD + "kind: Tool\nextends: builtin\noptions: {niceness: {default: 0, values: {0: {}}}}\n"
    )
    return root


def run(capsys: pytest.CaptureFixture[str], project: Path, *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["tool", *words, "--project", str(project)])
    out, err = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, out, err


def test_every_tool_and_workflow_is_listed_with_where_it_comes_from(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = run(capsys, project, "list", "--json")
    rows = {row["tool"]: row for row in json.loads(out)}
    assert status == 0
    assert rows["agent"]["kind"] == "tool"
    assert rows["agent"]["models"] == ["m"]
    assert rows["flow"]["kind"] == "workflow"
    assert rows["flow"]["steps"] == ["plan"]
    assert rows["predictions"]["models"] == ["gold"]
    assert rows["agent"]["origins"] == ["project tools/agent.yaml"]
    assert [origin.split()[0] for origin in rows["shell"]["origins"]] == ["built-in", "user-level"]
    assert "tool=agent kind=tool models=m options=turns steps=-" in run(capsys, project, "list", "--plain")[1]


def test_a_tool_is_shown_with_what_evaluations_may_ask_of_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = run(capsys, project, "show", "agent", "--json")
    document = json.loads(out)
    assert status == 0
    assert document["invoke"]["command"] == ["agent"]
    assert document["models"] == {"m": {"id": "vendor-m", "effort": ["low", "max"]}}
    assert document["options"]["turns"]["default"] == "5"
    assert document["options"]["turns"]["values"]["9"]["args"] == ["--turns", "{value}"]
    assert "args" not in document["options"]["turns"]
    assert document["overlay_file"] == "tools/agent.yaml"
    assert json.loads(run(capsys, project, "show", "shell", "--json")[1])["options"]["command"]["args"] == [
        "{value}"
    ]


def test_a_workflow_is_shown_with_its_steps(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(run(capsys, project, "show", "flow", "--json")[1])
    assert document["kind"] == "workflow"
    assert [(step["name"], step["tool"], step["timeout"]) for step in document["steps"]] == [
        ("plan", "agent", 300.0)
    ]
    assert "steps.plan=" in run(capsys, project, "show", "flow")[1]


def test_text_from_a_file_cannot_steer_the_terminal(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for terminal in (False, True):
        monkeypatch.setattr(tool, "wants_plain", lambda _, terminal=terminal: not terminal)
        status, out, _ = run(capsys, project, "show", "agent")
        assert status == 0
        assert f"description{': ' if terminal else '='}Mine.\\u001b[2J" in out
        assert "\x1b" not in out


def test_an_unknown_tool_is_not_found_with_the_nearest_name(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, project, "show", "agnet")
    assert (status, out) == (1, "")
    assert "did you mean agent?" in err


def test_a_broken_tool_is_told_with_its_place(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "tools" / "agent.yaml").write_text(HEAD + "kind: Tool\ninvoke: {comand: [x]}\n")
    status, _, err = run(capsys, project, "list")
    assert status == 1
    assert "agent.yaml:3: invoke.comand: is not a known field; did you mean command?" in err
