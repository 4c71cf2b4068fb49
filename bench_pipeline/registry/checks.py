"""What is wrong with one tool or workflow file beyond the types of its fields.

What belongs here: checks of a single document, each as a field path and a sentence. What does not: what
several files say together (``layers``).
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from bench_pipeline.documents import describe, one_of
from bench_pipeline.registry import choices
from bench_pipeline.registry.definitions import Definition, ToolDefinition
from bench_pipeline.registry.documents import (
    Effect,
    Invoke,
    Option,
    ToolDocument,
    Usage,
    WorkflowDocument,
    WorkflowStep,
)
from bench_pipeline.registry.formats import USAGE_FORMATS
from bench_pipeline.registry.names import same_name
from bench_pipeline.registry.placeholders import (
    API_PLACEHOLDERS,
    COMMAND_PLACEHOLDERS,
    OPTION_PLACEHOLDERS,
    OPTIONS_ELEMENT,
    PROMPT_PLACEHOLDERS,
    placeholders,
)

Found = tuple[tuple[str | int, ...], str]
OVERLAY_FIELDS = frozenset({"tool", "extends", "description", "models", "options"})


def tool_problems(tool: ToolDocument) -> Iterator[Found]:
    """Everything wrong with a tool's file, as (field path, sentence)."""
    if tool.extends is not None:
        for field in sorted(tool.model_fields_set - OVERLAY_FIELDS):
            yield (
                (field,),
                (
                    "an overlay may not touch a built-in's invocation: with extends: builtin only models and "
                    "options may be given; a tool of your own has no extends, and a name of its own"
                ),
            )
    elif tool.invoke is None:
        yield (
            (),
            "needs invoke (how the tool is started), or extends: builtin (an overlay of a built-in tool)",
        )
    else:
        yield from _invoke_problems(tool.invoke, has_files=bool(tool.files), has_api=bool(tool.model_apis))
    yield from _pattern_problems(tool)
    if tool.usage is not None:
        yield from _usage_problems(tool.usage)
    for key, model in tool.models.items():
        for index, effort in enumerate(model.effort):
            if effort in model.effort[:index]:
                yield ("models", key, "effort", index), f"{effort} stands twice in this list"
    for name, option in tool.options.items():
        yield from _option_problems(("options", name), option)


def _invoke_problems(invoke: Invoke, *, has_files: bool, has_api: bool) -> Iterator[Found]:
    if bool(invoke.command) == (invoke.replay is not None):
        yield ("invoke",), "needs either command (arguments to run) or replay (a file of recorded patches)"
    texts: list[tuple[tuple[str | int, ...], str]] = [
        (("invoke", "command", index), text) for index, text in enumerate(invoke.command)
    ]
    texts += [(("invoke", "env", name), text) for name, text in invoke.env.items()]
    options = [field for field, text in texts if "{options}" in text]
    if options and (len(options) > 1 or invoke.command.count(OPTIONS_ELEMENT) != 1):
        yield options[0], "{options} may stand once, as an element of its own: arguments are put in its place"
    for field, text in texts:
        yield from _placeholder_problems(field, text, (*COMMAND_PLACEHOLDERS, "options"))
        if "files" in placeholders([text]) and not has_files:
            yield (
                field,
                "{files} is the folder of the project files that files: lists, and there is no files:",
            )
        if not has_api and set(placeholders([text])).intersection(API_PLACEHOLDERS):
            yield (
                field,
                "{api_url} and {api_key} lead to the API that model_apis: names, and there is no model_apis:",
            )
    if has_api and invoke.replay is not None:
        yield ("model_apis",), "is for a tool with a command; recorded patches need no model"
    if invoke.replay is not None:
        folder, _, file = invoke.replay.rpartition("/")
        if "{" in folder or placeholders([file]) != ["model"] or file.count("{model}") != 1:
            yield ("invoke", "replay"), "expected a file in the project with one {model} in its name"


def _placeholder_problems(field: tuple[str | int, ...], text: str, known: Iterable[str]) -> Iterator[Found]:
    names = list(known)
    for name in placeholders([text]):
        if name not in names:
            yield field, f"{{{name}}} is not a placeholder here; {one_of(name, names, 'placeholders')}"


