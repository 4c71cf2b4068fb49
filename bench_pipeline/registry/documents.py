"""The shape of tool, workflow and pricing files: what each field may hold, one file at a time.

What belongs here: the document models. What does not: what several files say together (``layers``), and
what a tool means to an evaluation (``evaluations``).
"""

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
Names = tuple[Name, ...]


class Network(StrictModel):
    """Hosts that a tool must reach while it works."""

    allow: tuple[Host, ...] = ()


class Credentials(StrictModel):
    """Names of the environment variables that hold a tool's secrets; the values are never in a document."""

    env: tuple[EnvironmentName, ...] = ()


class Invoke(StrictModel):
    """How a tool is started: a command, or the file of recorded patches that it replays.

    ``command`` is a list of arguments, run without a shell, in which placeholders are filled. ``replay`` is
    a path in the project with one ``{model}``; each file it matches is a model.
    """

    command: TextList = ()
    stdin: Literal["prompt", "none"] = "none"
    env: dict[EnvironmentName, Text] = Field(default_factory=dict)
    success_exit_codes: Annotated[tuple[Annotated[Int, Field(ge=0, le=255)], ...], FILLED] = (0,)
    replay: RelativePath | None = None


class VersionProbe(StrictModel):
    """The command that prints a tool's version; ``pattern`` finds it (its first group, else the match)."""

    command: Annotated[TextList, FILLED]
    pattern: Text | None = None


class Usage(StrictModel):
    """The reader for what a tool reports about its work, and the files that the reader needs."""

    format: Name
    files: dict[SafeName, Text] = Field(default_factory=dict)


class Effect(StrictModel):
    """What choosing an option's value does: arguments, environment, commands before and after, needs.

    In ``args`` and in the values of ``env``, ``{value}`` is the chosen value.
    """

    args: TextList = ()
    env: dict[EnvironmentName, Text] = Field(default_factory=dict)
    pre: TextList = ()
    post: TextList = ()
    require_env: tuple[EnvironmentName, ...] = ()
    network: Network = Network()

    @property
    def empty(self) -> bool:
        """Whether it does nothing at all."""
        return self == Effect()


class Option(Effect):
    """Something about a tool that an evaluation may vary: listed ``values``, or any text (``free: true``).

    The effect of a free option stands beside ``free``; that of a listed value stands with the value.
    Without a ``default`` every evaluation has to give a value.
    """

    default: Text | None = None
    free: Bool = False
    values: dict[Text, Effect] = Field(default_factory=dict)

    def effect(self, value: str) -> Effect:
        """What ``value`` does, placeholders unfilled. Raises KeyError for a value that is not listed."""
        if not self.free:
            return self.values[value]
        return Effect(
            args=self.args, env=self.env, pre=self.pre, post=self.post, require_env=self.require_env,
            network=self.network,
        )  # fmt: skip


class ToolModel(StrictModel):
    """A model that a tool can use: the provider's id for it, and the efforts it takes, which may be none."""

    id: Name
    effort: Names = ()


class ToolDocument(StrictModel):
    """A file of kind Tool: a complete definition, or with ``extends: builtin`` an overlay of one shipped."""

    tool: SafeName | None = None
    extends: Literal["builtin"] | None = None
    description: Text | None = None
    invoke: Invoke | None = None
    version: VersionProbe | None = None
    usage: Usage | None = None
    credentials: Credentials = Credentials()
    network: Network = Network()
    models: dict[Name, ToolModel] = Field(default_factory=dict)
    options: dict[SafeName, Option] = Field(default_factory=dict)
    droppings: TextList = ()
    delivers: Literal["tree", "patch"] = "tree"
    files: tuple[RelativePath, ...] = ()


class WorkflowStep(StrictModel):
    """One step of a workflow; what it leaves out may come from an evaluation. ``timeout`` is in seconds."""

    name: SafeName
    tool: SafeName
    model: Name | None = None
    effort: Name | None = None
    options: dict[SafeName, Text] = Field(default_factory=dict)
    prompt: Text | None = None
    timeout: Duration | None = None


class WorkflowDocument(StrictModel):
    """A file of kind Workflow: tools that work one after another in one tree."""

    tool: SafeName | None = None
    type: Literal["workflow"]
    description: Text | None = None
    steps: Annotated[tuple[WorkflowStep, ...], FILLED]


class Rates(StrictModel):
    """Prices of one model in USD per million tokens; a class that is left out has no known price."""

    input: Rate | None = None
    cache_read: Rate | None = None
    cache_write: Rate | None = None
    output: Rate | None = None


class PricingDocument(StrictModel):
    """A file of kind Pricing: prices by the provider's model id."""

    models: dict[Name, Rates] = Field(default_factory=dict)
