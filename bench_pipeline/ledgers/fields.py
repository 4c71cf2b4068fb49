"""The fields of a ledger's row: their spellings, what they hold, and the reading of one row value by value.

What belongs here: what a field may say. What does not: whether the row as a whole is valid (``validity``).
"""

import json
from collections.abc import Mapping
from typing import Any

FLAGS = ("valid", "passed")
SHARES = ("partial", "f2p")
COUNTS = (
    "input_tokens",
    "output_tokens",
    "steps",
    "peak_context",
    "f2p_passed",
    "f2p_total",
    "p2p_passed",
    "p2p_total",
)
NUMBERS = (*FLAGS, *SHARES, *COUNTS)
TEXTS = ("route", "task_id")
SPELLINGS: Mapping[str, tuple[str, ...]] = {
    **{name: (name,) for name in (*TEXTS, *NUMBERS)},
    "valid": ("valid", "valid_for_score", "included_in_score"),
    "passed": ("passed", "reward", "resolved", "reward_binary"),
    "partial": ("partial", "reward_partial"),
    "input_tokens": ("input_tokens", "n_input_tokens"),
    "output_tokens": ("output_tokens", "n_output_tokens"),
    "steps": ("steps", "n_agent_steps"),
    "peak_context": ("peak_context", "peak_context_tokens"),
}
FIELD_OF = {spelling: field for field, spellings in SPELLINGS.items() for spelling in spellings}

# JSON numbers that every program reads alike (RFC 8259); larger counts are out of range.
LARGEST_COUNT = 2**53 - 1


class _FaultError(ValueError):
    """What is wrong with a value, as the reason why its row is invalid."""


def read_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The values of one row by field; ``fault`` says what could not be read, ``extra`` what is no field of ours."""
    values: dict[str, Any] = {}
    faults = []
    for spelling, value in row.items():
        field = FIELD_OF.get(spelling)
        if field is None or value is None:
            continue
        try:
            read = _value(field, value)
        except _FaultError as fault:
            faults.append(f"{spelling} {fault}")
            continue
        if values.setdefault(field, read) != read:
            faults.append(conflict(field))
    extra = {name: value for name, value in row.items() if name not in FIELD_OF}
    values["fault"] = "; ".join(dict.fromkeys(faults)) or None
    values["extra"] = extra_text(extra)
    return values


def conflict(field: str) -> str:
    """Why a row is invalid that gives a field twice, with different values."""
    return f"two spellings of {field} differ"


def extra_text(extra: Mapping[str, Any]) -> str | None:
    """The fields that are none of ours as one JSON object; None where there are none."""
    if not extra:
        return None
    return json.dumps(extra, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _value(field: str, value: Any) -> Any:
    if field in TEXTS:
        return _text(field, value)
    if field in FLAGS and isinstance(value, bool):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        expected = "neither true nor false" if field in FLAGS else "not a number"
        raise _FaultError(f"is {expected}")
    if field in COUNTS:
        return _count(value)
    try:
        return float(value)
    except OverflowError:
        raise _FaultError("is out of range") from None


def _text(field: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if field == "task_id":
        # A label; that of a program which numbers its tasks is as good as any.
        return json.dumps(value, allow_nan=False)
    raise _FaultError("is not text")


def _count(value: float) -> int:
    if isinstance(value, float):
        if not value.is_integer():
            raise _FaultError("is not a whole number")
        value = int(value)
    if abs(value) > LARGEST_COUNT:
        raise _FaultError("is out of range")
    return value
