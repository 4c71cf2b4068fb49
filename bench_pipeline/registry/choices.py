"""Whether a tool has a model, an effort, an option or a value, and the sentence when it has not.

What belongs here: one question about one tool each; evaluations and workflows ask the same ones. What does
not: which combinations are asked for. Every sentence lists what is known, the nearest match, and ``file``:
the overlay that would add what is missing.
"""

from bench_pipeline.documents import describe, one_of
from bench_pipeline.registry.definitions import ToolDefinition


def model_problem(tool: ToolDefinition, model: str, file: str) -> str | None:
    """Why ``tool`` cannot be asked for this model; None when it can."""
    if model in tool.models:
        return None
    if tool.invoke.replay is not None:
        file = tool.invoke.replay.replace("{model}", model)
    elif not tool.models:
        return f"{tool.name} has no models, so none may be named; {file} would add {describe(model)}"
    known = one_of(model, tool.models, f"models of {tool.name}")
    return f"{describe(model)} is not a model of {tool.name}; {known}; {file} would add it"


def effort_problem(tool: ToolDefinition, model: str, effort: str, file: str) -> str | None:
    """Why a known model of ``tool`` does not take this effort; None when it does."""
    efforts = tool.models[model].effort
    if effort in efforts:
        return None
    if not efforts:
        return f"{model} of {tool.name} takes no effort; {file} would add {describe(effort)}"
    known = one_of(effort, efforts, f"efforts of {model}")
    return f"{model} of {tool.name} does not take the effort {describe(effort)}; {known}; {file} would add it"


def any_effort_problem(tool: ToolDefinition, effort: str, file: str) -> str | None:
    """Why no model of ``tool`` takes this effort; None when one does."""
    known = list(dict.fromkeys(effort for model in tool.models.values() for effort in model.effort))
    if effort in known:
        return None
    hint = one_of(effort, known, "efforts of its models")
    return f"no model of {tool.name} takes the effort {describe(effort)}; {hint}; {file} would add it"


def option_problem(tool: ToolDefinition, option: str, file: str) -> str | None:
    """Why ``tool`` has no such option; None when it has."""
    if option in tool.options:
        return None
    known = one_of(option, tool.options, f"options of {tool.name}")
    return f"{describe(option)} is not an option of {tool.name}; {known}; {file} would add it"


def value_problem(tool: ToolDefinition, option: str, value: str, file: str) -> str | None:
    """Why a known option of ``tool`` does not take this value; None when it does."""
    definition = tool.options[option]
    if definition.free or value in definition.values:
        return None
    known = one_of(value, definition.values, f"values of {option}")
    return f"{describe(value)} is not a value of {option} of {tool.name}; {known}; {file} would add it"
