"""The shape of tool, workflow and pricing files: what each field may hold, one file at a time.

What belongs here: the document models. What does not: what several files say together (``layers``), and
what a tool means to an evaluation (``evaluations``).
"""

from functools import cached_property
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from bench_pipeline.documents import (
    Bool,
    Duration,
    Float,
    Int,
    Name,
    RelativePath,
    StrictModel,
    Text,
    TextList,
)
from bench_pipeline.registry.names import EnvironmentName, Host, SafeName


def _filled(value: object) -> object:
    if value in ([], ()):
        raise PydanticCustomError("filled", "expected at least one entry, found an empty list")
    return value


# Not pydantic's min_length: that counts the entries that are right, and tells of one that is wrong twice.
FILLED = BeforeValidator(_filled)
Rate = Annotated[Float, Field(ge=0)]
ExitCode = Annotated[Int, Field(ge=0, le=255)]
Names = tuple[Name, ...]
ModelApi = Literal["chat-completions", "responses", "messages"]


class Network(StrictModel):
    """Hosts that a tool must reach while it works."""

    allow: tuple[Host, ...] = Field((), description="Host names; never a code forge.")


class Credentials(StrictModel):
    """Names of the environment variables that hold a tool's secrets; the values are never in a document."""

    env: tuple[EnvironmentName, ...] = Field((), description="Variables that must be set where a run starts.")


class Invoke(StrictModel):
    """How a tool is started: a command, or the file of recorded patches that it replays.

    Placeholders: ``{prompt}``, ``{prompt_file}``, ``{workdir}``, ``{home}``, ``{model_id}``, ``{effort}``,
    ``{handover}``, ``{files}``, and with ``model_apis`` also ``{api_url}`` and ``{api_key}``; the element
    ``{options}`` is where the arguments of options go (else last).
    """

    command: TextList = Field((), description="The arguments, run without a shell; placeholders are filled.")
    stdin: Literal["prompt", "none"] = Field(
        "none", description="What the tool reads: the prompt, or nothing."
    )
    env: dict[EnvironmentName, Text] = Field(
        default_factory=dict, description="Variables that are set; placeholders are filled."
    )
    success_exit_codes: Annotated[tuple[ExitCode, ...], FILLED] = Field(
        (0,), description="Exit codes of a tool that did its work, whatever came of it."
    )
    replay: RelativePath | None = Field(
        None,
        description="In place of a command: a path in the project with one {model}; each file is a model.",
    )


class VersionProbe(StrictModel):
    """The command that prints a tool's version."""

    command: Annotated[TextList, FILLED] = Field(description="The arguments, run without a shell.")
    pattern: Text | None = Field(
        None, description="A regular expression: its first group, else its match; none is the first line."
    )


class Usage(StrictModel):
    """How what a tool reports about its work is read."""

    format: Name = Field(description="The name of a reader.")
    files: dict[SafeName, Text] = Field(
        default_factory=dict, description="Files below HOME that the reader needs, by role."
    )


class Varies(StrictModel):
    """What of a tool's requests to its model differs between two runs of one conversation.

    A replay compares requests without it. What names a session or a user in each API, and dates, times, durations and
    UUIDs in texts are left out for every tool.
    """

    fields: TextList = Field((), description="Fields by dotted name; lists are looked through.")
    texts: TextList = Field((), description="Regular expressions for parts of texts.")


class Effect(StrictModel):
    """What choosing an option's value does.

    In ``args`` and in the values of ``env``, ``{value}`` is the chosen value.
    """

    args: TextList = Field((), description="Arguments that are added.")
    env: dict[EnvironmentName, Text] = Field(default_factory=dict, description="Variables that are set.")
    pre: TextList = Field((), description="Commands in the tree before the tool.")
    post: TextList = Field((), description="Commands in the tree after the tool.")
    require_env: tuple[EnvironmentName, ...] = Field(
        (), description="Variables that must be set to choose it."
    )
    network: Network = Field(default_factory=Network, description="Hosts that it needs.")

    @property
    def empty(self) -> bool:
        """Whether it does nothing at all."""
        given = (self.args, self.env, self.pre, self.post, self.require_env, self.network.allow)
        return not any(given)


