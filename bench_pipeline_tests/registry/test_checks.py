"""What is wrong with a tool's or a workflow's file beyond the types of its fields."""

from pathlib import Path

import pytest

from bench_pipeline.errors import DocumentError
from bench_pipeline.registry import Registry, ToolDefinition, WorkflowDefinition

HEAD = "apiVersion: bench.ber.run/v1alpha1\n"
AGENT = """\
kind: Tool
invoke: {command: [agent, "{prompt}"]}
models:
  small: {id: vendor-small-1, effort: [low, high]}
  plain: {id: vendor-plain-1}
options:
  turns: {default: "50", values: {"10": {}, "50": {}}}
"""


def load(tmp_path: Path, **files: str) -> Registry:
    folder = tmp_path / "tools"
    folder.mkdir(exist_ok=True)
    for name, body in files.items():
        (folder / f"{name}.yaml").write_text(HEAD + body)
    return Registry.load(tmp_path, None)


def problems(tmp_path: Path, **files: str) -> list[str]:
    with pytest.raises(DocumentError) as caught:
        load(tmp_path, **files)
    return [f"{problem.line}: {problem.field}: {problem.message}" for problem in caught.value.problems]


def tool_problem(tmp_path: Path, body: str) -> str:
    (found,) = problems(tmp_path, own=f"kind: Tool\n{body}")
    return found


def step_problem(tmp_path: Path, steps: str) -> str:
    (found,) = problems(tmp_path, agent=AGENT, flow=f"kind: Workflow\ntype: workflow\nsteps: [{steps}]\n")
    return found


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("invoke: {}\n", "3: invoke: needs either command"),
        ("invoke: {command: [x], replay: 'p/{model}.jsonl'}\n", "3: invoke: needs either command"),
        (
            "invoke: {replay: predictions.jsonl}\n",
            "3: invoke.replay: expected a file in the project with one {model}",
        ),
        (
            "invoke: {replay: '{model}/x.jsonl'}\n",
            "3: invoke.replay: expected a file in the project with one {model}",
        ),
        ("invoke: {replay: '../{model}.jsonl'}\n", "3: invoke.replay: expected a path inside its folder"),
        (
            "invoke: {command: [x, '{promt}']}\n",
            "3: invoke.command[1]: {promt} is not a placeholder here; did you mean prompt?",
        ),
        ("invoke: {command: [x, '{value}']}\n", "3: invoke.command[1]: {value} is not a placeholder here"),
        (
            "invoke: {command: [x], env: {A: '{value}'}}\n",
            "3: invoke.env.A: {value} is not a placeholder here",
        ),
        (
            "invoke: {command: [x], env: {A=B: x}}\n",
            '3: invoke.env."A=B": A=B is not the name of an environment variable',
        ),
        (
            "invoke: {command: ['{files}/x']}\n",
            "3: invoke.command[0]: {files} is the folder of the project files",
        ),
        ("invoke: {command: [x, 'a{options}']}\n", "3: invoke.command[1]: {options} may stand once"),
        ("invoke: {command: ['{options}', '{options}']}\n", "3: invoke.command[0]: {options} may stand once"),
        ("invoke: {command: [x], env: {A: '{options}'}}\n", "3: invoke.env.A: {options} may stand once"),
        (
            "invoke: {command: [x], success_exit_codes: []}\n",
            "3: invoke.success_exit_codes: expected at least one entry",
        ),
        ("invoke: {command: [x], stdin: file}\n", "3: invoke.stdin: expected 'prompt' or 'none', found file"),
    ],
)
def test_a_wrong_invocation_is_told_with_line_field_and_what_was_expected(
    tmp_path: Path, body: str, expected: str
) -> None:
    assert tool_problem(tmp_path, body).startswith(expected)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("version: {command: [x], pattern: '('}\n", "4: version.pattern: is not a regular expression"),
        (
            "usage: {format: bench-jsno}\n",
            '4: usage.format: "bench-jsno" is not a format that can be read; did you mean',
        ),
        (
            "usage: {format: bench-json, files: {log: x}}\n",
            "4: usage.files.log: log is not a file that bench-json",
        ),
        ("version: {command: []}\n", "4: version.command: expected at least one entry"),
        ("network: {allow: [raw.githubusercontent.com]}\n", "4: network.allow[0]: "),
        ("models: {a: {id: a, effort: [x, x]}}\n", "4: models.a.effort[1]: x stands twice"),
        ("models: {a: {}}\n", "4: models.a.id: is required"),
        ("models: {a: {id: ''}}\n", "4: models.a.id: expected a name"),
        ("options: {a: {default: x}}\n", "4: options.a: needs values"),
        ("options: {a: {free: true, values: {x: {}}}}\n", "4: options.a.values: an option with free"),
        ("options: {a: {default: x, values: {y: {}}}}\n", "4: options.a.default: is not one of the values"),
        ("options: {a: {values: {y: {}}, args: [x]}}\n", "4: options.a.args: stands with a value"),
        ("options: {a: {values: {y: {args: ['{vlaue}']}}}}\n", "4: options.a.values.y.args[0]: {vlaue}"),
        ("options: {a: {free: true, env: {A: '{x}'}}}\n", "4: options.a.env.A: {x} is not"),
        ("options: {'a/b': {free: true}}\n", "4: options.\"a/b\": the name 'a/b' may hold"),
        ("files: [/etc/passwd]\n", "4: files[0]: expected a path inside its folder"),
    ],
)
def test_a_wrong_tool_is_told_with_line_field_and_what_was_expected(
    tmp_path: Path, body: str, expected: str
) -> None:
    assert tool_problem(tmp_path, "invoke: {command: [x]}\n" + body).startswith(expected)


