"""Workflows and setup commands: steps share a tree and a handover, and what runs before the agent counts."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from bench_pipeline.pipeline.bench import Bench
from bench_pipeline_tests.e2e.projects import AGENT, HASTY, Project

Make = Callable[..., Project]

# What a step does: its prompt is a shell script, of which it sees only what bench fills in.
SCRIPTED = {
    **AGENT,
    "tool": "scripted",
    "files": [],
    "invoke": {"command": ["/bin/sh", "-euc", "{prompt}"]},
    "usage": {"format": "bench-json"},
    "options": {"tone": {"default": "calm", "values": {"calm": {}, "loud": {"env": {"TONE": "loud"}}}}},
}
TOKENS = '{"input": 100000, "cache_read": 0, "cache_write": 0, "output": 0}'
USED = f"""printf '{{"state": "completed", "tokens": {TOKENS}}}'"""
PLAN = f'echo add > "$BERBENCH_HANDOVER/plan"; echo at home > "$HOME/notes"; {USED}'
BUILD = (
    'test "$BERBENCH_HANDOVER" = {handover}; test ! -e "$HOME/notes"; cd {workdir}; '
    "printf 'echo $((%s))\\n' '$1 + $2' > sum.sh; test -s {handover}/plan; " + USED
)


def workflow(project: Project, *steps: Mapping[str, object]) -> None:
    project.document("tools/scripted.yaml", "Tool", SCRIPTED)
    given = [{"tool": "scripted", "model": "small", **step} for step in steps]
    project.document("tools/flow.yaml", "Workflow", {"type": "workflow", "steps": given})
    project.document("evaluations/one.yaml", "Evaluation", {"tools": [{"tool": "flow"}]})


def artifact(project: Project, row: Mapping[str, Any], name: str) -> bytes:
    return Bench(project.root).store.artifacts.get(dict(row["artifacts"])[name])


def test_steps_share_tree_and_handover_and_nothing_else(make: Make) -> None:
    project = make()
    workflow(project, {"name": "plan", "prompt": PLAN}, {"name": "build", "prompt": BUILD})
    row = project.measure("one").row
    assert (row["outcome"], row["reason"]) == ("passed", None), artifact(project, row, "build.stderr")
    assert artifact(project, row, "plan.handover/plan") == b"add\n"
    assert "build.handover/plan" not in dict(row["artifacts"])
    assert (row["tokens_input"], row["cost_usd"]) == (200000, pytest.approx(0.4))


def test_a_workflow_with_a_step_of_unknown_price_has_no_price(make: Make) -> None:
    project = make()
    workflow(project, {"name": "plan", "prompt": PLAN}, {"name": "build", "prompt": BUILD, "model": "large"})
    assert project.measure("one").row["cost_usd"] is None


def test_a_step_that_fails_ends_the_workflow(make: Make) -> None:
    project = make()
    workflow(project, {"name": "plan", "prompt": "exit 4"}, {"name": "build", "prompt": BUILD})
    row = project.measure("one").row
    assert (row["outcome"], row["exit_code"]) == ("adapter_error", 4)
    assert "build.stdout" not in dict(row["artifacts"])


def test_a_steps_own_time_runs_out_and_is_named(make: Make) -> None:
    project = make()
    workflow(
        project, {"name": "plan", "prompt": "sleep 3600", "timeout": "1s"}, {"name": "build", "prompt": BUILD}
    )
    row = project.measure("one").row
    assert (row["outcome"], row["reason"]) == ("timeout", "timeout of step plan")


def test_a_steps_time_never_extends_that_of_the_cell(make: Make) -> None:
    project = make(HASTY)
    workflow(project, {"name": "plan", "prompt": "sleep 3600", "timeout": "1h"})
    row = project.measure("one").row
    assert (row["outcome"], row["reason"]) == ("timeout", "cell timeout")
    assert row["duration_s"] < 60


def test_a_step_value_is_an_axis_and_part_of_the_identity(make: Make) -> None:
    project = make()
    workflow(project, {"name": "plan", "prompt": PLAN}, {"name": "build", "prompt": BUILD})
    steps = {"build": {"model": ["small", "large"], "options": {"tone": ["calm", "loud"]}}}
    project.document("evaluations/one.yaml", "Evaluation", {"tools": [{"tool": "flow", "steps": steps}]})
    rows = project.measure("one").rows
    assert [row["setup"] for row in rows] == [
        "flow/-/-", "flow/-/-+build.options.tone=loud",
        "flow/-/-+build.model=large", "flow/-/-+build.model=large+build.options.tone=loud",
    ]  # fmt: skip
    assert len({row["run_key"] for row in rows}) == 4


def test_pre_commands_without_isolation_run_each_time_and_say_why(make: Make) -> None:
    project = make()
    project.evaluation("one", {"pre": ["echo prepared > prepared"], "options": {"act": "nothing"}})
    for calls in (1, 2):
        done = project.measure("one")
        assert (done.actions, done.outcomes, len(project.calls())) == (
            {"executed": 1},
            {"no_changes": 1},
            calls,
        )
    (cell,) = project.table("evaluation_cells")
    assert (cell["reusable"], cell["pre_digest"]) == (False, None)
    assert "process sandbox cannot hold setup commands to the tree" in cell["not_reusable_reason"]


def test_a_setup_command_that_fails_is_no_fault_of_the_agent(make: Make) -> None:
    project = make()
    project.evaluation("one", {"pre": ["echo out of luck >&2; exit 3"]})
    row = project.measure("one").row
    assert row["outcome"] == "infrastructure_error"
    assert "pre[0] ended with exit status 3: out of luck" in row["reason"]
    assert (row["cost_usd"], project.calls()) == (0.0, [])


@pytest.mark.services
def test_pre_commands_under_isolation_are_part_of_the_identity_by_what_they_leave(make: Make) -> None:
    project = make()
    project.evaluation("one", {"pre": ["echo one > prepared"], "options": {"act": "free"}})
    first = project.measure("one", backend="bubblewrap")
    assert (first.actions, first.outcomes) == ({"executed": 1}, {"passed": 1})
    assert project.measure("one", backend="bubblewrap").actions == {"reused": 1}

    project.evaluation("one", {"pre": ["echo two > prepared"], "options": {"act": "free"}})
    other = project.measure("one", backend="bubblewrap")
    assert other.actions == {"executed": 1}
    (cell,) = project.table("evaluation_cells")
    assert cell["reusable"]
    assert cell["pre_digest"] is not None
    patch = artifact(project, other.row, "patch")
    assert b"prepared" not in patch


@pytest.mark.services
def test_setup_of_the_environment_under_isolation_is_reusable_and_seen_by_agent_and_check(make: Make) -> None:
    project = make()
    project.task("prepared", environment={"setup": ["echo 'third 1 1 2' >> cases"]})
    project.configure(sandbox={"backend": "bubblewrap"})
    project.validate("prepared")
    project.evaluation("one", {"options": {"act": "free"}})
    first = project.measure("one", tasks=["prepared"], backend="bubblewrap")
    assert (first.outcomes, first.row["tests_run"]) == ({"passed": 1}, 3)
    assert project.measure("one", tasks=["prepared"], backend="bubblewrap").actions == {"reused": 1}


@pytest.mark.services
def test_a_tool_that_needs_the_network_is_refused_under_isolation_with_the_reason(make: Make) -> None:
    project = make()
    project.document("tools/agent.yaml", "Tool", {**AGENT, "network": {"allow": ["api.example.org"]}})
    project.evaluation("one")
    done = project.measure("one", backend="bubblewrap")
    assert (done.actions, done.outcomes) == ({"skipped": 1}, {"not_attempted": 1})
    assert "agent needs the network (api.example.org)" in done.deeds[0]["reason"]
    assert any("agent/small/- is not run: agent needs the network" in notice for notice in done.notices)
