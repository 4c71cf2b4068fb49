"""Blocks whose tool is a workflow: which values reach which step, and the setups that come of it.

What belongs here: precedence (the block, weakest; then the workflow's file; then ``steps`` of the
evaluation), and what a block says that no step takes. What does not: blocks of a single tool
(``resolving``).
"""

from collections.abc import Mapping

from bench_pipeline.documents import one_of
from bench_pipeline.evaluations.axes import Axis, AxisKey, BlockReader, Choice
from bench_pipeline.evaluations.documents import StepChoice
from bench_pipeline.evaluations.labels import setup_label
from bench_pipeline.evaluations.matching import Given, report_latest, report_misfits
from bench_pipeline.evaluations.setup import Setup, StepSetup, seconds_text
from bench_pipeline.registry import Registry, ToolDefinition, WorkflowDefinition, WorkflowStep, choices


def step_tool(registry: Registry, step: WorkflowStep) -> ToolDefinition:
    """The tool of a step; the registry refuses workflows whose steps have none."""
    tool = registry.tools[step.tool]
    assert isinstance(tool, ToolDefinition)
    return tool


def report_workflow(reader: BlockReader, registry: Registry, workflow: WorkflowDefinition) -> None:
    """Report everything in a block that does not fit its workflow."""
    block = reader.block
    names = [step.name for step in workflow.steps]
    for name in block.steps:
        if name not in names:
            reader.report(
                (*reader.field, "steps", name), f"{name} is not a step; {one_of(name, names, 'steps')}"
            )
    _report_version(reader, registry, workflow)
    axes = reader.axes()
    taken: set[AxisKey] = set()
    for step in workflow.steps:
        tool = step_tool(registry, step)
        given = _given(reader, axes, step, tool, registry.overlay_file(step.tool))
        report_misfits(given, reader.report)
        taken |= _taken(given)
    for key, axis in axes.items():
        if key[0] in {"model", "effort", "options"} and key not in taken:
            _report_untaken(reader, registry, workflow, key, axis)


def _given(
    reader: BlockReader, axes: Mapping[AxisKey, Axis], step: WorkflowStep, tool: ToolDefinition, file: str
) -> Given:
    """What a step is given, each from the strongest place that says something about it."""
    where = (*reader.field, "steps", step.name) if step.name in reader.block.steps else reader.field

    def strongest(key: AxisKey, fixed: str | None, takes: bool) -> Axis | None:
        shared = axes.get(key)
        if fixed is not None:
            shared = Axis((fixed,), where, fixed=True)
        elif shared is not None:
            shared = Axis(shared.values, shared.field, shared=True) if takes else None
        return axes.get(("steps", step.name, *key), shared)

    mine = reader.block.steps.get(step.name, StepChoice()).options
    named = [*mine, *step.options, *(name for name in reader.block.options if name in tool.options)]
    options = {
        name: strongest(("options", name), step.options.get(name), name in tool.options) for name in named
    }
    return Given(
        tool=tool,
        file=file,
        place=where,
        model=strongest(("model",), step.model, bool(tool.models)),
        effort=strongest(("effort",), step.effort, bool(tool.models)),
        options={name: axis for name, axis in options.items() if axis is not None},
        who=f"step {step.name}",
    )


def _taken(given: Given) -> set[AxisKey]:
    """Which of the block's own axes reach this step."""
    taken: set[AxisKey] = {("options", name) for name, axis in given.options.items() if axis.shared}
    if given.model is not None and given.model.shared:
        taken.add(("model",))
    if given.effort is not None and given.effort.shared:
        models = given.model.values if given.model is not None else ()
        known = [given.tool.models[model] for model in models if model in given.tool.models]
        # With an unknown model nobody can say; that model is the problem to tell.
        if not known or any(model.effort for model in known):
            taken.add(("effort",))
    return taken


def _report_untaken(
    reader: BlockReader, registry: Registry, workflow: WorkflowDefinition, key: AxisKey, axis: Axis
) -> None:
    """Report a value of the block that no step could take, and a list that would only multiply equal setups.

    A single value that every step overrides is the weakest of three and stands.
    """
    wrong = [
        _why_unknown(step_tool(registry, step), key, value, registry.overlay_file(step.tool))
        for step in workflow.steps
        for value in axis.values
    ]
    if None not in wrong:
        reader.report(axis.field, str(wrong[0]))
    elif len(axis.values) > 1:
        reader.report(axis.field, f"no step of {workflow.name} takes it: each has its own, or takes none")


