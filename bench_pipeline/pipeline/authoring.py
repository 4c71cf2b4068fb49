"""Writing, checking and listing evaluations, and showing tools: what needs documents only.

What belongs here: use cases that start nothing, ask no machine and open no store. What does not: how their
results look (cli) and what a run would do with an evaluation (``planning``).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_pipeline.errors import DocumentError, Problem, RefusedError, UsageError

if TYPE_CHECKING:
    from bench_pipeline.evaluations import Resolution
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.registry import Definition, Option, ToolDefinition


@dataclass(frozen=True)
class Validation:
    """What is known about one evaluation without running anything: its setups, or what is wrong with it."""

    evaluation: str
    resolution: "Resolution | None"
    problems: tuple[Problem, ...]

    @property
    def valid(self) -> bool:
        """Whether it resolves, and its labels are its own."""
        return self.resolution is not None and not self.problems

    def document(self) -> dict[str, object]:
        """As a JSON-able mapping; counts are None where the evaluation does not resolve."""
        made = self.resolution
        return {
            "evaluation": self.evaluation,
            "valid": self.valid,
            "setups": [setup.label for setup in made.setups] if made is not None else [],
            "setup_count": len(made.setups) if made is not None else None,
            "attempts": made.attempts if made is not None else None,
            "cells_per_task": made.cells_per_task if made is not None else None,
            "errors": [
                {
                    "file": problem.file,
                    "line": problem.line,
                    "field": problem.field,
                    "message": problem.message,
                }
                for problem in self.problems
            ],
        }


def validate_evaluation(bench: "Bench", name: str) -> Validation:
    """Resolve one evaluation and compare its labels with those of the project's others.

    Raises NotFoundError when there is no such evaluation; everything wrong with documents is in the result.
    """
    from bench_pipeline.evaluations import list_evaluations

    others = [other for other in list_evaluations(bench.project) if other != name]
    return _validations(bench, [name, *others])[0]


def list_evaluation_rows(bench: "Bench") -> list[dict[str, object]]:
    """``Validation.document`` of every evaluation of the project, and of files that are not read."""
    from bench_pipeline.evaluations import list_evaluations, misnamed_evaluations

    found = _validations(bench, list_evaluations(bench.project))
    misnamed = [_relative(bench, problem) for problem in misnamed_evaluations(bench.project)]
    found += [Validation(Path(item.file).name, None, (item,)) for item in misnamed]
    return [validation.document() for validation in found]


def _validations(bench: "Bench", names: Sequence[str]) -> list[Validation]:
    """Each evaluation resolved once; problems of the tools' files, which concern all of them, are told with each."""
    from bench_pipeline.evaluations import load_evaluation, resolve

    registry = None
    shared: tuple[Problem, ...] = ()
    try:
        registry = bench.registry
    except DocumentError as error:
        shared = error.problems
    made: dict[str, Resolution] = {}
    problems: dict[str, list[Problem]] = {name: list(shared) for name in names}
    for name in names:
        try:
            document = load_evaluation(bench.project, name)
            if registry is not None:
                made[name] = resolve(bench.project, registry, document)
        except DocumentError as error:
            problems[name] += error.problems
    for name, message in _shared_labels(made):
        file = str(bench.project.evaluations_dir / f"{name}.yaml")
        problems[name].append(Problem(file, None, "tools", message))
    return [
        Validation(name, made.get(name), tuple(_relative(bench, problem) for problem in problems[name]))
        for name in names
    ]


def _shared_labels(made: "Mapping[str, Resolution]") -> list[tuple[str, str]]:
    """Labels that stand for different setups in two evaluations, told with both: (evaluation, sentence)."""
    uses: dict[str, dict[str, tuple[object, ...]]] = {}
    for name, resolution in made.items():
        for setup in resolution.setups:
            uses.setdefault(setup.label, {})[name] = setup.written_key()
    wrong = (
        "the label {label} is another setup in the evaluation {other}: what differs (pre, or a step) does not show in "
        "a label; make it a value of an option"
    )
    return [
        (name, wrong.format(label=label, other=other))
        for label, digests in uses.items()
        if len(set(digests.values())) > 1
        for name in digests
        for other in digests
        if digests[name] != digests[other]
    ]


def _relative(bench: "Bench", problem: Problem) -> Problem:
    path, root = Path(problem.file), bench.project.root
    file = path.relative_to(root).as_posix() if path.is_relative_to(root) else problem.file
    return Problem(file, problem.line, problem.field, problem.message)


@dataclass(frozen=True)
class Arm:
    """A block to be written: a tool with the values that a person chose."""

    tool: str
    models: tuple[str, ...] = ()
    efforts: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


def arms_of(
    tool: "ToolDefinition", models: Sequence[str], efforts: Sequence[str], options: Mapping[str, str]
) -> list[Arm]:
    """Blocks for the models and efforts that were chosen; models that take different ones are kept apart.

    Raises UsageError for a model that takes none of the efforts.
    """
    if not models:
        return [Arm(tool.name, options=options)]
    groups: dict[tuple[str, ...], list[str]] = {}
    for model in models:
        takes = tool.models[model].effort
        chosen = tuple(effort for effort in efforts if effort in takes)
        if takes and not chosen:
            known = ", ".join(takes)
            raise UsageError(f"choosing efforts of {model}", "it takes none of those", f"efforts: {known}")
        groups.setdefault(chosen, []).append(model)
    return [Arm(tool.name, tuple(members), chosen, options) for chosen, members in groups.items()]


