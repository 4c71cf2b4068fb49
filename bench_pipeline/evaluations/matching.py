"""Whether the values of axes fit a tool: every model, effort and option, and every pair of model and effort.

What belongs here: one tool and the values it is given, from whatever places. What does not: which axes
reach which step of a workflow (``workflows``).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bench_pipeline.evaluations.axes import Axis, Field, Report
from bench_pipeline.registry import ToolDefinition, choices


@dataclass(frozen=True)
class Given:
    """What one use of a tool is given.

    ``place`` is where something that is missing should stand, ``file`` the overlay of the tool, ``who`` the
    step that uses the tool, if it is one.
    """

    tool: ToolDefinition
    file: str
    place: Field
    model: Axis | None = None
    effort: Axis | None = None
    options: Mapping[str, Axis] = field(default_factory=dict)
    who: str = ""


def report_misfits(given: Given, report: Report) -> None:
    """Report everything that the tool does not know or take, and what it needs and is not given."""

    def report_for(place: Field, message: str) -> None:
        report(place, f"{given.who}: {message}" if given.who else message)

    known = _known_models(given, report_for)
    if given.effort is not None:
        _report_efforts(given, given.effort, known, report_for)
    else:
        _report_missing_effort(given, known, report_for)
    _report_options(given, report_for)


def report_latest(tool: ToolDefinition, versions: Axis | None, report: Report) -> None:
    """Report ``latest`` where nothing can say what it is; any other version is what the evaluation declares."""
    for version, place in versions.places() if versions is not None and tool.version is None else ():
        if version == "latest":
            report(
                place,
                f"{tool.name} has no version command that could say what latest is: name a version, or none",
            )


def _known_models(given: Given, report: Report) -> dict[str, Field]:
    """The given models that are known, with their places; others, and a lack of any, are reported."""
    tool = given.tool
    if given.model is None:
        if tool.models or tool.invoke.replay is not None:
            adding = (tool.invoke.replay or given.file).replace("{model}", "NAME")
            listed = ", ".join(tool.models) or "none"
            report(given.place, f"needs a model; models of {tool.name}: {listed}; {adding} would add one")
        return {}
    known: dict[str, Field] = {}
    for model, place in given.model.places():
        wrong = choices.model_problem(tool, model, given.file)
        if wrong is None:
            known[model] = place
        elif not given.model.fixed:
            report(place, wrong)
    return known


def _report_missing_effort(given: Given, known: Mapping[str, Field], report: Report) -> None:
    takes = [
        f"efforts of {model}: {', '.join(given.tool.models[model].effort)}"
        for model in known
        if given.tool.models[model].effort
    ]
    if takes:
        report(given.place, f"needs an effort; {'; '.join(takes)}")


def _report_efforts(given: Given, efforts: Axis, known: Mapping[str, Field], report: Report) -> None:
    """Report each effort that a given model does not take, at the effort unless that is fixed."""
    tool = given.tool
    for effort, effort_place in efforts.places():
        if not known and not efforts.fixed and not (efforts.shared and not tool.models):
            wrong = choices.any_effort_problem(tool, effort, given.file)
            if wrong:
                report(effort_place, wrong)
        for model, model_place in known.items():
            wrong = choices.effort_problem(tool, model, effort, given.file)
            needless = efforts.shared and not tool.models[model].effort
            if wrong is None or needless or (efforts.fixed and given.model is not None and given.model.fixed):
                continue
            if any(effort in tool.models[other].effort for other in known):
                wrong += "; models that take different efforts go into blocks of their own"
            report(model_place if efforts.fixed else effort_place, wrong)


def _report_options(given: Given, report: Report) -> None:
    tool, options = given.tool, given.options
    for name, axis in options.items():
        wrong = choices.option_problem(tool, name, given.file)
        if wrong is not None:
            report(axis.field, wrong)
            continue
        for value, place in axis.places():
            wrong = choices.value_problem(tool, name, value, given.file)
            if wrong is not None:
                report(place, wrong)
    for name, option in tool.options.items():
        if option.default is None and name not in options:
            values = ", ".join(option.values) or "any text"
            report(given.place, f"needs the option {name}, which has no default; values: {values}")
