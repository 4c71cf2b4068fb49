"""A setup: one resolved combination of tool, version, model, effort, options and step values.

What belongs here: the values of a setup, and what of them decides the candidates that it makes. What does
not: how they are found in documents (``resolving``) and how a command is made of them (execution).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bench_pipeline.identity import digest
from bench_pipeline.registry import Definition, Effect, ToolDefinition


@dataclass(frozen=True)
class StepSetup:
    """One use of a tool: a step of a workflow, or another setup as a whole (without name, prompt).

    ``options`` has every option of the tool, defaults included, sorted by name; ``timeout_s`` is in seconds.
    """

    name: str
    definition: ToolDefinition
    tool: str
    tool_version: str | None
    model: str | None
    model_id: str | None
    effort: str | None
    options: Mapping[str, str]
    prompt: str | None = None
    timeout_s: float | None = None

    def effects(self) -> dict[str, Effect]:
        """What each chosen option value does, by option, sorted by name."""
        return {name: self.definition.options[name].effect(value) for name, value in self.options.items()}

    def components(self) -> dict[str, object]:
        """What decides what this use of a tool does, as a JSON-able mapping; the version is not in it.

        An option at a default that does nothing is left out: it may be added to a tool without a new setup.
        """
        effects = self.effects()
        return {
            "definition": self.definition.components(),
            "model_id": self.model_id,
            "effort": self.effort,
            "options": {
                name: {"value": value, **_effect_components(effects[name])}
                for name, value in self.options.items()
                if value != self.definition.options[name].default or not effects[name].empty
            },
        }


def _effect_components(effect: Effect) -> dict[str, object]:
    return {
        "args": list(effect.args),
        "env": dict(effect.env),
        "pre": list(effect.pre),
        "post": list(effect.post),
        "network": sorted(set(effect.network.allow)),
    }


@dataclass(frozen=True)
class Setup:
    """One arm of an evaluation.

    ``options`` are all options with their values, ``nondefault`` those that are not at their default. Of a
    workflow, ``model``, ``effort`` and ``options`` are what its block gives to the steps, ``steps`` what
    each step ended up with, and ``step_changes`` what the evaluation says about steps that the workflow
    does not.
    """

    label: str
    tool: str
    tool_version: str | None
    model: str | None
    model_id: str | None
    effort: str | None
    options: Mapping[str, str]
    nondefault: Mapping[str, str]
    pre: tuple[str, ...]
    definition: Definition
    steps: tuple[StepSetup, ...] = ()
    step_changes: Mapping[str, str] = field(default_factory=dict)

    def leaves(self) -> tuple[StepSetup, ...]:
        """The uses of tools in the order in which they run: a workflow's steps, or the one of any other."""
        if not isinstance(self.definition, ToolDefinition):
            return self.steps
        whole = StepSetup(
            name="",
            definition=self.definition,
            tool=self.tool,
            tool_version=self.tool_version,
            model=self.model,
            model_id=self.model_id,
            effort=self.effort,
            options=self.options,
        )
        return (whole,)

    def tools(self) -> tuple[tuple[ToolDefinition, str | None], ...]:
        """Each tool that runs, once, with the version that is asked for (None: whatever is there)."""
        used = {leaf.tool: (leaf.definition, leaf.tool_version) for leaf in self.leaves()}
        return tuple(used.values())

    def all_pre(self) -> tuple[str, ...]:
        """The commands that prepare the tree: those of the chosen options, then the block's; each once."""
        chosen = [
            command for leaf in self.leaves() for effect in leaf.effects().values() for command in effect.pre
        ]
        return tuple(dict.fromkeys([*chosen, *self.pre]))

    @property
    def step_values(self) -> dict[str, str]:
        """What each step of a workflow ended up with, as ``step.field``: model, effort, options, timeout."""
        values: dict[str, str] = {}
        for step in self.steps:
            named = {"model": step.model, "effort": step.effort}
            named |= {f"options.{name}": value for name, value in step.options.items()}
            named["timeout"] = None if step.timeout_s is None else seconds_text(step.timeout_s)
            values |= {f"{step.name}.{name}": value for name, value in named.items() if value is not None}
        return values

    def components(self) -> dict[str, object]:
        """What decides the candidates of this setup, as far as documents say it, as a JSON-able mapping.

        Not in it: labels and names of models (their ids are), descriptions, prices, credentials; and not the
        order in which a document lists options.
        """
        if isinstance(self.definition, ToolDefinition):
            return {"pre": list(self.pre), **self.leaves()[0].components()}
        steps = [
            {"name": step.name, "prompt": step.prompt, "timeout_s": step.timeout_s, **step.components()}
            for step in self.steps
        ]
        return {"pre": list(self.pre), "workflow": self.definition.name, "steps": steps}

    def written_key(self) -> tuple[object, ...]:
        """What tells this setup from others of one registry, as documents say it; equal where components are.

        ``setup_digest`` also knows the versions that are there, and registries apart.
        """
        uses = [
            (
                leaf.name,
                leaf.tool,
                leaf.model_id,
                leaf.effort,
                tuple(leaf.options.items()),
                leaf.prompt,
                leaf.timeout_s,
            )
            for leaf in self.leaves()
        ]
        return (self.definition.name, self.tool_version, self.pre, *uses)


def seconds_text(seconds: float) -> str:
    """A duration as a document would write it: ``90s``, ``0.5s``."""
    return f"{seconds:.9f}".rstrip("0").rstrip(".") + "s"


def setup_document(
    setup: Setup, resolved_versions: Mapping[str, str | None], file_digests: Mapping[str, str]
) -> dict[str, object]:
    """The component document of a setup on one machine.

    ``resolved_versions`` has the version of every tool that runs, by the tool's name, and may say more about
    what the tools need; ``file_digests`` has the digest of the project files of every tool that names some.
    Raises KeyError for a tool that is missing in either.
    """
    for tool, _ in setup.tools():
        if tool.name not in resolved_versions:
            raise KeyError(f"no resolved version of {tool.name}")
        if tool.files and tool.name not in file_digests:
            raise KeyError(f"no digest of the files of {tool.name}")
    return {**setup.components(), "versions": dict(resolved_versions), "files": dict(file_digests)}


def setup_digest(
    setup: Setup, resolved_versions: Mapping[str, str | None], file_digests: Mapping[str, str]
) -> str:
    """SHA-256, in hex, of ``setup_document``."""
    return digest(setup_document(setup, resolved_versions, file_digests))
