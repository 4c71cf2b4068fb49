"""What can still be read of a record that is invalid: the counts that close gates.

What belongs here: reading counts from anything. What does not: whether a record is valid (``telemetry``). Whoever
breaks a record must not open a gate by it, so a field that is there and holds no plain zero counts, whatever it holds.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

# Far beyond what leaves anything of a score, far below what sums could overflow at.
_MOST = 1_000_000
_FIELDS = ("tests_failed", "tests_regressed", "crashes", "orphans")
# Keys as JSON has them, and as its imitations do: in single quotes, or in none.
_FIELD = re.compile(
    rb"\b(tests_failed|tests_regressed|crashes|orphans)[\"']?\s*:\s*"
    rb"(\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'?|-?[0-9][0-9.eE+-]*|true|false|null|.?)",
    re.DOTALL,
)
_TASK = re.compile(rb"""\btask_id["']?\s*:\s*(?:"([^"\\]*)"|'([^'\\]*)')""")
_ESCAPED_ASCII = re.compile(rb"\\u00([2-7][0-9a-fA-F])")
_WORDS: Mapping[bytes, object] = {b"true": True, b"false": False, b"null": None}


@dataclass(frozen=True)
class Gates:
    """Counts of what closes gates."""

    tests_regressed: int = 0
    crashes: int = 0
    orphans: int = 0

    def __add__(self, other: "Gates") -> "Gates":
        return Gates(
            min(_MOST, self.tests_regressed + other.tests_regressed),
            min(_MOST, self.crashes + other.crashes),
            min(_MOST, self.orphans + other.orphans),
        )


def gates_of(record: Mapping[str, object]) -> Gates:
    """The counts of a record, valid or not.

    Only a whole number says that tests did not regress: without it, tests that failed count as regressed.
    """
    regressed = record.get("tests_regressed")
    count = as_count(regressed)
    if type(regressed) is not int:
        count = max(count, as_count(record.get("tests_failed")))
    return Gates(count, as_count(record.get("crashes")), as_count(record.get("orphans")))


class Remains:
    """What can be read of a line that is no JSON: its counts, of a field given twice the larger, and its task.

    A line that is too long to be held is taken piece by piece.
    """

    def __init__(self) -> None:
        self._fields: dict[str, object] = {}
        self._tasks: set[bytes] = set()

    def take(self, piece: bytes) -> None:
        """Read on. Neither UTF-16 nor escaped letters hide a field."""
        text = _ESCAPED_ASCII.sub(lambda match: bytes([int(match[1], 16)]), piece.replace(b"\0", b""))
        for name, found in _FIELD.findall(text):
            value, key = _value(found), name.decode()
            if key not in self._fields or as_count(value) > as_count(self._fields[key]):
                self._fields[key] = value
        self._tasks.update(double or single for double, single in _TASK.findall(text))

    @property
    def gates(self) -> Gates:
        """The counts that were read."""
        return gates_of(self._fields)

    @property
    def task_id(self) -> str | None:
        """The task that the line names, when it names one."""
        return next(iter(self._tasks)).decode("utf-8", "replace") if len(self._tasks) == 1 else None


def as_count(value: object) -> int:
    """A value as a count: nothing, false and zero are none, and whatever is no count is one."""
    if value is None:
        return 0
    if isinstance(value, (list, dict)):
        return min(len(value), _MOST)
    if isinstance(value, str):
        value = _number(value)
    if not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        return 1
    return min(math.ceil(value), _MOST)


def _value(text: bytes) -> object:
    if text in _WORDS:
        return _WORDS[text]
    if text.isdigit() and len(text) < 20:
        return int(text)
    return text.strip(b"\"'").decode("utf-8", "replace")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