def _why_unknown(tool: ToolDefinition, key: AxisKey, value: str, file: str) -> str | None:
    if key[0] == "model":
        return choices.model_problem(tool, value, file)
    if key[0] == "effort":
        return choices.any_effort_problem(tool, value, file)
    return choices.option_problem(tool, key[1], file) or choices.value_problem(tool, key[1], value, file)


def _report_version(reader: BlockReader, registry: Registry, workflow: WorkflowDefinition) -> None:
    versions = reader.axis("tool_version")
    tools = list(dict.fromkeys(step.tool for step in workflow.steps))
    if versions is not None and len(tools) > 1:
        message = f"cannot be one for several tools: the steps of {workflow.name} use {', '.join(tools)}"
        reader.report(versions.field, message)
    else:
        report_latest(step_tool(registry, workflow.steps[0]), versions, reader.report)


def workflow_setup(
    reader: BlockReader, registry: Registry, workflow: WorkflowDefinition, choice: Choice
) -> Setup:
    """The setup of one combination of values."""
    steps = tuple(_step_setup(reader, step_tool(registry, step), step, choice) for step in workflow.steps)
    options = {key[1]: value for key, value in sorted(choice.items()) if key[0] == "options"}
    changes: dict[str, str] = {}
    for step, made in zip(workflow.steps, steps, strict=True):
        changes |= _changes(reader, step, made, choice)
    version, model, effort = (choice.get((name,)) for name in ("tool_version", "model", "effort"))
    return Setup(
        label=setup_label(
            workflow.name, version=version, model=model, effort=effort, options=options, steps=changes
        ),
        tool=workflow.name,
        tool_version=version,
        model=model,
        model_id=None,
        effort=effort,
        options=options,
        nondefault=options,
        pre=reader.block.pre,
        definition=workflow,
        steps=steps,
        step_changes=changes,
    )


def _step_setup(reader: BlockReader, tool: ToolDefinition, step: WorkflowStep, choice: Choice) -> StepSetup:
    def strongest(key: AxisKey, fixed: str | None, shared: str | None) -> str | None:
        return choice.get(("steps", step.name, *key), fixed if fixed is not None else shared)

    model = strongest(("model",), step.model, choice.get(("model",)) if tool.models else None)
    takes_effort = model is not None and bool(tool.models[model].effort)
    effort = strongest(("effort",), step.effort, choice.get(("effort",)) if takes_effort else None)
    options: dict[str, str] = {}
    for name in sorted(tool.options):
        shared = choice.get(("options", name), tool.options[name].default)
        value = strongest(("options", name), step.options.get(name), shared)
        assert value is not None
        options[name] = value
    said = reader.block.steps.get(step.name)
    return StepSetup(
        name=step.name,
        definition=tool,
        tool=tool.name,
        tool_version=choice.get(("tool_version",)),
        model=model,
        model_id=tool.models[model].id if model is not None else None,
        effort=effort,
        options=options,
        prompt=step.prompt,
        timeout_s=said.timeout if said is not None and said.timeout is not None else step.timeout,
    )


def _changes(reader: BlockReader, step: WorkflowStep, made: StepSetup, choice: Choice) -> dict[str, str]:
    """What the evaluation says about a step that would otherwise be something else, as ``step.field``."""
    plain = _step_setup(
        reader, made.definition, step, {key: value for key, value in choice.items() if key[0] != "steps"}
    )
    changes: dict[str, str] = {}
    for name, value, otherwise in (
        ("model", made.model, plain.model),
        ("effort", made.effort, plain.effort),
        *((f"options.{name}", made.options[name], plain.options[name]) for name in made.options),
    ):
        if value is not None and value != otherwise:
            changes[f"{step.name}.{name}"] = value
    if made.timeout_s is not None and made.timeout_s != step.timeout:
        changes[f"{step.name}.timeout"] = seconds_text(made.timeout_s)
    return changes
