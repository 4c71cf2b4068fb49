"""From an evaluation's file to its setups: blocks are unioned, the axes of a block multiplied.

What belongs here: the order of setups, repeats, labels that stand for two setups, and all problems at once.
What does not: cells (tasks come with a run) and versions (they are asked on the machine that runs).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from bench_pipeline.documents import Document, describe, dotted, one_of
from bench_pipeline.documents.messages import explain
from bench_pipeline.errors import DocumentError, Problem, UsageError
from bench_pipeline.evaluations.axes import MAX_SETUPS, BlockReader, Choice, named, product, report_repeats
from bench_pipeline.evaluations.documents import Block, EvaluationDocument
from bench_pipeline.evaluations.labels import setup_label
from bench_pipeline.evaluations.matching import Given, report_latest, report_misfits
from bench_pipeline.evaluations.setup import Setup
from bench_pipeline.evaluations.workflows import report_workflow, workflow_setup
from bench_pipeline.registry import Registry, ToolDefinition

if TYPE_CHECKING:
    from bench_pipeline.project import Project

# How many labels a message about repeats shows.
_SHOWN = 3


@dataclass(frozen=True)
class Resolution:
    """The setups of an evaluation in order; each tries every task ``attempts`` times."""

    evaluation: str
    setups: tuple[Setup, ...]
    attempts: int

    @property
    def cells_per_task(self) -> int:
        """How many cells one task makes."""
        return len(self.setups) * self.attempts


def resolve(project: "Project", registry: Registry, document: Document[EvaluationDocument]) -> Resolution:
    """Resolve every block. Raises DocumentError with every problem of the document."""
    problems: list[Problem] = []
    attempts = _attempts(project, document, problems)
    made: list[tuple[int, Setup]] = []
    for index in range(len(document.model.tools)):
        reader = BlockReader(document, index, problems)
        made += [(index, setup) for setup in _block_setups(reader, registry)]
    if len(made) > MAX_SETUPS:
        problems.append(document.problem(("tools",), f"gives {len(made)} setups, more than {MAX_SETUPS}"))
    else:
        problems += _repeated(document, made)
    if problems:
        raise DocumentError(problems)
    return Resolution(document.path.stem, tuple(setup for _, setup in made), attempts)


def resolve_one(
    registry: Registry, tool: str, *, model: str | None, effort: str | None, options: Mapping[str, str]
) -> Setup:
    """The setup of values that were chosen outside of an evaluation. Raises UsageError with all that is wrong."""
    given: dict[str, object] = {"model": model, "effort": effort, "options": dict(options) or None}
    tried = f"choosing {tool}"
    try:
        block = Block.model_validate({"tool": tool} | {name: value for name, value in given.items() if value})
    except ValidationError as error:
        wrong = [f"{dotted(at)} {text}" for at, text in explain(error, Block, given)]
        raise UsageError(tried, "; ".join(wrong)) from None
    problems: list[Problem] = []
    document = Document(Path(), EvaluationDocument(tools=(block,)))
    setups = list(_block_setups(BlockReader(document, 0, problems), registry))
    if problems:
        raise UsageError(tried, "; ".join(problem.message for problem in problems))
    return setups[0]


def _attempts(project: "Project", document: Document[EvaluationDocument], problems: list[Problem]) -> int:
    defaults = project.config.defaults
    attempts = defaults.attempts if document.model.attempts is None else document.model.attempts
    if attempts > defaults.max_attempts:
        message = (
            f"asks for {attempts} attempts, and defaults.max_attempts is {defaults.max_attempts}: "
            "lower it here, or raise defaults.max_attempts in config.yaml"
        )
        problems.append(document.problem(("attempts",), message))
    return attempts


def _block_setups(reader: BlockReader, registry: Registry) -> Iterator[Setup]:
    """The setups of one block in order; none when something about the block is wrong, which is reported."""
    before = len(reader.problems)
    definition = registry.tools.get(reader.block.tool)
    if definition is None:
        name = reader.block.tool
        known = one_of(name, registry.tools, "tools")
        message = f"{describe(name)} is not a tool; {known}; {registry.overlay_file(name)} would define it"
        reader.report((*reader.field, "tool"), message)
        report_repeats(reader, reader.axes())
        return
    order = () if isinstance(definition, ToolDefinition) else tuple(step.name for step in definition.steps)
    axes = reader.axes(order)
    report_repeats(reader, axes)
    if isinstance(definition, ToolDefinition):
        _report_tool(reader, registry, definition)
    else:
        report_workflow(reader, registry, definition)
    if len(reader.problems) > before:
        return
    for choice in product(reader, axes):
        if isinstance(definition, ToolDefinition):
            yield _tool_setup(reader, definition, choice)
        else:
            yield workflow_setup(reader, registry, definition, choice)


def _report_tool(reader: BlockReader, registry: Registry, tool: ToolDefinition) -> None:
    axes = reader.axes()
    for name in reader.block.steps:
        reader.report((*reader.field, "steps", name), f"{tool.name} is no workflow and has no steps")
    report_latest(tool, axes.get(("tool_version",)), reader.report)
    options = {key[1]: axis for key, axis in axes.items() if key[0] == "options"}
    given = Given(
        tool=tool,
        file=registry.overlay_file(tool.name),
        place=reader.field,
        model=axes.get(("model",)),
        effort=axes.get(("effort",)),
        options=options,
    )
    report_misfits(given, reader.report)


def _tool_setup(reader: BlockReader, tool: ToolDefinition, choice: Choice) -> Setup:
    version, model, effort = (choice.get((name,)) for name in ("tool_version", "model", "effort"))
    options: dict[str, str] = {}
    for name in sorted(tool.options):
        value = choice.get(("options", name), tool.options[name].default)
        assert value is not None
        options[name] = value
    nondefault = {name: value for name, value in options.items() if value != tool.options[name].default}
    return Setup(
        label=setup_label(
            tool.name, version=version, model=model, effort=effort, options=nondefault, steps={}
        ),
        tool=tool.name,
        tool_version=version,
        model=model,
        model_id=tool.models[model].id if model is not None else None,
        effort=effort,
        options=options,
        nondefault=nondefault,
        pre=reader.block.pre,
        definition=tool,
    )


def _repeated(document: Document[EvaluationDocument], made: list[tuple[int, Setup]]) -> Iterator[Problem]:
    """Setups that are given twice and labels that stand for two setups, by the two blocks that give them."""
    by_key: dict[tuple[object, ...], tuple[int, Setup]] = {}
    by_label: dict[str, tuple[int, tuple[object, ...]]] = {}
    repeats: dict[tuple[int, int, str], list[str]] = {}
    for index, setup in made:
        key = setup.written_key()
        first = by_key.setdefault(key, (index, setup))
        if first[1] is not setup:
            same = setup.label if setup.label == first[1].label else f"{first[1].label} as {setup.label}"
            repeats.setdefault((first[0], index, "the setup"), []).append(same)
            continue
        other = by_label.setdefault(setup.label, (index, key))
        if other[1] != key:
            repeats.setdefault((other[0], index, "the label"), []).append(setup.label)
    for (first_index, index, what), labels in repeats.items():
        listed = ", ".join(labels[:_SHOWN]) + (
            f" and {len(labels) - _SHOWN} more" if len(labels) > _SHOWN else ""
        )
        place = named(document, ("tools", first_index))
        ending = (
            f"gives {listed} again, which {place} gives: it would be paid for twice"
            if what == "the setup"
            else f"gives another setup under the label {listed}, which {place} gives: what differs "
            "(pre, or a step) does not show in a label; make it a value of an option"
        )
        yield document.problem(("tools", index), ending)
