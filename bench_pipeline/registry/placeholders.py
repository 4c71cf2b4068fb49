"""Placeholders in tool definitions: which there are, how they are found and how they are filled.

What belongs here: the syntax `{name}` with `{{name}}` for the text itself, and filling in one pass. What does
not: where the values come from (execution/invocation) and which fields may hold which (the definition models).
"""

import re
from collections.abc import Mapping

COMMAND_PLACEHOLDERS = frozenset(
    {"prompt", "prompt_file", "workdir", "model_id", "effort", "handover", "home", "files"}
)
OPTION_PLACEHOLDERS = COMMAND_PLACEHOLDERS | {"value"}
STEP_PROMPT_PLACEHOLDERS = frozenset({"prompt", "workdir", "handover"})

# An element of a command that is exactly this is where the options' arguments go; without it they come last.
OPTIONS_ELEMENT = "{options}"

# Only a lower-case word in braces is a placeholder, so that JSON and shell text need no quoting.
_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}|\{([a-z_]+)\}")


class MissingValueError(LookupError):
    """A text names a placeholder that has no value in this setup; ``args[0]`` is its name."""


def placeholders(text: str) -> tuple[str, ...]:
    """The names of the placeholders in ``text``, in order, with repeats."""
    return tuple(match[2] for match in _PLACEHOLDER.finditer(text) if match[2] is not None)


def unknown_placeholders(text: str, known: frozenset[str]) -> tuple[str, ...]:
    """The placeholders of ``text`` that are not in ``known``, sorted, each once."""
    return tuple(sorted(set(placeholders(text)) - known))


def fill(text: str, values: Mapping[str, str | None]) -> str:
    """``text`` with its placeholders replaced literally, in one pass: a value is never expanded again.

    ``{{name}}`` becomes ``{name}``. Raises MissingValueError for a placeholder without a value.
    """

    def replacement(match: re.Match[str]) -> str:
        if match[2] is None:
            return f"{{{match[1]}}}"
        value = values.get(match[2])
        if value is None:
            raise MissingValueError(match[2])
        return value

    return _PLACEHOLDER.sub(replacement, text)