def test_braces_that_are_no_placeholders_stay_as_they_are(tmp_path: Path) -> None:
    body = "kind: Tool\ninvoke: {command: [sh, -c, 'x=${value} y={\"a\": 1} {{print}} {A}', '{options}']}\n"
    assert load(tmp_path, own=body).tool("own").name == "own"


def test_option_values_keep_their_text_as_names(tmp_path: Path) -> None:
    option = "{default: 1.0, values: {1: {}, 1.0: {}, true: {}, no: {}}}"
    body = f"kind: Tool\ninvoke: {{command: [x]}}\noptions: {{a: {option}}}\n"
    own = load(tmp_path, own=body).tool("own")
    assert isinstance(own, ToolDefinition)
    assert list(own.options["a"].values) == ["1", "1.0", "true", "no"]
    assert own.options["a"].default == "1.0"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ("", "4: steps: expected at least one entry"),
        (
            "{name: a, tool: agent}, {name: A, tool: agent}",
            "4: steps[1].name: A names an earlier step already",
        ),
        ("{name: a, tool: agnet}", "4: steps[0].tool: agnet is not a known tool; did you mean agent?"),
        ("{name: a, tool: flow}", "4: steps[0].tool: flow is a workflow, and a step needs a tool"),
        ("{name: a, tool: predictions}", "4: steps[0].tool: predictions replays patches of whole tasks"),
        (
            "{name: a, tool: agent, model: smal}",
            '4: steps[0].model: "smal" is not a model of agent; did you mean small?',
        ),
        (
            "{name: a, tool: agent, model: small, effort: max}",
            "4: steps[0].effort: small of agent does not take the effort",
        ),
        (
            "{name: a, tool: agent, model: plain, effort: low}",
            "4: steps[0].effort: plain of agent takes no effort",
        ),
        ("{name: a, tool: agent, effort: max}", "4: steps[0].effort: no model of agent takes the effort"),
        (
            "{name: a, tool: agent, options: {turn: 1}}",
            '4: steps[0].options.turn: "turn" is not an option of agent',
        ),
        (
            "{name: a, tool: agent, options: {turns: 1}}",
            '4: steps[0].options.turns: "1" is not a value of turns of agent',
        ),
        (
            "{name: a, tool: agent, prompt: 'do {task}'}",
            "4: steps[0].prompt: {task} is not a placeholder here; placeholders: prompt, workdir, ha",
        ),
        ("{name: a, tool: agent, timeout: 12:30}", "4: steps[0].timeout: expected a duration"),
        ("{name: a, tool: agent, retries: 1}", "4: steps[0].retries: is not a known field"),
    ],
)
def test_a_wrong_workflow_is_told_with_line_field_and_what_was_expected(
    tmp_path: Path, steps: str, expected: str
) -> None:
    assert step_problem(tmp_path, steps).startswith(expected)


def test_a_workflow_keeps_its_steps_in_order_with_prompts_and_timeouts(tmp_path: Path) -> None:
    first = "{name: plan, tool: agent, prompt: '{prompt} {handover}'}"
    steps = f"{first}, {{name: build, tool: agent, timeout: 1m30s}}"
    flow = load(tmp_path, agent=AGENT, flow=f"kind: Workflow\ntype: workflow\nsteps: [{steps}]\n").tool(
        "flow"
    )
    assert isinstance(flow, WorkflowDefinition)
    assert [(step.name, step.timeout) for step in flow.steps] == [("plan", None), ("build", 90.0)]


def test_a_workflow_says_that_it_is_one(tmp_path: Path) -> None:
    found = problems(tmp_path, agent=AGENT, flow="kind: Workflow\nsteps: [{name: a, tool: agent}]\n")
    assert found == ["1: type: is required, and missing"]
