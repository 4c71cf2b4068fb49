"""The exception tree, and nothing else.

Every error that a person may see is one of these; each carries what was tried, what was wrong and what to
do about it, and knows the exit status that the command line gives it.

    BenchError                    1   something that was tried did not work
    ├── UsageError                2   the call's words are off
    ├── DocumentError             1   documents that do not parse; holds every problem found
    ├── NotFoundError             1   a project, evaluation, task, tool, setup or cell that is not there
    ├── StoreError                1   the store could not be read or written
    │   ├── NewerSchemaError      1   written by a newer version of bench_pipeline
    │   └── CorruptPartError      1   a part proven to be corrupt (whole read, wrong Parquet)
    ├── SandboxError              1   no sandbox, or it could not be started
    ├── RefusedError              1   a request that would break a promise (a cap without prices, a changed plan)
    ├── IncompleteError           3   cells without a verdict, insufficient evidence
    ├── GateFailedError           4   a gate or a condition that was asked for failed
    └── NothingToEvaluateError    5   an empty selection
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar


class BenchError(Exception):
    """Something that was tried did not work.

    Args:
        tried: what was attempted, as a noun or gerund phrase ("reading config.yaml").
        wrong: what was found instead of what was expected.
        remedy: what the reader can do about it.
    """

    exit_code: ClassVar[int] = 1
    # Whether the same, tried again later, may work without anybody doing something.
    passes: ClassVar[bool] = False

    def __init__(self, tried: str, wrong: str, remedy: str = "") -> None:
        super().__init__(tried, wrong, remedy)
        self.tried = tried
        self.wrong = wrong
        self.remedy = remedy

    def __str__(self) -> str:
        return ": ".join(part for part in (self.tried, self.wrong, self.remedy) if part)


class UsageError(BenchError):
    """The call's words are off."""

    exit_code = 2


@dataclass(frozen=True, order=True)
class Problem:
    """One thing wrong in one document.

    ``line`` counts from 1 and is None where a file as a whole is meant; ``field`` is a dotted path such as
    ``tools[0].model`` and may be empty; ``message`` says what was found, what was expected and what to do.
    """

    file: str
    line: int | None
    field: str
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (place, self.field, self.message) if part)


class DocumentError(BenchError):
    """Documents that do not parse or do not fit their schema; ``problems`` holds all of them, in file order."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems), key=lambda p: (p.file, p.line or 0, p.field, p.message)))
        count = len(self.problems)
        super().__init__(
            "reading documents",
            f"{count} problem{'' if count == 1 else 's'}\n" + "\n".join(f"  {p}" for p in self.problems),
        )

    def __reduce__(self) -> tuple[type["DocumentError"], tuple[tuple[Problem, ...]]]:
        return type(self), (self.problems,)


class NotFoundError(BenchError):
    """A project, evaluation, task, tool, setup or cell that is not there."""


class StoreError(BenchError):
    """The store could not be read or written; nothing was half-written."""

    passes = True


class NewerSchemaError(StoreError):
    """A part was written by a newer version of bench_pipeline: never quarantined, never bought again."""

    passes = False


class CorruptPartError(StoreError):
    """A part was read whole and is not the Parquet that was written."""


class SandboxError(BenchError):
    """No sandbox is at hand, or it could not be started."""


class RefusedError(BenchError):
    """A request that would break a promise: a cap that cannot be kept, a plan that has changed."""


class IncompleteError(BenchError):
    """Cells without a verdict, or evidence that does not suffice."""

    exit_code = 3


class GateFailedError(BenchError):
    """A gate or a condition that was asked for failed."""

    exit_code = 4


class NothingToEvaluateError(BenchError):
    """The selection is empty."""

    exit_code = 5
