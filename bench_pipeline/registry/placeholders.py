"""Placeholders such as ``{prompt}`` in commands, option arguments and step prompts.

What belongs here: which exist, how they are found and filled. What does not: their values (execution knows
them). A placeholder is lower-case letters and ``_`` in braces without a ``$`` before them, so that JSON,
shell variables and code in a prompt stay as they are; ``{{name}}`` is the text ``{name}``.

In a command, the element ``{options}`` is where the arguments of the chosen options go (without it: last).
An element of a command, or a value of ``env``, with ``{model_id}`` or ``{effort}`` is left out when the
setup has none.
"""

import re
from collections.abc import Iterable, Mapping

PROMPT_PLACEHOLDERS = ("prompt", "workdir", "handover")
API_PLACEHOLDERS = ("api_url", "api_key")
COMMAND_PLACEHOLDERS = (
    "prompt", "prompt_file", "workdir", "home", "model_id", "effort", "handover", "files", *API_PLACEHOLDERS,
)  # fmt: skip
OPTION_PLACEHOLDERS = (*COMMAND_PLACEHOLDERS, "value")
OPTIONS_ELEMENT = "{options}"

_PLACEHOLDER = re.compile(r"(?<!\$)(?:\{\{([a-z_]+)\}\}|\{([a-z_]+)\})")


def placeholders(texts: Iterable[str]) -> list[str]:
    """The names of the placeholders in ``texts``, each once, in order."""
    found = (name for text in texts for _, name in _PLACEHOLDER.findall(text) if name)
    return list(dict.fromkeys(found))


def fill(text: str, values: Mapping[str, str]) -> str:
    """``text`` with its placeholders filled, in one pass: braces inside a value are not looked at again.

    Raises KeyError for a placeholder without a value.
    """
    return _PLACEHOLDER.sub(lambda found: f"{{{found[1]}}}" if found[1] else values[found[2]], text)
