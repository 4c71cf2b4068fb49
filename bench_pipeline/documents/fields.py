"""The types of documents' fields: what a value may look like, and the sentence when it does not.

What belongs here: annotated types that any document kind may use, and the strict base model. What does not:
the fields of one kind (they live with their lane). A scalar arrives as ``Plain`` when YAML had it without
quotes, as ``str`` when quoted, and as a Python value from JSON and TOML.
"""

import math
import posixpath
import re
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Strict, WithJsonSchema
from pydantic_core import PydanticCustomError

from bench_pipeline.documents.describing import Plain, describe

_INT = re.compile(r"[-+]?[0-9]{1,19}|0o[0-7]{1,21}|0x[0-9a-fA-F]{1,16}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:h|ms|us|ns|m|s))+")
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(h|ms|us|ns|m|s)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
# A year: longer is a slip of the pen, and some timers overflow beyond it.
MAX_SECONDS = 365 * 24 * 3600.0
_SIZE = re.compile(r"([0-9]{1,15})(B|KiB|MiB|GiB|TiB)")
_BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_COMMIT = re.compile(r"[0-9a-f]{40}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# Arrow keeps whole numbers in 64 bits.
_INT_LIMIT = 1 << 63


def _expected(what: str, found: object) -> PydanticCustomError:
    return PydanticCustomError(
        "expected", "expected {what}, found {found}", {"what": what, "found": describe(found)}
    )


def as_text(value: object) -> str:
    """A scalar's text as it was written; anything else is an error."""
    if type(value) is Plain:
        return str(value)
    if not isinstance(value, str):
        raise _expected("text", value)
    if "\0" in value:
        raise _expected("text without NUL characters", value)
    return value


def as_name(value: object) -> str:
    """Text that is not empty, has no control characters, and no space at its ends."""
    text = as_text(value)
    if not text or _CONTROL.search(text) or text != text.strip():
        raise _expected("a name (not empty, no control characters, no space at its ends)", value)
    return text


def as_int(value: object) -> int:
    """A whole number of 64 bits, written without quotes."""
    number: int | None = None
    if type(value) is int:
        number = value
    elif type(value) is Plain and _INT.fullmatch(value):
        number = int(value, {"0o": 8, "0x": 16}.get(value[:2], 10))
    if number is None or not -_INT_LIMIT <= number < _INT_LIMIT:
        raise _expected("a whole number" + _unquoted(value), value)
    return number


def as_float(value: object) -> float:
    """A finite number, written without quotes."""
    number = math.nan
    if type(value) in {int, float}:
        assert isinstance(value, (int, float))
        number = float(value) if abs(value) < _INT_LIMIT else math.nan
    elif type(value) is Plain and _FLOAT.fullmatch(value):
        number = float(value)
    if not math.isfinite(number):
        raise _expected("a finite number" + _unquoted(value), value)
    return number


def as_bool(value: object) -> bool:
    """``true`` or ``false``, without quotes; ``yes``, ``no``, ``on`` and ``off`` are text in YAML 1.2."""
    if isinstance(value, bool):
        return value
    if type(value) is Plain and value in _BOOLS:
        return _BOOLS[value]
    raise _expected("true or false" + _unquoted(value), value)


def _unquoted(value: object) -> str:
    return " without quotes" if type(value) is str else ""


def as_duration(value: object) -> float:
    """Go-style text such as ``20m``, ``1h30m``, ``1.5s`` or ``500ms``, as seconds."""
    if isinstance(value, str) and len(value) <= 64 and _DURATION.fullmatch(value):
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(value))
        if 0 < seconds <= MAX_SECONDS:
            return seconds
    raise _expected(
        "a duration with units, above zero and at most a year, such as 20m, 1h30m, 1.5s or 500ms", value
    )


def as_size(value: object) -> int:
    """Text such as ``4GiB`` or ``512MiB``, as bytes."""
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    size = int(found[1]) * _BYTES[found[2]] if found else 0
    if not 0 < size < _INT_LIMIT:
        raise _expected("a size with a unit (B, KiB, MiB, GiB, TiB), such as 4GiB", value)
    return size


