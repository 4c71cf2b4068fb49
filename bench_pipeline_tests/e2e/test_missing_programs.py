"""A tool whose program is not where cells look is one clear error before anything is spent."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.cells import write_cells
from bench_pipeline.pipeline.measuring import write_verdicts
from bench_pipeline.pipeline.selection import Partition, RunOptions
from bench_pipeline_tests.e2e.projects import AGENT, Project

Make = Callable[..., Project]


def tool(project: Project, name: str, *command: str, **fields: Any) -> None:
    """A tool as the agent is, started by another command."""
    definition = {**AGENT, "tool": name, "invoke": {"command": list(command)}, **fields}
    project.document(f"tools/{name}.yaml", "Tool", definition)


@pytest.fixture
def project(make: Make) -> Project:
    """One evaluation of the agent, which is there, and of two tools that are not."""
    made = make()
    tool(made, "absent", "no-such-agent", "{prompt}")
    tool(made, "unshipped", "{files}/agent/none.sh")
    made.evaluation("one", {}, {"tool": "absent"}, {"tool": "unshipped"})
    return made


def test_all_missing_programs_are_named_at_once_with_where_and_what_to_do(project: Project) -> None:
    for words in (("run", "one", "--yes"), ("run", "one", "--dry-run", "--json")):
        ended = project.ask(*words)
        assert (ended.status, ended.out) == (1, "")
        assert "absent: no-such-agent is no executable file in /usr/local/bin:/usr/bin:/bin" in ended.err
        assert "install it below /usr/local/bin or /usr/bin, or ship it with the project" in ended.err
        assert "start {files}/no-such-agent" in ended.err
        assert "unshipped: {files}/agent/none.sh is no executable file among its files" in ended.err
    assert (project.calls(), project.stored()) == ([], [])


def test_under_dagster_the_other_setups_are_measured_and_the_log_says_why_not_all(project: Project) -> None:
    bench, said = Bench(project.root, backend="process"), list[str]()
    part = Partition("smoke", 1)
    with bench.workspaces:
        write_cells(bench, [part])
        done = write_verdicts(bench, RunOptions(), partitions=[part], run_id="r", log=said.append)
    outcomes = {row["setup"]: row["outcome"] for row in done.written[part].table.to_pylist()}
    assert outcomes == {
        "agent/small/-": "passed",
        "absent/small/-": "not_attempted",
        "unshipped/small/-": "not_attempted",
    }
    assert any("absent/small/- is not run: absent: no-such-agent is no executable file" in s for s in said)


def test_cells_that_run_no_tool_need_no_program(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make()
    project.evaluation("one")
    project.measure("one")
    monkeypatch.setattr("bench_pipeline.pipeline.environment.Environment.has_program", lambda *_: False)
    assert project.ask("run", "one", "--dry-run", "--json").json["reuse"] == 1
    assert project.ask("run", "one", "--dry-run", "--json", "--fresh").status == 1


@pytest.mark.parametrize("command", [["./agent.sh"], ["{workdir}/agent.sh"], ["tools/agent.sh"]])
def test_a_program_in_the_task_s_tree_is_left_to_the_cell(make: Make, command: list[str]) -> None:
    project = make()
    tool(project, "agent", *command)
    project.evaluation("one")
    assert json.loads(project.ask("run", "one", "--dry-run", "--json").out)["run"] == 1


def test_a_shipped_program_and_one_in_a_path_of_the_tool_s_own_are_found(make: Make) -> None:
    project = make()
    project.write("bin/helper", "#!/bin/sh\n").chmod(0o755)
    tool(project, "agent", "{files}/bin/helper", files=["bin"])
    tool(project, "other", "helper", invoke={"command": ["helper"], "env": {"PATH": f"{project.root}/bin"}})
    tool(project, "words", "test")
    project.evaluation("one", {}, {"tool": "other"}, {"tool": "words"})
    assert project.ask("run", "one", "--dry-run").status == 0
    (project.root / "bin" / "helper").chmod(0o644)
    said = project.ask("run", "one", "--dry-run").err
    assert "agent: {files}/bin/helper is no executable file among its files" in said
    assert "other: helper is no executable file in" in said
    assert "words" not in said


def test_a_version_command_that_is_not_there_says_where_it_was_looked_for(make: Make) -> None:
    project = make()
    tool(project, "agent", "sh", version={"command": ["no-such-agent", "--version"]})
    project.evaluation("one")
    said = project.ask("run", "one", "--dry-run").err
    assert "no-such-agent is not in /usr/local/bin:/usr/bin:/bin" in said
    assert "install it below /usr/local/bin or /usr/bin" in said


@pytest.mark.services
def test_an_isolated_cell_is_asked_not_the_machine(make: Make) -> None:
    project = make()
    project.configure(sandbox={"backend": "bubblewrap"})
    outside = project.write("bin/helper", "#!/bin/sh\n")
    outside.chmod(0o755)
    tool(project, "agent", str(outside))
    project.evaluation("one")
    said = project.ask("run", "one", "--dry-run").err
    assert f"agent: {outside} is no executable file there in the bubblewrap sandbox" in said
