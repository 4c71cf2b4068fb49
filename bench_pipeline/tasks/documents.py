"""The shape of ``task.yaml``: every field of kind Task, as written.

What belongs here: the document models and what a field alone can get wrong. What does not: the files beside
the document (``loading``) and the task as the other parts use it (``task``).
"""

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from bench_pipeline.documents import (
    Bool,
    Commit,
    Duration,
    Float,
    Name,
    RelativePath,
    StrictModel,
    Text,
    TextList,
)
from bench_pipeline.documents.fields import as_text
from bench_pipeline.tasks.paths import path_problem

Tier = Literal["smoke", "standard", "stretch", "adversarial"]
TIERS: tuple[Tier, ...] = ("smoke", "standard", "stretch", "adversarial")


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("expected a command, found nothing")
    return text


def _inside_tree(pattern: str) -> str:
    problem = path_problem(pattern.removesuffix("/"))
    if problem:
        raise ValueError(f"expected a path or a glob inside the task's tree, found {problem}")
    return pattern


def _as_moment(value: object) -> datetime:
    if isinstance(value, datetime):
        return value
    text = as_text(value)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"expected a date and time such as 2025-01-31T12:00:00Z, found {text[:80]!r}"
        ) from None
    if moment.tzinfo is None:
        raise ValueError("expected a date and time with its time zone, such as 2025-01-31T12:00:00Z")
    return moment.astimezone(UTC)


CommandLine = Annotated[Text, AfterValidator(_not_blank)]
CommandLines = tuple[CommandLine, ...]
Pattern = Annotated[Name, AfterValidator(_inside_tree)]
Moment = Annotated[datetime, BeforeValidator(_as_moment)]
Seconds = Annotated[Float, Field(ge=0)]


class SourceDocument(StrictModel):
    """Where the base tree comes from: a commit of a repository, or a folder beside the task file.

    ``remote`` is a URL or a path relative to the project (default: the project's ``source.remote``);
    ``fix_commit`` and ``pull_request`` are provenance that no tool ever sees.
    """

    remote: Name | None = Field(
        None,
        description="URL, or path relative to the project, of the repository; left out: the project's own.",
    )
    pull_request: Text | None = Field(
        None, description="Provenance: the change that fixed it. No tool sees it."
    )
    base_commit: Commit | None = Field(
        None, description="The commit that work starts from: 40 hex digits, quoted."
    )
    fix_commit: Commit | None = Field(
        None, description="Provenance: the commit that fixed it. No tool sees it."
    )
    directory: RelativePath | None = Field(
        None, description="A folder beside the task file that holds the starting tree, instead of a remote."
    )

    @model_validator(mode="after")
    def _one_source(self) -> "SourceDocument":
        if self.directory is None and self.base_commit is None:
            raise ValueError("expected base_commit (with remote), or directory")
        if self.directory is not None and (self.base_commit is not None or self.remote is not None):
            raise ValueError("expected either directory, or remote and base_commit, found both")
        return self


class EnvironmentDocument(StrictModel):
    """What a tool finds besides the tree; the output of ``fingerprint`` commands names the toolchain."""

    image: Name | None = Field(None, description="Container image, where the docker sandbox is used.")
    setup: CommandLines = Field(
        (), description="Shell commands, in order; what they leave in the tree is all that counts."
    )
    fingerprint: CommandLines = Field(
        (), description="Shell commands whose output names the toolchain; it is part of the identity."
    )


class ResultsDocument(StrictModel):
    """Where ``verify.command`` leaves a test report, and its format."""

    format: Literal["junit", "tap"] = Field(description="JUnit XML or TAP.")
    path: RelativePath = Field(description="The report's path in the tree.")


class VerifyDocument(StrictModel):
    """How a candidate is checked; ``timeout`` is in seconds after reading."""

    network: Bool = Field(
        False, description="Whether the check needs a network; an isolating sandbox has none and refuses."
    )
    protected_paths: tuple[Pattern, ...] = Field(
        (), description="Paths, folders or globs that a candidate may not touch."
    )
    tests_patch: RelativePath = Field("tests.patch", description="The hidden tests, as a patch of the base.")
    setup: CommandLines = Field(
        (), description="Shell commands, in order; what they leave in the tree is all that counts."
    )
    command: CommandLine = Field(description="The shell command that decides: exit status 0 is a pass.")
    timeout: Duration | None = Field(
        None, description="How long it may take; left out: the project's cell_timeout."
    )
    results: ResultsDocument | None = Field(
        None, description="Where the command leaves its test report; every validated test has to pass in it."
    )


class ValidationDocument(StrictModel):
    """What ``bench task validate`` found; no one else writes it."""

    at: Moment = Field(description="When.")
    fingerprint: Name = Field(
        description="Digest of everything the validation depended on; another one makes the task stale."
    )
    base_failed: Bool = Field(description="Whether the base fails the hidden tests, with tests really run.")
    reference_passed: Bool = Field(description="Whether the reference passes them.")
    reasons: TextList = Field((), description="What was wrong, when something was.")
    tests: TextList = Field((), description="Ids of the tests that ran and passed with the reference.")
    seconds: Seconds = Field(description="How long the check of the reference took.")


class TaskDocument(StrictModel):
    """A file of kind Task."""

    source: SourceDocument = Field(description="Where the starting tree comes from.")
    tier: Tier = Field("standard", description="How hard it is meant to be.")
    timeout: Duration | None = Field(
        None, description="How long it may take; left out: the project's cell_timeout."
    )
    environment: EnvironmentDocument = Field(
        EnvironmentDocument(), description="What a tool finds besides the tree."
    )
    prompt: RelativePath = Field("prompt.md", description="The file with the prompt.")
    verify: VerifyDocument = Field(description="How a candidate is checked.")
    reference_patch: RelativePath = Field(
        "reference.patch", description="A change that passes, as a patch of the base; no tool sees it."
    )
    validation: ValidationDocument | None = Field(
        None, description="What `bench task validate` found; written by it alone."
    )