class Option(Effect):
    """Something about a tool that an evaluation may vary: listed ``values``, or any text (``free: true``).

    The effect of a free option stands beside ``free``; that of a listed value stands with the value.
    """

    default: Text | None = Field(
        None, description="The value where an evaluation gives none; none must be given."
    )
    free: Bool = Field(False, description="Whether any text is a value.")
    values: dict[Text, Effect] = Field(default_factory=dict, description="The values and what each does.")

    def effect(self, value: str) -> Effect:
        """What ``value`` does, placeholders unfilled. Raises KeyError for a value that is not listed."""
        return self._beside if self.free else self.values[value]

    @cached_property
    def _beside(self) -> Effect:
        return Effect(
            args=self.args,
            env=self.env,
            pre=self.pre,
            post=self.post,
            require_env=self.require_env,
            network=self.network,
        )


class ToolModel(StrictModel):
    """A model that a tool can use."""

    id: Name = Field(description="What the provider calls it; pricing goes by it.")
    effort: Names = Field((), description="The efforts that it takes; none: it has no effort.")


class ToolDocument(StrictModel):
    """A file of kind Tool: a complete definition, or with ``extends: builtin`` an overlay of one shipped.

    An overlay gives models and options only; each replaces the whole entry of that name below it.
    """

    tool: SafeName | None = Field(None, description="The tool's name; else the file's.")
    extends: Literal["builtin"] | None = Field(
        None, description="Makes the file an overlay of a built-in tool."
    )
    description: Text | None = Field(None, description="For people.")
    invoke: Invoke | None = Field(None, description="How it is started; required unless it extends.")
    version: VersionProbe | None = Field(None, description="How its version is asked.")
    usage: Usage | None = Field(None, description="How what it reports is read.")
    credentials: Credentials = Field(default_factory=Credentials, description="What secrets it needs.")
    network: Network = Field(default_factory=Network, description="What it must reach.")
    model_apis: tuple[ModelApi, ...] = Field(
        (),
        description="The model APIs that it speaks, at {api_url} (http://127.0.0.1:PORT, the path after it is /v1) "
        "with the key {api_key}: real keys stay with the upstreams of config.yaml.",
    )
    varies: Varies = Field(
        default_factory=Varies, description="What of its requests a replay leaves out when it compares them."
    )
    models: dict[Name, ToolModel] = Field(default_factory=dict, description="Its models by short name.")
    options: dict[SafeName, Option] = Field(default_factory=dict, description="What evaluations may vary.")
    droppings: TextList = Field(
        (), description="Globs of files that it leaves and that are no part of its work."
    )
    delivers: Literal["tree", "patch"] = Field(
        "tree", description="What it leaves: a changed tree, or a patch."
    )
    files: tuple[RelativePath, ...] = Field(
        (), description="Files or folders of the project that it needs, seen read-only at {files}."
    )


class WorkflowStep(StrictModel):
    """One step of a workflow; what it leaves out may come from an evaluation."""

    name: SafeName = Field(description="The step's name, unique in the workflow.")
    tool: SafeName = Field(description="A tool that works in the tree; no workflow, no recorded patches.")
    model: Name | None = Field(None, description="A model of the tool.")
    effort: Name | None = Field(None, description="An effort of the model.")
    options: dict[SafeName, Text] = Field(default_factory=dict, description="Options of the tool.")
    prompt: Text | None = Field(
        None,
        description="What the tool is told, with {prompt}, {workdir}, {handover}; none: the task's prompt.",
    )
    timeout: Duration | None = Field(
        None, description="Its share of the cell's time, which it never extends."
    )


class WorkflowDocument(StrictModel):
    """A file of kind Workflow: tools that work one after another in one tree."""

    tool: SafeName | None = Field(None, description="The workflow's name; else the file's.")
    type: Literal["workflow"] = Field(description="Always workflow.")
    description: Text | None = Field(None, description="For people.")
    steps: Annotated[tuple[WorkflowStep, ...], FILLED] = Field(description="The steps in order.")


class Rates(StrictModel):
    """Prices of one model in USD per million tokens; a class that is left out has no known price."""

    input: Rate | None = Field(None, description="Input that is neither read from nor written to a cache.")
    cache_read: Rate | None = Field(None, description="Input that is read from a cache.")
    cache_write: Rate | None = Field(None, description="Input that is written to a cache.")
    output: Rate | None = Field(None, description="Output, reasoning included.")


class PricingDocument(StrictModel):
    """A file of kind Pricing: prices by the provider's model id."""

    models: dict[Name, Rates] = Field(default_factory=dict, description="Prices by the provider's model id.")
