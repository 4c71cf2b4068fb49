"""What of a setup decides its candidates: what changes its digest, and what must not."""

import copy
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench_pipeline.evaluations import Resolution, load_evaluation, resolve, setup_digest, setup_document
from bench_pipeline.identity import digest
from bench_pipeline.project import find_project
from bench_pipeline.registry import Registry

Tree = dict[str, Any]
AGENT: Tree = {
    "description": "An agent.",
    "invoke": {"command": ["agent", "{prompt}", "{options}"], "env": {"A": "1", "B": "2"}},
    "version": {"command": ["agent", "--version"]},
    "usage": {"format": "none"},
    "credentials": {"env": ["KEY"]},
    "network": {"allow": ["api.example.com"]},
    "models": {
        "small": {"id": "vendor-small-1", "effort": ["low", "high"]},
        "large": {"id": "vendor-large-1", "effort": ["low", "high"]},
    },
    "options": {
        "turns": {"default": "5", "values": {"5": {"args": ["-t", "5"]}, "9": {"args": ["-t", "{value}"]}}},
        "notes": {
            "default": "with",
            "values": {"with": {}, "without": {"pre": ["rm NOTES"], "env": {"N": "0"}}},
        },
    },
    "droppings": [".agent*"],
    "files": ["helper.py"],
}
FLOW: Tree = {
    "type": "workflow",
    "steps": [
        {"name": "plan", "tool": "agent", "prompt": "plan {prompt}", "timeout": "5m"},
        {"name": "build", "tool": "agent", "model": "small", "effort": "low"},
    ],
}
EVALUATION: Tree = {
    "attempts": 2,
    "tools": [
        {
            "tool": "agent",
            "tool_version": ["1.10", "latest"],
            "model": ["small", "large"],
            "effort": ["low", "high"],
            "options": {"turns": ["5", "9"], "notes": ["with", "without"]},
            "pre": ["make deps", "make more"],
        },
        {
            "tool": "flow",
            "steps": {"plan": {"model": ["small", "large"], "effort": "high", "options": {"turns": "9"}}},
        },
    ],
}
VERSIONS = {"agent": "2.0", "agent:python3": "Python 3.11.7"}
FILES = {"agent": "f" * 64}


def as_json(kind: str, body: Tree) -> str:
    return json.dumps({"apiVersion": "bench.ber.run/v1alpha1", "kind": kind, **body})


def as_yaml(kind: str, body: Tree, rng: random.Random) -> str:
    """The same document in block style: keys shuffled, comments, blank lines and quotes put in at will."""
    tree = {"apiVersion": "bench.ber.run/v1alpha1", "kind": kind, **body}
    return "\n".join(_yaml_lines(tree, "", rng)) + "\n"


def _yaml_lines(value: Any, indent: str, rng: random.Random) -> list[str]:
    lines: list[str] = []
    entries: list[tuple[str, Any]]
    if isinstance(value, dict):
        entries = [(f"{_scalar(key, rng)}:", item) for key, item in value.items()]
        rng.shuffle(entries)
    else:
        entries = [("-", item) for item in value]
    for head, item in entries:
        if rng.random() < 0.2:
            lines += ["", f"{indent}# a comment: {rng.random()}"]
        if isinstance(item, (dict, list)) and item:
            lines += [f"{indent}{head}", *_yaml_lines(item, indent + " " * rng.choice([1, 2, 4]), rng)]
        else:
            shown = json.dumps(item) if isinstance(item, (dict, list, int)) else _scalar(item, rng)
            lines.append(f"{indent}{head} {shown}{rng.choice(['', '   # why'])}")
    return lines


def _scalar(text: str, rng: random.Random) -> str:
    plain = text.replace("/", "").replace("-", "").replace(".", "").isalnum() and not text.startswith("-")
    return text if plain and rng.random() < 0.5 else json.dumps(text)


def resolved(root: Path, agent: str, flow: str, evaluation: str) -> Resolution:
    for path, text in {
        "config.yaml": "apiVersion: bench.ber.run/v1alpha1\nkind: Project\n",
        "tools/agent.yaml": agent,
        "tools/flow.yaml": flow,
        "evaluations/one.yaml": evaluation,
    }.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    project = find_project(root)
    return resolve(project, Registry.load(root, None), load_evaluation(project, "one"))


def digests(
    root: Path, agent: Tree = AGENT, flow: Tree = FLOW, evaluation: Tree = EVALUATION
) -> dict[str, str]:
    made = resolved(
        root, as_json("Tool", agent), as_json("Workflow", flow), as_json("Evaluation", evaluation)
    )
    return {setup.label: setup_digest(setup, VERSIONS, FILES) for setup in made.setups}


