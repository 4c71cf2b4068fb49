"""What pydantic found wrong, in our sentences, at the field as the document has it.

What belongs here: turning validation errors into (field path, sentence). What does not: lines (``reading``)
and the types that raise (``fields``).
"""

import types
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from bench_pipeline.documents.describing import FieldPath, describe, one_of

# A document with more is not read line by line by anybody.
MAX_PROBLEMS = 200

_Sentence = Callable[[ErrorDetails, object], str]


def explain(error: ValidationError, model: type[BaseModel], data: object) -> list[tuple[FieldPath, str]]:
    """Every problem that ``error`` holds, as the path of a field in ``data`` and a sentence about it.

    Where a value may be one of several models, only the problems with the one that it fits best are told.
    """
    located = [(_locate(details["loc"], model, data), details) for details in error.errors(include_url=False)]
    counts = Counter(choice for place, _ in located for choice in place.choices)
    best: dict[FieldPath, int] = {}
    for (path, _), count in counts.items():
        best[path] = min(count, best.get(path, count))
    chosen: dict[FieldPath, str] = {}
    for (path, member), count in counts.items():
        if count == best[path]:
            chosen.setdefault(path, member)
    problems = {
        (place.path, _sentence(details, place.owner)): None
        for place, details in located
        if all(chosen[path] == member for path, member in place.choices)
    }
    if len(problems) <= MAX_PROBLEMS:
        return list(problems)
    more = (), f"has {len(problems) - MAX_PROBLEMS} more problems; these are the first"
    return [*list(problems)[:MAX_PROBLEMS], more]


@dataclass(frozen=True)
class _Place:
    """Where an error is in a document, the type of what holds the field, and union members on the way."""

    path: FieldPath
    owner: object
    choices: tuple[tuple[FieldPath, str], ...]


def _locate(loc: tuple[int | str, ...], model: object, data: object) -> _Place:
    """The place of an error; pydantic's path also names union members and keys, and lists of one scalar."""
    path: list[str | int] = []
    choices: list[tuple[FieldPath, str]] = []
    annotation: object = model
    owner: object = model
    value: object = data
    for index, step in enumerate(loc):
        members = _members(annotation)
        if len(members) > 1:
            annotation = next((item for item in members if _label(item) == step), None)
            choices.append((tuple(path), str(step)))
            continue
        at_end = index == len(loc) - 1
        if step == "[key]" or not (_holds(value, step) or (at_end and isinstance(value, Mapping))):
            continue
        owner = members[0]
        path.append(step)
        annotation = _below(owner, step)
        value = _get(value, step)
    return _Place(tuple(path), owner, tuple(choices))


def _holds(value: object, step: int | str) -> bool:
    if isinstance(value, Mapping):
        return step in value
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and isinstance(step, int)
        and step < len(value)
    )


def _get(value: object, step: int | str) -> object:
    if isinstance(value, Mapping):
        return value.get(step)
    return value[step] if isinstance(value, Sequence) and isinstance(step, int) else None


def _members(annotation: object) -> list[object]:
    """The types that a value may have, null and annotations aside."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in {Union, types.UnionType}:
        return [part for item in get_args(annotation) if item is not type(None) for part in _members(item)]
    return [annotation]


def _label(annotation: object) -> str:
    return getattr(annotation, "__name__", str(annotation))


def _below(annotation: object, step: int | str) -> object:
    """The type of what is at ``step`` below a value of a type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        by_key = {field.alias or name: field for name, field in annotation.model_fields.items()}
        return by_key[step].annotation if step in by_key else None
    arguments = get_args(annotation)
    if get_origin(annotation) is dict and len(arguments) == 2:
        return arguments[1]
    return arguments[0] if arguments else None


def field_names(model: object) -> list[str]:
    """The names that a document may use for the fields of a model."""
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return []
    return [field.alias or name for name, field in model.model_fields.items()]


def _sentence(details: ErrorDetails, owner: object) -> str:
    kind = details["type"]
    known = _SENTENCES.get(kind)
    if known is not None:
        return known(details, owner)
    if kind in {"value_error", "assertion_error"}:
        return str(details.get("ctx", {}).get("error", details["msg"]))
    if kind in _BOUNDS:
        return f"expected {_BOUNDS[kind].format(**details.get('ctx', {}))}, found {_found(details)}"
    if kind.startswith("union_tag"):
        context = details.get("ctx", {})
        return f"expected {context.get('discriminator')} to be one of {context.get('expected_tags')}"
    return details["msg"]


def _found(details: ErrorDetails) -> str:
    return describe(details["input"])


def _missing(_: ErrorDetails, __: object) -> str:
    return "is required, and missing"


def _unknown(details: ErrorDetails, owner: object) -> str:
    name = str(details["loc"][-1])
    return f"is not a known field; {one_of(name, field_names(owner), 'the fields here are')}"


def _choice(details: ErrorDetails, _: object) -> str:
    expected = details.get("ctx", {}).get("expected", "")
    return f"expected {expected}, found {_found(details)}"


def _mapping(details: ErrorDetails, _: object) -> str:
    return f"expected a mapping, found {_found(details)}"


def _text(details: ErrorDetails, _: object) -> str:
    return f"expected text, found {_found(details)}"


def _list(details: ErrorDetails, _: object) -> str:
    return f"expected a list, found {_found(details)}"


def _too_short(details: ErrorDetails, _: object) -> str:
    return (
        f"expected at least {details['ctx']['min_length']} entries, found {details['ctx']['actual_length']}"
    )


def _too_long(details: ErrorDetails, _: object) -> str:
    return f"expected at most {details['ctx']['max_length']} entries"


_SENTENCES: dict[str, _Sentence] = {
    "missing": _missing,
    "extra_forbidden": _unknown,
    "literal_error": _choice,
    "enum": _choice,
    "model_type": _mapping,
    "model_attributes_type": _mapping,
    "dict_type": _mapping,
    "mapping_type": _mapping,
    "string_type": _text,
    "list_type": _list,
    "tuple_type": _list,
    "set_type": _list,
    "frozen_set_type": _list,
    "too_short": _too_short,
    "too_long": _too_long,
}
_BOUNDS = {
    "greater_than": "a number above {gt}",
    "greater_than_equal": "a number of at least {ge}",
    "less_than": "a number below {lt}",
    "less_than_equal": "a number of at most {le}",
    "string_too_short": "text of at least {min_length} characters",
    "string_too_long": "text of at most {max_length} characters",
    "string_pattern_mismatch": "text of the form {pattern}",
}