def as_commit(value: object) -> str:
    """40 lower-case hexadecimal digits in quotes; without them, other readers take some for numbers."""
    if type(value) is Plain:
        remedy = (
            f'put it in quotes, "{value}"' if _COMMIT.fullmatch(value) else "write all 40 digits, in quotes"
        )
        raise PydanticCustomError(
            "expected",
            "expected a commit, 40 hexadecimal digits in quotes, found {found} without quotes: {remedy}",
            {"found": describe(value), "remedy": remedy},
        )
    if not isinstance(value, str) or not _COMMIT.fullmatch(value):
        raise _expected("a commit, 40 lower-case hexadecimal digits in quotes", value)
    return value


def as_relative_path(value: object) -> str:
    """A path below the folder it is relative to, with forward slashes, normalised."""
    text = as_text(value)
    normal = posixpath.normpath(text) if text else "."
    outside = normal.startswith(("/", "../")) or normal in {".", ".."}
    if outside or "\\" in text or _CONTROL.search(text):
        raise _expected("a path inside its folder, with forward slashes, not absolute and without ..", value)
    return normal


def _as_list(value: object) -> object:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, (list, tuple)):
        raise _expected("text or a list of text", value)
    return value


# An editor takes a plain 1.10 or no for a number or a boolean; here both are text.
_SCALAR = {"type": ["string", "number", "boolean"]}
_WRITTEN = WithJsonSchema(_SCALAR)


def _text_schema(pattern: str, example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^({pattern})$", "examples": [example]})


Text = Annotated[str, BeforeValidator(as_text), _WRITTEN]
Name = Annotated[str, BeforeValidator(as_name), _WRITTEN]
Int = Annotated[int, BeforeValidator(as_int)]
Float = Annotated[float, BeforeValidator(as_float)]
Bool = Annotated[bool, BeforeValidator(as_bool)]
Duration = Annotated[float, BeforeValidator(as_duration), _text_schema(_DURATION.pattern, "20m")]
Size = Annotated[int, BeforeValidator(as_size), _text_schema(_SIZE.pattern, "4GiB")]
Commit = Annotated[
    str, BeforeValidator(as_commit), _text_schema(_COMMIT.pattern, "0123456789abcdef" * 2 + "01234567")
]
RelativePath = Annotated[
    str, BeforeValidator(as_relative_path), WithJsonSchema({"type": "string", "minLength": 1})
]
TextList = tuple[Text, ...]
TextOrList = Annotated[
    tuple[Text, ...],
    BeforeValidator(_as_list),
    WithJsonSchema({"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR}]}),
]


# What makes a scalar take nothing but what it says: our own reading, or pydantic's.
_STRICT = (BeforeValidator, Strict)


class StrictModel(BaseModel):
    """A frozen model that refuses unknown fields; its scalars must be of the types above.

    A bare ``str``, ``int``, ``float`` or ``bool`` would coerce what a document says, so it is refused when
    the class is made.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Refuse fields whose scalars have no strict type."""
        super().__pydantic_init_subclass__(**kwargs)
        for name, field in cls.model_fields.items():
            strict = any(isinstance(item, _STRICT) for item in field.metadata)
            if not strict and _is_lax(field.annotation):
                raise TypeError(
                    f"{cls.__name__}.{name} has a scalar without a strict type of documents.fields"
                )


def _is_lax(annotation: object) -> bool:
    if annotation in {str, int, float, bool}:
        return True
    origin = get_origin(annotation)
    if origin is Literal:
        return False
    if origin is Annotated:
        inner, *metadata = get_args(annotation)
        return not any(isinstance(item, _STRICT) for item in metadata) and _is_lax(inner)
    parts = get_args(annotation)
    return any(_is_lax(part) for part in (parts[1:] if origin is dict else parts))
