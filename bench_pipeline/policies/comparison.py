"""A project's comparisons: ``policies/<name>.yaml``, and what such a file comes to.

What belongs here: the document kind, finding and resolving it. What does not: running it (``comparing``) and its
tables (``pipeline``).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from bench_pipeline.documents import (
    Document,
    Duration,
    Int,
    Name,
    RelativePath,
    StrictModel,
    one_of,
    read_document,
)
from bench_pipeline.errors import BenchError, DocumentError, Problem
from bench_pipeline.policies.cases import CaseSet, read_cases
from bench_pipeline.policies.comparing import MAX_BUDGET, Terms
from bench_pipeline.policies.live import LiveModel, live_config
from bench_pipeline.policies.models import Keeper, MaxTokens, Model, ModelConfig, Settings, Temperature
from bench_pipeline.policies.policy import POLICIES, PolicyName
from bench_pipeline.policies.recordings import Replay, read_recording
from bench_pipeline.providers.endpoint import read_endpoint, read_key
from bench_pipeline.registry.names import named_documents

if TYPE_CHECKING:
    from bench_pipeline.project import Project

KIND = "PolicyComparison"
_DEFAULT_TEMPERATURE = 0.0
_DEFAULT_MAX_TOKENS = 128


class PolicyComparison(StrictModel):
    """Which cases are put to which model, and what every policy gets for it."""

    cases: RelativePath = Field(description="The questions, a JSON file; a path beside this file.")
    recording: RelativePath | None = Field(
        None, description="Recorded answers, a JSON file beside this one; instead of upstream and model."
    )
    upstream: Name | None = Field(
        None, description="A name under upstreams in config.yaml: a live model's API."
    )
    model: Name | None = Field(None, description="A model of that upstream.")
    temperature: Temperature | None = Field(None, description="Of the live model; 0 when it is left out.")
    max_tokens: MaxTokens | None = Field(
        None, description="Of an answer of the live model; 128 when left out."
    )
    budget: Annotated[Int, Field(ge=0, le=MAX_BUDGET)] = Field(description="Calls that each policy may make.")
    timeout: Duration = Field(
        300.0,
        description="Time for each policy, at most policies.max_timeout of config.yaml.",
        json_schema_extra={"default": "5m"},
    )
    repeat: Annotated[Int, Field(ge=1)] = Field(
        1, description="Attempts, at most defaults.max_attempts; each starts with another policy."
    )
    policies: tuple[PolicyName, ...] = Field((), description="Only these policies; none means all.")


@dataclass(frozen=True)
class Comparison:
    """A comparison that resolves: what is asked, of which model, under which terms, how often.

    ``open_model`` reads the key of a live model, so it is called when there is something to ask; a live model hands
    its replies to the keeper.
    """

    name: str
    cases: CaseSet
    terms: Terms
    repeat: int
    config: ModelConfig
    open_model: Callable[[Keeper | None], Model]


def list_comparisons(project: "Project") -> list[str]:
    """The names of the project's comparisons, sorted, whether their files parse or not."""
    return [
        name
        for name, reason in named_documents(project.policies_dir, "the comparison").items()
        if reason is None
    ]


def load_comparisons(project: "Project", names: Iterable[str] = ()) -> tuple[list[Comparison], list[Problem]]:
    """The comparisons that resolve, all or those named, and the problems of the others."""
    files = named_documents(project.policies_dir, "the comparison")
    problems = [
        Problem(str(project.policies_dir / file), None, "", f"is not read: {reason}")
        for file, reason in files.items()
        if reason is not None
    ]
    wanted = set(names)
    found = []
    for name in (name for name, reason in files.items() if reason is None and (not wanted or name in wanted)):
        try:
            found.append(load_comparison(project, name))
        except DocumentError as error:
            problems += error.problems
    return found, problems


def load_comparison(project: "Project", name: str) -> Comparison:
    """Read one comparison with its cases and its model.

    Raises:
        DocumentError: with all problems of the document, else all of its files.
    """
    document = read_document(project.policies_dir / f"{name}.yaml", PolicyComparison, KIND)
    wrong = [document.problem((field,), text) for field, text in _contradictions(document.model, project)]
    if wrong:
        raise DocumentError(wrong)
    asked = document.model
    problems: list[Problem] = []
    try:
        cases = read_cases(_beside(document, asked.cases), project.config.policies.max_cases)
    except DocumentError as error:
        problems += error.problems
    try:
        config, open_model = _model(document, project)
    except DocumentError as error:
        problems += error.problems
    if problems:
        raise DocumentError(problems)
    chosen = tuple(policy for policy in POLICIES if not asked.policies or policy.name in asked.policies)
    return Comparison(
        name, cases, Terms(asked.budget, asked.timeout, chosen), asked.repeat, config, open_model
    )


def _beside(document: Document[PolicyComparison], path: str) -> Path:
    return document.path.parent / path


def _contradictions(asked: PolicyComparison, project: "Project") -> Iterator[tuple[str, str]]:
    """Fields that are fine alone and wrong together, or wrong in this project."""
    limits, defaults = project.config.policies, project.config.defaults
    if asked.timeout > limits.max_timeout:
        yield "timeout", f"is {asked.timeout:g}s, more than policies.max_timeout, {limits.max_timeout:g}s"
    if asked.repeat > defaults.max_attempts:
        yield "repeat", f"is {asked.repeat}, more than defaults.max_attempts, {defaults.max_attempts}"
    live = {name: getattr(asked, name) for name in ("upstream", "model", "temperature", "max_tokens")}
    if asked.recording is not None:
        for name in (name for name, value in live.items() if value is not None):
            yield name, "cannot stand beside recording, which has its own model and settings"
    elif asked.upstream is None or asked.model is None:
        yield "recording", "is missing; give it, or upstream and model"
    else:
        yield from _upstream_problems(asked.upstream, asked.model, project)


def _upstream_problems(name: str, model: str, project: "Project") -> Iterator[tuple[str, str]]:
    upstream = project.config.upstreams.get(name)
    if upstream is None:
        yield "upstream", f"is not an upstream; {one_of(name, project.config.upstreams, 'upstreams')}"
    elif upstream.models and model not in upstream.models:
        yield "model", f"is not a model of {name}; {one_of(model, upstream.models, 'its models')}"


def _model(
    document: Document[PolicyComparison], project: "Project"
) -> tuple[ModelConfig, Callable[[Keeper | None], Model]]:
    asked = document.model
    if asked.recording is not None:
        replay = Replay(read_recording(_beside(document, asked.recording)))
        return replay.config, lambda _: replay
    assert asked.upstream is not None
    assert asked.model is not None
    upstream = project.config.upstreams[asked.upstream]
    try:
        endpoint = read_endpoint(f"{upstream.base_url.rstrip('/')}/chat/completions")
    except BenchError as error:
        raise DocumentError([document.problem(("upstream",), f"{error.tried}: {error.wrong}")]) from None
    settings = Settings(
        temperature=_DEFAULT_TEMPERATURE if asked.temperature is None else asked.temperature,
        max_tokens=_DEFAULT_MAX_TOKENS if asked.max_tokens is None else asked.max_tokens,
    )
    name = asked.model

    def live(keeper: Keeper | None) -> Model:
        return LiveModel(endpoint, name, settings, read_key(upstream.key_env), upstream.concurrency, keeper)

    return live_config(endpoint, name, settings), live
