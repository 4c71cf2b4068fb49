"""``bench evaluation``: what it prints, writes and refuses."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import click.testing
import pytest

from bench_pipeline.cli import evaluation as command
from bench_pipeline.cli.main import main

HEAD = "apiVersion: bench.ber.run/v1alpha1\n"
AGENT = """\
kind: Tool
invoke: {command: [agent, "{prompt}"]}
models:
  small: {id: vendor-small-1, effort: [low, high]}
  large: {id: vendor-large-1, effort: [high, max]}
  plain: {id: vendor-plain-1}
options:
  turns: {default: 5, values: {5: {}, 9: {}}}
  style: {values: {terse: {}, chatty: {}}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one agent, in a process that may start nothing and open no socket."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("something was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    root = tmp_path / "project"
    (root / "tools").mkdir(parents=True)
    (root / "config.yaml").write_text(HEAD + "kind: Project\n")
    (root / "tools" / "agent.yaml").write_text(HEAD + AGENT)
    return root


def write(project: Path, name: str, body: str) -> None:
    (project / "evaluations").mkdir(exist_ok=True)
    (project / "evaluations" / f"{name}.yaml").write_text(HEAD + "kind: Evaluation\n" + body)


def run(capsys: pytest.CaptureFixture[str], project: Path, *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["--project", str(project), *words])
    out, err = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, out, err


def validated(capsys: pytest.CaptureFixture[str], project: Path, name: str) -> tuple[int, Any]:
    status, out, _ = run(capsys, project, "evaluation", "validate", name, "--json")
    return status, json.loads(out)


GOOD = "attempts: 3\ntools: [{tool: agent, model: [small, large], effort: high, options: {style: terse}}]\n"
LABELS = ["agent/small/high+style=terse", "agent/large/high+style=terse"]


def test_a_valid_evaluation_is_printed_as_one_json_document(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, "one", GOOD)
    assert validated(capsys, project, "one") == (
        0,
        {
            "evaluation": "one",
            "valid": True,
            "setups": LABELS,
            "setup_count": 2,
            "attempts": 3,
            "cells_per_task": 6,
            "errors": [],
        },
    )


def test_a_wrong_one_exits_1_with_every_problem_and_its_place(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        project,
        "one",
        "attempts: 30\ntools:\n  - tool: agnet\n  - {tool: agent, model: smal, effort: high}\n",
    )
    status, document = validated(capsys, project, "one")
    assert status == 1
    assert document["valid"] is False
    assert document["setups"] == []
    assert document["setup_count"] is None
    errors = [(error["file"], error["line"], error["field"]) for error in document["errors"]]
    assert errors == [
        ("evaluations/one.yaml", 3, "attempts"),
        ("evaluations/one.yaml", 5, "tools[0].tool"),
        ("evaluations/one.yaml", 6, "tools[1]"),
        ("evaluations/one.yaml", 6, "tools[1].model"),
    ]
    assert "did you mean agent?" in document["errors"][1]["message"]


def test_problems_of_tools_and_of_the_evaluation_are_told_together(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, "one", "tools: []\n")
    (project / "tools" / "agent.yaml").write_text(HEAD + "kind: Tool\n")
    status, document = validated(capsys, project, "one")
    assert status == 1
    assert [error["file"] for error in document["errors"]] == ["tools/agent.yaml", "evaluations/one.yaml"]


def test_the_text_lists_setups_and_says_what_cannot_be_known_here(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, "one", GOOD)
    status, out, err = run(capsys, project, "eval", "validate", "one")
    assert (status, err) == (0, "")
    for text in (*LABELS, "setup_count=2 attempts=3 cells_per_task=6", "cannot be known here", "--dry-run"):
        assert text in out


def test_the_text_of_a_wrong_one_stands_on_stderr(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, "one", 'tools: [{tool: "x\\u202ey\\e[31m"}]\n')
    status, out, err = run(capsys, project, "evaluation", "validate", "one")
    assert (status, out) == (1, "")
    assert "one is not valid: 1 problem\n" in err
    assert "\x1b" not in err
    assert "\u202e" not in err


def test_an_unknown_evaluation_is_not_found_with_the_nearest_name(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, "models", GOOD)
    status, out, err = run(capsys, project, "evaluation", "validate", "model")
    assert (status, out) == (1, "")
    assert "did you mean models?" in err
    assert run(capsys, project, "evaluation", "validate", "../config")[0] == 1


def test_a_label_that_another_evaluation_gives_to_another_setup_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    block = "tool: agent, model: plain, options: {style: terse}"
    write(project, "one", f"tools: [{{{block}}}]\n")
    write(project, "same", f"tools: [{{{block}}}]\n")
    assert validated(capsys, project, "one")[0] == 0
    write(project, "two", f"tools: [{{{block}, pre: [make]}}]\n")
    status, document = validated(capsys, project, "one")
    assert status == 1
    (error,) = document["errors"]
    assert "the label agent/plain/-+style=terse is another setup in the evaluation two" in error["message"]


def test_evaluations_are_listed_with_what_they_resolve_to(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, "one", GOOD)
    write(project, "bad", "tools: [{tool: nothing}]\n")
    (project / "evaluations" / "x.yml").write_text("")
    status, out, _ = run(capsys, project, "evaluation", "list", "--json")
    rows = json.loads(out)
    assert status == 0
    assert [(row["evaluation"], row["valid"], row["setup_count"], len(row["errors"])) for row in rows] == [
        ("bad", False, None, 1),
        ("one", True, 2, 0),
        ("x.yml", False, None, 1),
    ]
    _, text, _ = run(capsys, project, "evaluation", "list", "--plain")
    assert "evaluation=one valid=yes setup_count=2 attempts=3 cells_per_task=6 errors=0" in text


def test_create_writes_a_commented_template_that_is_valid(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = run(capsys, project, "evaluation", "create", "first")
    assert status == 0
    assert "evaluations/first.yaml" in out
    text = (project / "evaluations" / "first.yaml").read_text()
    assert text.count("#") > 8
    assert validated(capsys, project, "first") == (
        0,
        {
            "evaluation": "first",
            "valid": True,
            "setups": ["shell/-/-+command=true"],
            "setup_count": 1,
            "attempts": 1,
            "cells_per_task": 1,
            "errors": [],
        },
    )
    (project / "predictions").mkdir()
    for model in ("gold", "none"):
        (project / "predictions" / f"{model}.jsonl").write_text("")
    run(capsys, project, "evaluation", "create", "second")
    assert validated(capsys, project, "second")[1]["setups"] == ["predictions/gold/-", "predictions/none/-"]


def test_create_never_replaces_a_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, "one", GOOD)
    before = (project / "evaluations" / "one.yaml").read_text()
    for name in ("one", "ONE"):
        status, _, err = run(capsys, project, "evaluation", "create", name)
        assert status == 1
        assert "is there already and is never replaced" in err
    assert (project / "evaluations" / "one.yaml").read_text() == before
    assert len(list((project / "evaluations").iterdir())) == 1


@pytest.mark.parametrize("name", ["../x", "a/b", ".x", "x..y", "é", "a b", "x" * 201])
def test_create_takes_no_name_that_is_unfit_for_a_file(
    project: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    status, _, err = run(capsys, project, "evaluation", "create", name)
    assert status == 2
    assert "its name" in err
    assert not (project / "evaluations").exists()


def ask(project: Path, monkeypatch: pytest.MonkeyPatch, *answers: str) -> click.testing.Result:
    monkeypatch.setattr(command, "is_interactive", lambda: True)
    runner = click.testing.CliRunner()
    words = ["create", "asked", "--project", str(project)]
    return runner.invoke(command.evaluation, words, input="\n".join(answers) + "\n")


def test_on_a_terminal_create_asks_until_the_answers_are_known(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tools, models, options = ("agnet", "agent, shell"), ("small,large,plain",), ("loud", "terse")
    efforts, command_, attempts = ("low", "low, max, high"), ("true",), ("99", "3")
    result = ask(project, monkeypatch, *tools, *models, *options, *efforts, *command_, *attempts)
    assert result.exit_code == 0, result.output
    assert "did you mean agent?" in result.output
    assert "it takes none of those: efforts: high, max" in result.output
    status, document = validated(capsys, project, "asked")
    assert status == 0
    assert document["attempts"] == 3
    assert document["setups"] == [
        "agent/small/low+style=terse",
        "agent/small/high+style=terse",
        "agent/large/max+style=terse",
        "agent/large/high+style=terse",
        "agent/plain/-+style=terse",
        "shell/-/-+command=true",
    ]


def test_an_interrupted_question_writes_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = ask(project, monkeypatch, "agent")
    assert result.exit_code == 1
    assert not (project / "evaluations").exists()


def test_the_commands_load_nothing_heavy_until_they_run() -> None:
    code = (
        "import sys; from bench_pipeline.cli import evaluation, tool;"
        "print(sorted({'pydantic', 'yaml', 'pyarrow', 'pandas', 'dagster', 'genai_prices'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