def changed(tree: Tree, path: str, value: object) -> Tree:
    """A copy of a tree with another value at a path such as ``steps.0.prompt``; ``...`` takes the value away."""
    copied = copy.deepcopy(tree)
    *above, last = [int(step) if step.isdigit() and len(step) < 2 else step for step in path.split("/")]
    place: Any = copied
    for step in above:
        place = place[step] if isinstance(place, list) else place[str(step)]
    key: Any = last if isinstance(place, list) else str(last)
    if value is ...:
        del place[key]
    else:
        place[key] = value
    return copied


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.randoms())
def test_order_of_keys_comments_white_space_and_quotes_change_no_digest(
    tmp_path: Path, seed: int, order: random.Random
) -> None:
    wanted = digests(tmp_path)
    rng = random.Random(seed)
    evaluation = copy.deepcopy(EVALUATION)
    order.shuffle(evaluation["tools"])
    for axis in ("model", "effort", "tool_version"):
        order.shuffle(evaluation["tools"][0].get(axis, []))
    made = resolved(
        tmp_path,
        as_yaml("Tool", AGENT, rng),
        as_yaml("Workflow", FLOW, rng),
        as_yaml("Evaluation", evaluation, rng),
    )
    assert {setup.label: setup_digest(setup, VERSIONS, FILES) for setup in made.setups} == wanted


# Versions are told apart once they are resolved; here both are 2.0.
DISTINCT = 32 // 2 + 2


def test_setups_with_different_inputs_have_different_digests_and_equal_versions_are_one(
    tmp_path: Path,
) -> None:
    found = digests(tmp_path)
    assert len(found) == 32 + 2
    assert len(set(found.values())) == DISTINCT
    assert found["agent@1.10/small/low"] == found["agent@latest/small/low"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("invoke/command", ["agent", "-v", "{prompt}", "{options}"]),
        ("invoke/stdin", "prompt"),
        ("invoke/env", {"A": "1", "B": "3"}),
        ("invoke/success_exit_codes", [0, 1]),
        ("usage/format", "bench-json"),
        ("network/allow", ["api.example.org"]),
        ("droppings", []),
    ],
)
def test_a_change_of_the_invocation_is_another_setup_everywhere(
    tmp_path: Path, path: str, value: object
) -> None:
    before, after = digests(tmp_path), digests(tmp_path, agent=changed(AGENT, path, value))
    assert before.keys() == after.keys()
    assert all(before[label] != after[label] for label in before)


@pytest.mark.parametrize(
    ("path", "value", "touched"),
    [
        ("models/small/id", "vendor-small-2", lambda label: "small" in label or "flow" in label),
        ("options/turns/values/9/args", ["--turns", "9"], lambda label: "turns=9" in label),
        ("options/turns/values/9/post", ["sync"], lambda label: "turns=9" in label),
        ("options/turns/values/9/network", {"allow": ["x.example.com"]}, lambda label: "turns=9" in label),
        ("options/turns/values/5/args", ["-t5"], lambda label: "turns=9" not in label or "flow" in label),
        ("options/notes/values/without/pre", ["rm -f NOTES"], lambda label: "notes=without" in label),
        ("options/notes/values/without/env", {"N": "1"}, lambda label: "notes=without" in label),
        ("options/notes/values/with/args", ["--notes"], lambda label: "notes=without" not in label),
    ],
)  # fmt: skip
def test_a_change_of_a_model_or_of_a_value_s_effect_touches_the_setups_that_use_it(
    tmp_path: Path, path: str, value: object, touched: Any
) -> None:
    before, after = digests(tmp_path), digests(tmp_path, agent=changed(AGENT, path, value))
    assert {label for label in before if before[label] != after[label]} == set(filter(touched, before))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("description", "Other words."),
        ("credentials/env", ["OTHER"]),
        ("version/command", ["agent", "-V"]),
        ("models/new", {"id": "vendor-new-1", "effort": ["low"]}),
        ("models/small/effort", ["high", "low", "max"]),
        ("options/new", {"default": "off", "values": {"off": {}, "on": {"args": ["--on"]}}}),
        ("options/turns/values/20", {"args": ["-t", "20"]}),
        ("options/turns/values/9/require_env", ["TURNS_KEY"]),
    ],
)
def test_what_a_setup_does_not_use_and_what_decides_nothing_changes_no_digest(
    tmp_path: Path, path: str, value: object
) -> None:
    assert digests(tmp_path, agent=changed(AGENT, path, value)) == digests(tmp_path)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("steps/0/prompt", "plan well {prompt}"),
        ("steps/0/prompt", ...),
        ("steps/0/timeout", "6m"),
        ("steps/0/name", "plan"),
        ("steps/1/model", "large"),
        ("steps/1/effort", "high"),
        ("steps/1/options", {"turns": "9"}),
        ("steps/1/name", "make"),
        ("steps", FLOW["steps"][::-1]),
    ],
)
def test_every_part_of_a_workflow_that_reaches_its_steps_counts(
    tmp_path: Path, path: str, value: object
) -> None:
    before, after = digests(tmp_path), digests(tmp_path, flow=changed(FLOW, path, value))
    same = changed(FLOW, path, value) == FLOW
    for label in before:
        assert (before[label] == after[label]) is (same or label.startswith("agent")), label