def _usage_problems(usage: Usage) -> Iterator[Found]:
    known = USAGE_FORMATS.get(usage.format)
    if known is None:
        hint = one_of(usage.format, USAGE_FORMATS, "formats")
        yield ("usage", "format"), f"{describe(usage.format)} is not a format that can be read; {hint}"
        return
    for name in usage.files:
        if name not in known:
            hint = one_of(name, sorted(known), f"files of {usage.format}")
            yield ("usage", "files", name), f"{name} is not a file that {usage.format} reads; {hint}"


def _pattern_problems(tool: ToolDocument) -> Iterator[Found]:
    patterns: dict[tuple[str | int, ...], str] = {
        ("varies", "texts", index): pattern for index, pattern in enumerate(tool.varies.texts)
    }
    if tool.version is not None and tool.version.pattern is not None:
        patterns["version", "pattern"] = tool.version.pattern
    for field, pattern in patterns.items():
        try:
            re.compile(pattern)
        except re.error as error:
            yield field, f"is not a regular expression: {error}"


def _option_problems(field: tuple[str | int, ...], option: Option) -> Iterator[Found]:
    if option.free and option.values:
        yield (*field, "values"), "an option with free: true takes any text and lists no values"
    if not option.free:
        if not option.values:
            yield field, "needs values (each with what it does), or free: true for any text"
        elif option.default is not None and option.default not in option.values:
            known = one_of(option.default, option.values, "values")
            yield (*field, "default"), f"is not one of the values: {known}"
        for name in sorted(option.model_fields_set & set(Effect.model_fields)):
            yield (*field, name), "stands with a value, under values; beside default it needs free: true"
    effects = {field: option} | {(*field, "values", value): effect for value, effect in option.values.items()}
    for place, effect in effects.items():
        for index, text in enumerate(effect.args):
            yield from _placeholder_problems((*place, "args", index), text, OPTION_PLACEHOLDERS)
        for name, text in effect.env.items():
            yield from _placeholder_problems((*place, "env", name), text, OPTION_PLACEHOLDERS)


def workflow_problems(
    workflow: WorkflowDocument, tools: Mapping[str, Definition], files: Mapping[str, str]
) -> Iterator[Found]:
    """Everything wrong with a workflow's file; ``files`` names the overlay file of each tool."""
    seen: set[str] = set()
    for index, step in enumerate(workflow.steps):
        field = ("steps", index)
        if same_name(step.name) in seen:
            yield (*field, "name"), f"{step.name} names an earlier step already"
        seen.add(same_name(step.name))
        if step.prompt is not None:
            yield from _placeholder_problems((*field, "prompt"), step.prompt, PROMPT_PLACEHOLDERS)
        tool = tools.get(step.tool)
        if tool is None:
            known = one_of(step.tool, tools, "tools")
            yield (*field, "tool"), f"{step.tool} is not a known tool; {known}"
        elif not isinstance(tool, ToolDefinition):
            yield (*field, "tool"), f"{step.tool} is a workflow, and a step needs a tool"
        elif tool.invoke.replay is not None:
            yield (*field, "tool"), f"{step.tool} replays patches of whole tasks and cannot be a step"
        else:
            yield from _step_problems(field, step, tool, files[step.tool])


def _step_problems(
    field: tuple[str | int, ...], step: WorkflowStep, tool: ToolDefinition, file: str
) -> Iterator[Found]:
    model_wrong = choices.model_problem(tool, step.model, file) if step.model is not None else None
    if model_wrong:
        yield (*field, "model"), model_wrong
    if step.effort is not None and not model_wrong:
        wrong = (
            choices.any_effort_problem(tool, step.effort, file)
            if step.model is None
            else choices.effort_problem(tool, step.model, step.effort, file)
        )
        if wrong:
            yield (*field, "effort"), wrong
    for option, value in step.options.items():
        wrong = choices.option_problem(tool, option, file) or choices.value_problem(tool, option, value, file)
        if wrong:
            yield (*field, "options", option), wrong
