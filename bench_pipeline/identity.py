"""What makes two cells the same: canonical JSON, recipe versions, run keys, verify keys, identities.

What belongs here: RFC 8785 (https://www.rfc-editor.org/rfc/rfc8785), SHA-256 over it, and the three
versioned records. What does not: which documents describe a task, a setup or an environment (their owners
build them and hand in digests), and where digests are kept.

A **run key** decides the candidate, a **verify key** the verdict on a candidate, an **identity** is both.
Names of evaluations, file paths, prices, credentials, concurrency, tiers and dates are in none of them. A
change of what a record means takes a new recipe version; the frozen vectors in the tests are append only.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring as _quote
from math import isfinite
from typing import Final

RUN_RECIPE: Final = "run/1"
VERIFY_RECIPE: Final = "verify/1"
IDENTITY_RECIPE: Final = "identity/1"

# RFC 8785 numbers are IEEE doubles: an integer beyond this loses digits in another reader.
_EXACT_INTEGERS: Final = 2**53 - 1
# Far above any document of ours, far below the interpreter's recursion limit.
_MAX_DEPTH: Final = 128

_is_digest: Final = re.compile(r"[0-9a-f]{64}").fullmatch


def canonical_json(value: object) -> bytes:
    """The RFC 8785 form of ``value``, as UTF-8 bytes.

    Takes None, bool, int, float, str, sequences (list, tuple) and mappings with str keys, nested at most
    128 deep. Raises ValueError, naming the place, for a NaN or an infinity, an integer beyond
    ±(2**53 - 1), a lone surrogate, a key that is not a str, and any other type.
    """
    try:
        return _form(value, 0).encode("utf-8")
    except _NoFormError as error:
        raise ValueError(f"{error.place()}: {error.wrong}") from None
    except UnicodeEncodeError as error:
        before = error.object[max(0, error.start - 20) : error.start]
        raise ValueError(f"a lone surrogate after {before!r} has no form in UTF-8") from None


def digest(value: object) -> str:
    """The SHA-256 of ``canonical_json(value)`` as 64 lower-case hex digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def digest_bytes(data: bytes) -> str:
    """The SHA-256 of ``data`` as 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class CellKeys:
    """The keys of many cells as columns of one length; each key is 32 bytes."""

    run_key: list[bytes]
    verify_key: list[bytes]
    identity: list[bytes]


def cell_keys(
    *,
    task: Sequence[str],
    setup: Sequence[str],
    environment: Sequence[str],
    effect: Sequence[str | None],
    prediction: Sequence[str | None],
    attempt: Sequence[int],
    verify: Sequence[str],
) -> CellKeys:
    """The keys of cells given as columns, one row per cell.

    Every column but ``attempt`` holds digests of component documents (64 lower-case hex digits): ``task`` of
    what the tool is given, ``setup`` of the effective tool definition and its values, ``environment`` of the
    sandbox, ``effect`` of what the preparing commands did to the tree (None where nothing ran),
    ``prediction`` of the row that is replayed (None for other tools), ``verify`` of the hidden check.
    Attempts count from 1.

    Raises ValueError for columns of different lengths, a digest that is none, an attempt below 1.
    """
    columns: dict[str, Sequence[str | None]] = {
        "task": task, "setup": setup, "environment": environment, "effect": effect, "prediction": prediction,
        "verify": verify,
    }  # fmt: skip
    _check_columns(columns, attempt)
    sha256 = hashlib.sha256
    # The canonical form is written out: the keys are fixed, and digests and small integers need no escaping.
    run_keys = [
        sha256(
            f'{{"attempt":{n},"effect":{e},"environment":"{v}","prediction":{p},'
            f'"recipe":"{RUN_RECIPE}","setup":"{s}","task":"{t}"}}'.encode("ascii")
        ).digest()
        for t, s, v, e, p, n in zip(
            task, setup, environment, _quoted(effect), _quoted(prediction), attempt, strict=True
        )
    ]
    verify_keys = _verify_keys(verify, environment)
    identities = [
        sha256(
            f'{{"recipe":"{IDENTITY_RECIPE}","run_key":"{r.hex()}","verify_key":"{v.hex()}"}}'.encode("ascii")
        ).digest()
        for r, v in zip(run_keys, verify_keys, strict=True)
    ]
    return CellKeys(run_keys, verify_keys, identities)


def _quoted(column: Sequence[str | None]) -> list[str]:
    return ["null" if value is None else f'"{value}"' for value in column]


def _verify_keys(verify: Sequence[str], environment: Sequence[str]) -> list[bytes]:
    """One hash per distinct check: a plan has as many of them as tasks, not as cells."""
    known: dict[tuple[str, str], bytes] = {}
    keys: list[bytes] = []
    for check in zip(verify, environment, strict=True):
        key = known.get(check)
        if key is None:
            record = f'{{"environment":"{check[1]}","recipe":"{VERIFY_RECIPE}","verify":"{check[0]}"}}'
            key = known[check] = hashlib.sha256(record.encode("ascii")).digest()
        keys.append(key)
    return keys


def _check_columns(columns: Mapping[str, Sequence[str | None]], attempt: Sequence[int]) -> None:
    lengths = {name: len(column) for name, column in columns.items()} | {"attempt": len(attempt)}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns of cells differ in length: {lengths}")
    for name, column in columns.items():
        _check_digests(name, set(column) - ({None} if name in {"effect", "prediction"} else set()))
    for number in set(attempt):
        if type(number) is not int or not 1 <= number <= _EXACT_INTEGERS:
            raise ValueError(f"attempt {number!r} is not a whole number from 1")


def _check_digests(name: str, values: Iterable[object]) -> None:
    for value in values:
        if not isinstance(value, str) or not _is_digest(value):
            raise ValueError(f"{name}: {value!r} is not a SHA-256 digest of 64 lower-case hex digits")


class _NoFormError(ValueError):
    """A value without a canonical form; the steps to it are collected while the error travels up."""

    def __init__(self, wrong: str) -> None:
        super().__init__(wrong)
        self.wrong = wrong
        self.steps: list[str] = []

    def place(self) -> str:
        return ("$" + "".join(reversed(self.steps)))[:200]


def _form(value: object, depth: int) -> str:
    if isinstance(value, str):
        return _quote(value)
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return _number(value)
    if depth == _MAX_DEPTH:
        raise _NoFormError(f"nested deeper than {_MAX_DEPTH}")
    if isinstance(value, (dict, Mapping)):
        return _object(value, depth + 1)
    if isinstance(value, (list, tuple)):
        return _array(value, depth + 1)
    raise _NoFormError(f"{type(value).__name__} has no canonical form")


def _object(value: Mapping[object, object], depth: int) -> str:
    members: list[str] = []
    for key in sorted(value, key=_utf16_units):
        try:
            members.append(f"{_quote(str(key))}:{_form(value[key], depth)}")
        except _NoFormError as error:
            error.steps.append(f".{key}")
            raise
    return f"{{{','.join(members)}}}"


def _array(value: Sequence[object], depth: int) -> str:
    items: list[str] = []
    for item in value:
        try:
            items.append(_form(item, depth))
        except _NoFormError as error:
            error.steps.append(f"[{len(items)}]")
            raise
    return f"[{','.join(items)}]"


def _utf16_units(key: object) -> bytes:
    """The order that RFC 8785 asks for: UTF-16 code units, which differs from code points above U+FFFF."""
    if not isinstance(key, str):
        raise _NoFormError(f"the key {key!r} is not text")
    return key.encode("utf-16-be")


def _integer(value: int) -> str:
    if not -_EXACT_INTEGERS <= value <= _EXACT_INTEGERS:
        raise _NoFormError("an integer beyond ±(2**53 - 1) has no exact form in JSON")
    return int.__repr__(value)


def _number(value: float) -> str:
    """ECMAScript's Number::toString, from the shortest digits that Python's repr finds too."""
    if not isfinite(value):
        raise _NoFormError(f"{value!r} has no form in JSON")
    if value == 0:
        return "0"
    mantissa, _, exponent = float.__repr__(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # ``point`` is where the decimal point stands, counted from the first significant digit.
    point = int(exponent or "0") + len(whole) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    return ("-" if value < 0 else "") + _place_point(digits, point)


def _place_point(digits: str, point: int) -> str:
    count = len(digits)
    if count <= point <= 21:
        return digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if count > 1 else ""
    return f"{digits[0]}{fraction}e{'+' if point > 0 else '-'}{abs(point - 1)}"
