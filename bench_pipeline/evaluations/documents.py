"""The shape of an evaluation file.

What belongs here: its fields. What does not: which tools, models and options there are (``resolving`` asks
the registry). An evaluation never selects tasks and never says how many cells run at once: a run does.
"""

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from bench_pipeline.documents import Duration, Int, Name, StrictModel, TextList, TextOrList
from bench_pipeline.registry.documents import FILLED

_SCALAR = {"type": ["string", "number", "boolean"]}
_WRITTEN = WithJsonSchema({"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR, "minItems": 1}]})


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


# One name or a list of them; an empty tuple stands for a field that is not there.
Names = Annotated[tuple[Name, ...], FILLED, BeforeValidator(_as_list), _WRITTEN]
Values = Annotated[TextOrList, FILLED, _WRITTEN]


class StepChoice(StrictModel):
    """What an evaluation says about one step of a workflow."""

    model: Names = Field((), description="A model of the step's tool, or a list.")
    effort: Names = Field((), description="An effort, or a list.")
    options: dict[Name, Values] = Field(default_factory=dict, description="Options, each a value or a list.")
    timeout: Duration | None = Field(None, description="The step's time; it never multiplies.")


class Block(StrictModel):
    """One tool with an axis for each version, model, effort, option and step value that is a list."""

    tool: Name = Field(description="A tool or workflow.")
    tool_version: Names = Field(
        (), description="A version, or a list; latest is what the tool's command prints."
    )
    model: Names = Field((), description="A model of the tool, or a list.")
    effort: Names = Field((), description="An effort that every model of the block takes, or a list.")
    options: dict[Name, Values] = Field(default_factory=dict, description="Options, each a value or a list.")
    pre: TextList = Field((), description="Commands in the tree before the tool; they never multiply.")
    steps: dict[Name, StepChoice] = Field(default_factory=dict, description="For workflows: values by step.")


class EvaluationDocument(StrictModel):
    """A file of kind Evaluation: the setups to compare, and how often each tries every task."""

    attempts: Annotated[Int, Field(ge=1)] | None = Field(
        None, description="How often each setup tries every task; else defaults.attempts of config.yaml."
    )
    tools: Annotated[tuple[Block, ...], FILLED] = Field(description="The blocks; their setups are added.")