def evaluation_text(arms: Sequence[Arm], attempts: int) -> str:
    """An evaluation's file for these blocks."""
    lines = ["apiVersion: bench.ber.run/v1alpha1", "kind: Evaluation", f"attempts: {attempts}", "tools:"]
    for arm in arms:
        lines.append(f"  - tool: {json.dumps(arm.tool)}")
        lines += [
            f"    {name}: {_listed(values)}"
            for name, values in (("model", arm.models), ("effort", arm.efforts))
            if values
        ]
        lines += ["    options:"] if arm.options else []
        # JSON's quoted strings are YAML's, so no value can be taken for something else.
        lines += [f"      {json.dumps(name)}: {json.dumps(value)}" for name, value in arm.options.items()]
    return "\n".join(lines) + "\n"


def _listed(values: Sequence[str]) -> str:
    return json.dumps(values[0]) if len(values) == 1 else json.dumps(list(values))


def evaluation_template(bench: "Bench") -> str:
    """A commented evaluation that is valid as it stands: of recorded patches, or of a command if there are none."""
    from bench_pipeline.registry import ToolDefinition

    predictions = bench.registry.tools.get("predictions")
    models = list(predictions.models) if isinstance(predictions, ToolDefinition) else []
    first = f"  - tool: predictions\n    model: {_listed(models)}" if models else _SHELL_BLOCK
    return _TEMPLATE.replace("FIRST", first)


_SHELL_BLOCK = """\
  - tool: shell
    options:
      command: "true"                   # any command; it works in the task's tree"""

_TEMPLATE = """\
# yaml-language-server: $schema=../.bench/schemas/evaluation.schema.json
apiVersion: bench.ber.run/v1alpha1
kind: Evaluation

# How often each setup tries every task (default: defaults.attempts of config.yaml).
attempts: 1

# Each block is a tool; a list multiplies inside its block, blocks are added to one another.
# Every combination is a setup. `bench tool list` shows the tools, `bench tool show NAME` what they take.
tools:
FIRST
  # - tool: claude-code
  #   tool_version: latest              # what its version command prints
  #   model: [sonnet-5, opus-5]
  #   effort: [medium, high]
  #   options:
  #     max_turns: [10, 50]             # an option that is not listed keeps its default
  #   pre: ["pip install -e ."]         # commands before the tool, in the task's tree
  # - tool: my-workflow                 # steps: only for workflows
  #   steps:
  #     plan: {model: opus-5, effort: [medium, high], timeout: 10m}
"""


def create_evaluation(bench: "Bench", name: str, text: str) -> Path:
    """Write a new evaluation. Raises RefusedError when it is there, UsageError for an unfit name."""
    path = evaluation_path(bench, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except FileExistsError:
        raise _exists(path) from None
    return path


def evaluation_path(bench: "Bench", name: str) -> Path:
    """Where an evaluation of that name may be written. Raises as ``create_evaluation`` does."""
    from bench_pipeline.evaluations import list_evaluations
    from bench_pipeline.registry.names import name_problem, same_name

    reason = name_problem(name)
    if reason:
        raise UsageError(f"creating the evaluation {name!r}", f"its name {reason}", "choose another name")
    for known in list_evaluations(bench.project):
        if same_name(known) == same_name(name):
            raise _exists(bench.project.evaluations_dir / f"{known}.yaml")
    return bench.project.evaluations_dir / f"{name}.yaml"


def _exists(path: Path) -> RefusedError:
    return RefusedError(f"writing {path}", "it is there already and is never replaced", "choose another name")


def list_tool_rows(bench: "Bench") -> list[dict[str, object]]:
    """One row per tool and workflow: what it is, where it comes from, what it can be asked for."""
    return [_tool_row(bench, name) for name in bench.registry.tools]


def _tool_row(bench: "Bench", name: str) -> dict[str, object]:
    from bench_pipeline.registry import ToolDefinition

    tool = bench.registry.tool(name)
    is_tool = isinstance(tool, ToolDefinition)
    return {
        "tool": name,
        "kind": "tool" if is_tool else "workflow",
        "models": list(tool.models) if isinstance(tool, ToolDefinition) else [],
        "options": list(tool.options) if isinstance(tool, ToolDefinition) else [],
        "steps": [] if isinstance(tool, ToolDefinition) else [step.name for step in tool.steps],
        "origins": bench.registry.origins(name),
        "description": tool.description,
    }


def tool_document(bench: "Bench", name: str) -> dict[str, object]:
    """The effective definition of a tool or workflow, as a JSON-able mapping. Raises NotFoundError."""
    from bench_pipeline.registry import ToolDefinition

    tool: Definition = bench.registry.tool(name)
    head: dict[str, object] = {
        "tool": name,
        "kind": "tool" if isinstance(tool, ToolDefinition) else "workflow",
        "description": tool.description,
        "origins": bench.registry.origins(name),
        "overlay_file": bench.registry.overlay_file(name),
    }
    if not isinstance(tool, ToolDefinition):
        return {**head, "steps": [step.model_dump(mode="json") for step in tool.steps]}
    parts = {name: getattr(tool, name) for name in ("invoke", "version", "usage", "credentials", "network")}
    return {
        **head,
        **{name: None if part is None else part.model_dump(mode="json") for name, part in parts.items()},
        "models": {key: model.model_dump(mode="json") for key, model in tool.models.items()},
        "options": {key: _option(option) for key, option in tool.options.items()},
        "droppings": list(tool.droppings),
        "delivers": tool.delivers,
        "files": list(tool.files),
    }


def _option(option: "Option") -> dict[str, Any]:
    """An option with the effects that stand beside it only where they count: when it is free."""
    whole: dict[str, Any] = option.model_dump(mode="json")
    named = {"default": whole.pop("default"), "free": whole.pop("free"), "values": whole.pop("values")}
    return {**named, **whole} if option.free else named
