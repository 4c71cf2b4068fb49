"""What a tool and a workflow are once every layer has had its say.

What belongs here: the effective definitions, and what of them decides a candidate. What does not: reading
files (``documents``, ``layers``) and running anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bench_pipeline.registry.documents import (
    Credentials,
    Invoke,
    ModelApi,
    Network,
    Option,
    ToolModel,
    Usage,
    Varies,
    VersionProbe,
    WorkflowStep,
)


@dataclass(frozen=True)
class ToolDefinition:
    """A tool as an evaluation may use it: its invocation, and the models and options of all layers."""

    name: str
    invoke: Invoke
    description: str | None = None
    version: VersionProbe | None = None
    usage: Usage | None = None
    credentials: Credentials = field(default_factory=Credentials)
    network: Network = field(default_factory=Network)
    model_apis: tuple[ModelApi, ...] = ()
    varies: Varies = field(default_factory=Varies)
    models: Mapping[str, ToolModel] = field(default_factory=dict)
    options: Mapping[str, Option] = field(default_factory=dict)
    droppings: tuple[str, ...] = ()
    delivers: str = "tree"
    files: tuple[str, ...] = ()

    def components(self) -> dict[str, object]:
        """What of this definition decides the candidate in every setup, as a JSON-able mapping.

        Left out are the description, the names of credentials, how the version is asked, where replayed rows are
        kept and what varies in requests, which decide nothing, and models and options: a setup adds the ones that it
        uses, so that a new model leaves old setups as they are.
        """
        return {
            "tool": self.name,
            "invoke": {
                "command": list(self.invoke.command),
                "stdin": self.invoke.stdin,
                "env": dict(self.invoke.env),
                "success_exit_codes": sorted(set(self.invoke.success_exit_codes)),
                "replay": self.invoke.replay is not None,
            },
            "usage": None
            if self.usage is None
            else {"format": self.usage.format, "files": dict(self.usage.files)},
            "network": sorted(set(self.network.allow)),
            "droppings": sorted(set(self.droppings)),
            "delivers": self.delivers,
            "files": sorted(set(self.files)),
            # Not named where there is none, so that tools without one keep the identities that they had before.
            **({"model_apis": sorted(set(self.model_apis))} if self.model_apis else {}),
        }


@dataclass(frozen=True)
class WorkflowDefinition:
    """Steps that work one after another in one tree, each by a tool of the registry."""

    name: str
    steps: tuple[WorkflowStep, ...]
    description: str | None = None

    def step(self, name: str) -> WorkflowStep | None:
        """The step of that name, or None."""
        return next((step for step in self.steps if step.name == name), None)


Definition = ToolDefinition | WorkflowDefinition
