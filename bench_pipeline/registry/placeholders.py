"""Placeholders such as ``{prompt}`` in commands, option arguments and step prompts.

What belongs here: which exist, how they are found and filled. What does not: their values (execution knows them).
A placeholder is lower-case letters and ``_`` in braces without a ``$`` before them, so that JSON, shell variables
and code in a prompt stay as they are.
"""

import re
from collections.abc import Iterable, Mapping

PROMPT_PLACEHOLDERS = ("prompt", "workdir", "handover")
COMMAND_PLACEHOLDERS = ("prompt", "prompt_file", "workdir", "model_id", "effort", "handover", "files")
OPTION_PLACEHOLDERS = (*COMMAND_PLACEHOLDERS, "value")

_PLACEHOLDER = re.compile(r"(?<!\$)\{([a-z_]+)\}")


def placeholders(texts: Iterable[str]) -> list[str]:
    """The names of the placeholders in ``texts``, each once, in order."""
    return list(dict.fromkeys(name for text in texts for name in _PLACEHOLDER.findall(text)))


def fill(text: str, values: Mapping[str, str]) -> str:
    """``text`` with its placeholders filled, in one pass: braces inside a value are not looked at again.

    Raises KeyError for a placeholder without a value.
    """
    return _PLACEHOLDER.sub(lambda found: values[found[1]], text)