@pytest.mark.parametrize(
    ("path", "value", "prefix"),
    [
        ("tools/0/pre", ["make more", "make deps"], "agent"),
        ("tools/0/pre", [], "agent"),
        ("tools/1/pre", ["make deps"], "flow"),
        ("tools/1/steps/plan/options", {"turns": "9", "notes": "without"}, "flow"),
    ],
)
def test_commands_and_step_values_of_an_evaluation_count_where_they_stand(
    tmp_path: Path, path: str, value: object, prefix: str
) -> None:
    before = digests(tmp_path)
    after = set(digests(tmp_path, evaluation=changed(EVALUATION, path, value)).values())
    assert {label for label in before if before[label] not in after} == {
        label for label in before if label.startswith(prefix)
    }


def test_attempts_and_the_evaluation_s_name_change_no_digest(tmp_path: Path) -> None:
    assert digests(tmp_path, evaluation=changed(EVALUATION, "attempts", 7)) == digests(tmp_path)
    (tmp_path / "evaluations" / "one.yaml").rename(tmp_path / "evaluations" / "two.yaml")
    project = find_project(tmp_path)
    two = resolve(project, Registry.load(tmp_path, None), load_evaluation(project, "two"))
    assert {setup.label: setup_digest(setup, VERSIONS, FILES) for setup in two.setups} == digests(tmp_path)


def test_resolved_versions_and_project_files_count_and_must_be_given(tmp_path: Path) -> None:
    digests(tmp_path)
    project = find_project(tmp_path)
    setup = resolve(project, Registry.load(tmp_path, None), load_evaluation(project, "one")).setups[0]
    plain = setup_digest(setup, VERSIONS, FILES)
    assert plain != setup_digest(setup, {**VERSIONS, "agent": "2.1"}, FILES)
    assert plain != setup_digest(setup, {**VERSIONS, "agent:python3": "Python 3.12.0"}, FILES)
    assert plain != setup_digest(setup, VERSIONS, {"agent": "0" * 64})
    assert plain == digest(setup_document(setup, VERSIONS, FILES))
    assert [(tool.name, version) for tool, version in setup.tools()] == [("agent", "1.10")]
    with pytest.raises(KeyError, match="version of agent"):
        setup_digest(setup, {}, FILES)
    with pytest.raises(KeyError, match="files of agent"):
        setup_digest(setup, VERSIONS, {})


def test_all_commands_before_the_tool_are_those_of_options_then_of_the_block_each_once(
    tmp_path: Path,
) -> None:
    evaluation = {
        "tools": [
            {
                "tool": "agent",
                "model": "small",
                "effort": "low",
                "options": {"notes": "without"},
                "pre": ["a", "a"],
            },
            {
                "tool": "flow",
                "model": "large",
                "effort": "low",
                "options": {"notes": "without"},
                "pre": ["b"],
            },
        ]
    }
    made = resolved(
        tmp_path, as_json("Tool", AGENT), as_json("Workflow", FLOW), as_json("Evaluation", evaluation)
    )
    assert [setup.all_pre() for setup in made.setups] == [("rm NOTES", "a"), ("rm NOTES", "b")]
    assert [leaf.name for leaf in made.setups[1].leaves()] == ["plan", "build"]
    assert made.setups[1].step_values["plan.timeout"] == "300s"


def test_setups_are_told_apart_by_their_keys_exactly_as_by_their_components(tmp_path: Path) -> None:
    evaluation = changed(EVALUATION, "tools/1/pre", ["make deps"])
    made = resolved(
        tmp_path, as_json("Tool", AGENT), as_json("Workflow", FLOW), as_json("Evaluation", evaluation)
    )
    other = resolved(
        tmp_path, as_json("Tool", AGENT), as_json("Workflow", FLOW), as_json("Evaluation", EVALUATION)
    )
    setups = [*made.setups, *other.setups]
    written = [digest({"setup": setup.components(), "version": setup.tool_version}) for setup in setups]
    for left, one in zip(setups, written, strict=True):
        for right, two in zip(setups, written, strict=True):
            assert (left.written_key() == right.written_key()) is (one == two)


SCRIPT = """
import sys
from pathlib import Path
from bench_pipeline_tests.evaluations.test_setup_identity import digests
for label, found in digests(Path(sys.argv[1])).items():
    print(label, found)
"""


def test_digests_are_equal_in_another_process_under_another_hash_seed(tmp_path: Path) -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT, str(tmp_path)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert printed == {"".join(f"{label} {found}\n" for label, found in digests(tmp_path).items())}


def test_the_frozen_setups_keep_their_documents_and_digests(tmp_path: Path) -> None:
    """Append only: a digest that no longer holds means that every stored verdict is bought again."""
    frozen = json.loads((Path(__file__).parents[1] / "golden" / "setups.json").read_text())
    digests(tmp_path)
    project = find_project(tmp_path)
    made = resolve(project, Registry.load(tmp_path, None), load_evaluation(project, "one"))
    by_label = {setup.label: setup for setup in made.setups}
    for vector in frozen["setups"]:
        document = setup_document(by_label[vector["label"]], VERSIONS, FILES)
        assert json.loads(json.dumps(document)) == vector["document"]
        assert digest(document) == vector["sha256"]
