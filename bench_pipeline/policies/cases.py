"""The questions: an ordered set with expected answers and, for some, evidence.

What belongs here: reading a case file and the digest of what it says. What does not: how a case is put to a model
(``policy``).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from bench_pipeline.documents import StrictModel
from bench_pipeline.errors import DocumentError, Problem
from bench_pipeline.policies.answers import is_blank
from bench_pipeline.policies.digests import sha256
from bench_pipeline.policies.inputs import InputError, JsonText, read_value

# A set that people wrote and read; a project may raise it (`policies.max_cases`).
MAX_CASES = 1000
_BYTES_FOR_MAX_CASES = 1 << 20


class Case(StrictModel):
    """A question, the answer that is expected, and what is known about it."""

    id: JsonText = Field("", alias="ID")
    prompt: JsonText = Field("", alias="Prompt")
    expected: JsonText = Field("", alias="Expected")
    evidence: tuple[JsonText, ...] = Field((), alias="Evidence")


@dataclass(frozen=True)
class CaseSet:
    """Cases in their order, and the digest of what they say."""

    cases: tuple[Case, ...]
    sha256: str


def read_cases(path: Path, max_cases: int = MAX_CASES) -> CaseSet:
    """Read a case file: a JSON array of {ID, Prompt, Expected, optional Evidence}.

    Its size may be 1 MiB for each thousand cases that are allowed.

    Raises:
        InputError: names the first check that failed and every place where it did.
    """
    limit = _BYTES_FOR_MAX_CASES * -(-max_cases // MAX_CASES)
    document = read_value(path, limit)
    records = document.value
    if not isinstance(records, list):
        raise InputError("decode", [document.problem((), "expected a list of cases")])
    if len(records) > max_cases:
        wrong = f"{len(records)} cases, more than {max_cases}; a project may raise policies.max_cases"
        raise InputError("limit", [document.problem((), wrong)])
    try:
        cases = tuple(document.items(Case))
    except DocumentError as error:
        raise InputError("decode", error.problems) from None
    if blank := [document.problem((number, name), _BLANK) for number, name in _blank(cases)]:
        raise InputError("invalid", blank)
    if repeated := [
        document.problem((later, "ID"), f"is the ID of case {first + 1} too; each case needs its own")
        for first, later in _repeated(cases)
    ]:
        raise InputError("conflict", repeated)
    if not cases:
        raise InputError("invalid", [Problem(str(path), None, "", "holds no case")])
    return CaseSet(cases, dataset_digest(cases))


_BLANK = "is blank or missing; a case needs an ID, a Prompt and an Expected answer"


def _blank(cases: tuple[Case, ...]) -> Iterator[tuple[int, str]]:
    for number, case in enumerate(cases):
        for name, text in (("ID", case.id), ("Prompt", case.prompt), ("Expected", case.expected)):
            if is_blank(text):
                yield number, name


def _repeated(cases: tuple[Case, ...]) -> Iterator[tuple[int, int]]:
    """Pairs of the first and a later case of one ID."""
    counts = Counter(case.id for case in cases)
    first: dict[str, int] = {}
    for number, case in enumerate(cases):
        if counts[case.id] > 1 and first.setdefault(case.id, number) != number:
            yield first[case.id], number


def dataset_digest(cases: tuple[Case, ...]) -> str:
    """The SHA-256 of the cases in their order."""
    return sha256([_record(case) for case in cases])


def _record(case: Case) -> dict[str, object]:
    record: dict[str, object] = {"ID": case.id, "Prompt": case.prompt, "Expected": case.expected}
    return record | {"Evidence": case.evidence} if case.evidence else record
