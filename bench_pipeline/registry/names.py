"""Names that become parts of file names, labels and environments: what they may hold, and when two are one.

What belongs here: the rules for names of tools, workflows, steps, options, evaluations, environment
variables and hosts, and which files of a folder have such a name. What does not: what is in them.
"""

import re
import unicodedata
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from bench_pipeline.documents.fields import as_name
from bench_pipeline.documents.hosts import refuse_forge_hosts

_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_ENVIRONMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# File systems allow 255 bytes; what is left is for suffixes.
MAX_NAME = 200


def name_problem(name: str) -> str | None:
    """Why ``name`` cannot be part of a file name, as a sentence's end; None when it can."""
    if not _SAFE.fullmatch(name) or ".." in name or name.endswith("."):
        return "may hold A-Z a-z 0-9 _ . - only, no .. and no . at its end, and starts with none of . and -"
    if len(name) > MAX_NAME:
        return f"is longer than {MAX_NAME} characters"
    return None


def named_documents(folder: Path, what: str) -> dict[str, str | None]:
    """The YAML documents of a folder that are known by their file's name.

    Names with None, and names of files that cannot be one with the reason; ``what`` is what a file is, as in "the
    evaluation".
    """
    try:
        paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    found: dict[str, str | None] = {}
    for path in paths:
        reason = name_problem(path.stem)
        if path.suffix.lower() not in {".yaml", ".yml"}:
            continue
        if path.suffix != ".yaml":
            found[path.name] = f"documents end in .yaml; name it {path.stem}.yaml"
        elif reason is not None:
            found[path.name] = f"the file's name is {what}'s, and it {reason}"
        else:
            found[path.stem] = None
    return found


def same_name(name: str) -> str:
    """The form in which two names that a file system or a reader may take for one are equal."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _refused(what: str, reason: str) -> PydanticCustomError:
    return PydanticCustomError("name", "{what} {reason}", {"what": what, "reason": reason})


def _as_safe_name(value: object) -> str:
    name = as_name(value)
    reason = name_problem(name)
    if reason:
        raise _refused(f"the name {name[:60]!r}", reason)
    return name


def _as_environment_name(value: object) -> str:
    name = as_name(value)
    if not _ENVIRONMENT.fullmatch(name):
        raise _refused(name[:60], "is not the name of an environment variable (letters, digits and _)")
    return name


def _as_host(value: object) -> str:
    host = as_name(value)
    refuse_forge_hosts([host])
    return host


SafeName = Annotated[
    str, BeforeValidator(_as_safe_name), WithJsonSchema({"type": "string", "pattern": f"^{_SAFE.pattern}$"})
]
EnvironmentName = Annotated[
    str,
    BeforeValidator(_as_environment_name),
    WithJsonSchema({"type": "string", "pattern": f"^{_ENVIRONMENT.pattern}$"}),
]
Host = Annotated[str, BeforeValidator(_as_host), WithJsonSchema({"type": "string", "format": "hostname"})]
