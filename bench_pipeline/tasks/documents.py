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

    remote: Name | None = None
    pull_request: Text | None = None
    base_commit: Commit | None = None
    fix_commit: Commit | None = None
    directory: RelativePath | None = None

    @model_validator(mode="after")
    def _one_source(self) -> "SourceDocument":
        if self.directory is None and self.base_commit is None:
            raise ValueError("expected base_commit (with remote), or directory")
        if self.directory is not None and (self.base_commit is not None or self.remote is not None):
            raise ValueError("expected either directory, or remote and base_commit, found both")
        return self


class EnvironmentDocument(StrictModel):
    """What a tool finds besides the tree; the output of ``fingerprint`` commands names the toolchain."""

    image: Name | None = None
    setup: CommandLines = ()
    fingerprint: CommandLines = ()


class ResultsDocument(StrictModel):
    """Where ``verify.command`` leaves a test report, and its format."""

    format: Literal["junit", "tap"]
    path: RelativePath


class VerifyDocument(StrictModel):
    """How a candidate is checked; ``timeout`` is in seconds after reading."""

    network: Bool = False
    protected_paths: tuple[Pattern, ...] = ()
    tests_patch: RelativePath = "tests.patch"
    setup: CommandLines = ()
    command: CommandLine
    timeout: Duration | None = None
    results: ResultsDocument | None = None


class ValidationDocument(StrictModel):
    """What ``bench task validate`` found; no one else writes it."""

    at: Moment
    fingerprint: Name
    base_failed: Bool
    reference_passed: Bool
    tests: TextList = ()
    seconds: Seconds


class TaskDocument(StrictModel):
    """A file of kind Task."""

    source: SourceDocument
    tier: Tier = "standard"
    timeout: Duration | None = None
    environment: EnvironmentDocument = EnvironmentDocument()
    prompt: RelativePath = "prompt.md"
    verify: VerifyDocument
    reference_patch: RelativePath = "reference.patch"
    validation: ValidationDocument | None = None
