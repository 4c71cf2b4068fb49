"""An evaluation of two tasks through the real program of each built-in agent, in bubblewrap, with a scripted model.

Each is measured, recorded on the way, and then replayed without any server.

``make test-agents`` installs the programs into ``.agents`` first (about 2 GB). They are started by their paths, and
that folder is shown to cells, so that nothing is installed on the machine.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench_pipeline.execution.sandbox import Mount, bubblewrap
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.tool_check import check_tool
from bench_pipeline.registry.layers import BUILTIN_DIR
from bench_pipeline_tests.e2e.conftest import make, nothing_configured, template
from bench_pipeline_tests.e2e.projects import Project
from bench_pipeline_tests.model_server import Step, model_server

__all__ = ["make", "nothing_configured", "template"]

Make = Callable[..., Project]

AGENTS = (Path(__file__).parents[2] / ".agents").resolve()
NPM = AGENTS / "npm" / "node_modules" / ".bin"
FIX = "printf 'echo $(($1 + $2))\\n' > sum.sh"
EDIT = """sum.sh
```
<<<<<<< SEARCH
echo $(($1 - $2))
=======
echo $(($1 + $2))
>>>>>>> REPLACE
```
"""
PROGRAMS = {
    "claude-code": NPM / "claude",
    "codex": NPM / "codex",
    "opencode": NPM / "opencode",
    "mini-swe-agent": AGENTS / "mini" / "bin" / "mini",
    "aider": AGENTS / "aider" / "bin" / "aider",
}
LIMITS = {"cell_timeout": "180s", "resources": {"memory": "4GiB", "pids": 512}}
DONE: Step = {"text": "Fixed."}
SCRIPTS: dict[str, Sequence[Step]] = {
    "claude-code": ({"calls": [("Bash", {"command": FIX, "description": "fix"})]}, DONE),
    "codex": ({"calls": [("exec_command", {"cmd": FIX})]}, DONE),
    "opencode": ({"calls": [("bash", {"command": FIX, "description": "fix"})]}, DONE),
    "mini-swe-agent": (
        {"text": "Fixing.", "calls": [("bash", {"command": FIX})]},
        {"text": "Done.", "calls": [("bash", {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"})]},
    ),
    "aider": ({"text": EDIT},),
}


def definition(name: str) -> dict[str, Any]:
    """The built-in tool under a name of its own, started by its path."""
    fields: dict[str, Any] = yaml.safe_load((BUILTIN_DIR / f"{name}.yaml").read_text())
    program = fields["version"]["command"][0]
    for command in (fields["invoke"]["command"], fields["version"]["command"]):
        command[:] = [
            str(PROGRAMS[name])
            if word == program
            else word.replace(f"exec {program}", f"exec {PROGRAMS[name]}")
            for word in command
        ]
    return {
        **{key: value for key, value in fields.items() if key not in {"apiVersion", "kind"}},
        "tool": "real",
    }


@pytest.fixture(autouse=True)
def _shown(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = tuple(Mount(Path(path), str(path)) for path in (AGENTS, sys.base_prefix))
    arguments = bubblewrap.place_arguments
    monkeypatch.setattr(
        bubblewrap,
        "place_arguments",
        lambda place: arguments(replace(place, mounts=(*place.mounts, *shown))),
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_two_tasks_are_solved_counted_and_replayed_with_the_server_off(make: Make, name: str) -> None:
    side = None if name == "aider" else {"text": "A title"}
    tool = definition(name)
    key, model = next((key, each) for key, each in tool["models"].items() if each.get("effort"))
    with model_server(*SCRIPTS[name] * 2, side=side) as server:
        project = make("alpha", "beta")
        project.configure(
            defaults=LIMITS,
            upstreams={"scripted": {"base_url": server.url, "models": [model["id"]]}},
        )
        project.document("tools/real.yaml", "Tool", tool)
        block = {"tool": "real", "model": key, "effort": "low"}
        project.document("evaluations/one.yaml", "Evaluation", {"tools": [block]})
        measured = project.measure("one", backend="bubblewrap", concurrency=1)
    asked = len(server.requests)
    # The server is off: a replay asks nobody, and finds no upstream either.
    project.configure(defaults=LIMITS, upstreams={})
    replayed = project.measure("one", backend="bubblewrap", concurrency=1, replay=True)
    assert [(row["outcome"], row["reason"]) for row in measured.rows] == [("passed", None)] * 2
    assert sum(row["turns"] for row in measured.rows) == asked
    assert sum(row["tokens_output"] for row in measured.rows) == 40 * asked
    assert not any(row["orphans"] for row in measured.rows)
    assert [(deed["action"], deed["reason"]) for deed in replayed.deeds] == [("replayed", None)] * 2
    assert replayed.rows == measured.rows
    for row in measured.rows:
        (again,) = Bench(project.root).store.replays.history(row["identity"]).to_pylist()
        assert dict(again["artifacts"])["patch"] == dict(row["artifacts"])["patch"]
        assert (again["outcome"], again["tokens_output"]) == ("passed", row["tokens_output"])


@pytest.mark.parametrize("name", SCRIPTS)
def test_trying_it_finds_nothing_wrong(make: Make, name: str) -> None:
    project = make()
    project.configure(defaults={"resources": {"memory": "4GiB", "pids": 512}})
    project.document("tools/real.yaml", "Tool", definition(name))
    found = check_tool(Bench(project.root, backend="bubblewrap"), "real", None, None)
    assert [each for each in found if each.ok is False] == []
    assert {each.check for each in found} >= {"version", "model", "end", "usage", "tree"}
