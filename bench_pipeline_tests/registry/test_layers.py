"""Built-in, user-level and project files laid over one another."""

from pathlib import Path

import pytest

from bench_pipeline.errors import DocumentError, NotFoundError
from bench_pipeline.registry import Registry, ToolDefinition, layers

HEAD = "apiVersion: bench.ber.run/v1alpha1\n"
AGENT = """\
kind: Tool
description: An agent that is shipped.
invoke: {command: [agent, --model, "{model_id}", "{prompt}"], success_exit_codes: [0, 3]}
version: {command: [agent, --version], pattern: '(\\S+)$'}
models:
  small: {id: vendor-small-1, effort: [low, high]}
  large: {id: vendor-large-1, effort: [high]}
options:
  turns: {default: "50", values: {"10": {args: [--turns, "{value}"]}, "50": {args: [--turns, "{value}"]}}}
  notes: {default: with, values: {with: {}, without: {pre: [rm -f NOTES.md]}}}
"""


@pytest.fixture
def builtin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of built-in tools with one agent in it."""
    folder = tmp_path / "builtin"
    folder.mkdir()
    (folder / "agent.yaml").write_text(HEAD + AGENT)
    monkeypatch.setattr(layers, "BUILTIN_DIR", folder)
    layers._builtin_sources.cache_clear()
    yield folder
    layers._builtin_sources.cache_clear()


def write_tool(root: Path, file: str, body: str) -> Path:
    path = root / "tools" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + body)
    return path


def problems_of(project: Path | None, user: Path | None = None) -> str:
    with pytest.raises(DocumentError) as caught:
        Registry.load(project, user)
    return "\n".join(str(problem) for problem in caught.value.problems)


def tool_of(registry: Registry, name: str) -> ToolDefinition:
    found = registry.tool(name)
    assert isinstance(found, ToolDefinition)
    return found


def test_the_shipped_tools_load_without_a_project_and_without_a_user() -> None:
    registry = Registry.load(None, None)
    assert {"predictions", "shell"} <= set(registry.tools)
    assert registry.origins("shell") == ["built-in"]
    assert tool_of(registry, "shell").options["command"].free


def test_layers_merge_per_model_and_per_option_and_a_key_replaces_the_whole_lower_entry(
    builtin: Path, tmp_path: Path
) -> None:
    user, project = tmp_path / "user", tmp_path / "project"
    write_tool(
        user,
        "agent.yaml",
        "kind: Tool\nextends: builtin\n"
        "models: {small: {id: user-small}, tiny: {id: user-tiny}}\n"
        "options: {turns: {default: '5', values: {'5': {}}}}\n",
    )
    write_tool(
        project,
        "mine.yaml",
        "kind: Tool\ntool: agent\nextends: builtin\nmodels: {tiny: {id: project-tiny, effort: [max]}}\n",
    )
    registry = Registry.load(project, user)
    agent = tool_of(registry, "agent")
    assert {key: model.id for key, model in agent.models.items()} == {
        "small": "user-small",
        "large": "vendor-large-1",
        "tiny": "project-tiny",
    }
    assert agent.models["small"].effort == (), "a replaced model keeps nothing of the one below"
    assert agent.models["tiny"].effort == ("max",)
    assert list(agent.options["turns"].values) == ["5"]
    assert list(agent.options["notes"].values) == ["with", "without"]
    assert agent.invoke.success_exit_codes == (0, 3)
    assert [origin.split()[0] for origin in registry.origins("agent")] == [
        "built-in",
        "user-level",
        "project",
    ]
    assert registry.overlay_file("agent") == "tools/mine.yaml"


def test_the_overlay_file_of_an_untouched_built_in_is_the_project_s(builtin: Path, tmp_path: Path) -> None:
    assert Registry.load(tmp_path / "project", None).overlay_file("agent") == "tools/agent.yaml"


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("invoke", "invoke: {command: [other]}"),
        ("version", "version: {command: [other]}"),
        ("usage", "usage: {format: none}"),
        ("credentials", "credentials: {env: [KEY]}"),
        ("network", "network: {allow: [api.example.com]}"),
        ("droppings", "droppings: [x]"),
        ("delivers", "delivers: patch"),
        ("files", "files: [x]"),
    ],
)
def test_an_overlay_may_not_touch_the_invocation_of_a_built_in(
    builtin: Path, tmp_path: Path, field: str, text: str
) -> None:
    path = write_tool(tmp_path, "agent.yaml", f"kind: Tool\nextends: builtin\n{text}\n")
    assert f"{path}:4: {field}: an overlay may not touch a built-in's invocation" in problems_of(tmp_path)


def test_an_overlay_of_something_that_is_not_built_in_names_the_nearest_built_in(
    builtin: Path, tmp_path: Path
) -> None:
    write_tool(tmp_path, "agnet.yaml", "kind: Tool\nextends: builtin\n")
    assert (
        "agnet is not built in, so it cannot be extended; did you mean agent? built-in tools: agent"
        in problems_of(tmp_path)
    )


def test_a_whole_definition_may_not_take_the_name_of_a_built_in(builtin: Path, tmp_path: Path) -> None:
    write_tool(tmp_path, "agent.yaml", "kind: Tool\ninvoke: {command: [x]}\n")
    assert "agent is built in: add extends: builtin for an overlay, or choose another name" in problems_of(
        tmp_path
    )
    write_tool(tmp_path, "agent.yaml", "kind: Workflow\ntype: workflow\nsteps: [{name: a, tool: agent}]\n")
    assert "agent is built in" in problems_of(tmp_path)


def test_a_project_s_own_tool_replaces_a_user_s_of_that_name_whole(builtin: Path, tmp_path: Path) -> None:
    user, project = tmp_path / "user", tmp_path / "project"
    write_tool(user, "own.yaml", "kind: Tool\ninvoke: {command: [below]}\nmodels: {a: {id: a}}\n")
    assert Registry.load(project, user).overlay_file("own").endswith("user/tools/own.yaml")
    write_tool(project, "own.yaml", "kind: Tool\ninvoke: {command: [above]}\n")
    registry = Registry.load(project, user)
    assert tool_of(registry, "own").invoke.command == ("above",)
    assert tool_of(registry, "own").models == {}
    assert registry.origins("own") == ["project tools/own.yaml"]


def test_two_files_of_one_layer_that_define_one_tool_are_refused_naming_both(
    builtin: Path, tmp_path: Path
) -> None:
    first = write_tool(tmp_path, "a.yaml", "kind: Tool\ntool: own\ninvoke: {command: [x]}\n")
    second = write_tool(tmp_path, "b.yaml", "kind: Tool\ntool: own\ninvoke: {command: [x]}\n")
    found = problems_of(tmp_path)
    assert found.startswith(str(second))
    assert str(first) in found


@pytest.mark.parametrize("layer", ["same", "other"])
def test_names_that_differ_in_letter_case_only_are_refused(builtin: Path, tmp_path: Path, layer: str) -> None:
    user, project = tmp_path / "user", tmp_path / "project"
    write_tool(project, "Own.yaml", "kind: Tool\ninvoke: {command: [x]}\n")
    write_tool(project if layer == "same" else user, "own.yaml", "kind: Tool\ninvoke: {command: [x]}\n")
    found = problems_of(project, user)
    assert "Own" in found
    assert "own" in found
    (project / "tools" / "Own.yaml").unlink()
    write_tool(project, "AGENT.yaml", "kind: Tool\ninvoke: {command: [x]}\n")
    assert "AGENT and agent differ in letter case only" in problems_of(project, None)


@pytest.mark.parametrize("name", ["é", "-x", "a b", "x..y", "x.", "../x", "a/b", "x" * 201, ""])
def test_a_tool_s_name_must_be_fit_for_a_file(builtin: Path, tmp_path: Path, name: str) -> None:
    write_tool(tmp_path, "x.yaml", f"kind: Tool\ntool: '{name}'\ninvoke: {{command: [x]}}\n")
    assert ":3: tool: " in problems_of(tmp_path)


def test_a_file_s_name_is_the_tool_s_and_must_be_fit_for_one(builtin: Path, tmp_path: Path) -> None:
    write_tool(tmp_path, "my tool.yaml", "kind: Tool\ninvoke: {command: [x]}\n")
    assert "the file's name is the tool's, and 'my tool' may hold" in problems_of(tmp_path)


def test_a_file_that_would_be_overlooked_is_reported(builtin: Path, tmp_path: Path) -> None:
    write_tool(tmp_path, "own.yml", "kind: Tool\ninvoke: {command: [x]}\n")
    assert "is not read: documents end in .yaml; name it own.yaml" in problems_of(tmp_path)


def test_editors_hidden_files_and_other_files_are_left_alone(builtin: Path, tmp_path: Path) -> None:
    write_tool(tmp_path, ".own.yaml.swp", "not yaml: [")
    write_tool(tmp_path, ".own.yaml", "not yaml: [")
    write_tool(tmp_path, "README.md", "words")
    assert list(Registry.load(tmp_path, None).tools) == ["agent"]


def test_every_problem_of_every_file_is_told_at_once(builtin: Path, tmp_path: Path) -> None:
    user, project = tmp_path / "user", tmp_path / "project"
    write_tool(user, "one.yaml", "kind: Tool\ninvoke: {command: [x]}\nmodel: {}\nextend: builtin\n")
    write_tool(project, "two.yaml", "kind: Tool\n")
    write_tool(project, "three.yaml", "kind: Task\n")
    found = problems_of(project, user)
    assert found.count("one.yaml") == 2
    assert "needs invoke" in found
    assert "expected Tool or Workflow, found Task" in found


def test_an_unknown_tool_is_reported_with_the_nearest_and_all_known_ones(builtin: Path) -> None:
    registry = Registry.load(None, None)
    with pytest.raises(NotFoundError, match="did you mean agent"):
        registry.tool("agnet")


def test_the_models_of_a_replaying_tool_are_the_files_that_it_can_replay(tmp_path: Path) -> None:
    folder = tmp_path / "predictions"
    folder.mkdir()
    for name in ("gold.jsonl", "Gold.jsonl", "a,b.jsonl", ".hidden.jsonl", ".jsonl", "notes.txt"):
        (folder / name).write_text("")
    (folder / "folder.jsonl").mkdir()
    models = tool_of(Registry.load(tmp_path, None), "predictions").models
    assert {key: model.id for key, model in models.items()} == {"Gold": "Gold", "a,b": "a,b", "gold": "gold"}


def test_a_replayed_file_whose_name_is_no_model_s_is_reported(tmp_path: Path) -> None:
    (tmp_path / "predictions").mkdir()
    (tmp_path / "predictions" / "two\nlines.jsonl").write_text("")
    assert "the file's name is a model's, and expected a name" in problems_of(tmp_path)


def test_a_model_that_an_overlay_gives_a_replaying_tool_stands_over_the_found_one(tmp_path: Path) -> None:
    (tmp_path / "predictions").mkdir()
    (tmp_path / "predictions" / "gold.jsonl").write_text("")
    write_tool(tmp_path, "predictions.yaml", "kind: Tool\nextends: builtin\nmodels: {gold: {id: vendor-1}}\n")
    assert tool_of(Registry.load(tmp_path, None), "predictions").models["gold"].id == "vendor-1"
