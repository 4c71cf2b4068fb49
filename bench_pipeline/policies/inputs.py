"""Reading the JSON files of this lane: strictly, and with the first check that failed named.

What belongs here: sizes, decoding, the types of JSON fields, the error. What does not: the rules of one kind of
file (``cases``, ``recordings``, ``receipts``).
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Strict

from bench_pipeline.documents import JsonValue, parse_json
from bench_pipeline.documents.files import read_bytes
from bench_pipeline.errors import DocumentError, Problem

# limit: too large; decode: not the JSON that was expected; invalid: JSON that says something impossible;
# conflict: two things that cannot both hold.
Reason = Literal["limit", "decode", "invalid", "conflict"]


class InputError(DocumentError):
    """A file that is refused: ``reason`` is the first check that failed, ``problems`` all that failed it."""

    def __init__(self, reason: Reason, problems: Iterable[Problem]) -> None:
        self.reason = reason
        self._found = tuple(problems)
        super().__init__(Problem(p.file, p.line, p.field, f"{reason}: {p.message}") for p in self._found)

    def __reduce__(self) -> tuple[type["InputError"], tuple[Reason, tuple[Problem, ...]]]:  # type: ignore[override]
        """A copy in another process has the same reason."""
        return type(self), (self.reason, self._found)


def read_value(path: Path, limit: int) -> JsonValue:
    """The JSON value of a file of at most ``limit`` bytes.

    Raises:
        InputError: the file is too large, or is not one strict JSON value.
        DocumentError: it cannot be read.
    """
    if path.is_file() and path.stat().st_size > limit:
        wrong = f"is larger than {limit} bytes, the most it may have"
        raise InputError("limit", [Problem(str(path), None, "", wrong)])
    data = read_bytes(path, limit)
    try:
        return parse_json(path, data)
    except DocumentError as error:
        raise InputError("decode", error.problems) from None


# Unlike the text of YAML documents it may hold anything, NUL too: a model may have said it.
JsonText = Annotated[str, Strict()]
