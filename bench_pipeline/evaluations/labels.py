"""How setups are called: labels for people, and a form of them for file names.

What belongs here: writing labels. What does not: telling setups apart (``setup_digest`` does).
"""

import hashlib
from collections.abc import Mapping
from urllib.parse import quote

# A longer value (a command, a prompt) would hide the rest of the label.
_LONGEST_VALUE = 80
# File systems allow 255 bytes; what is left is for suffixes.
_LONGEST_FILE_NAME = 200
_PUNCTUATION = "@+=-_."


def setup_label(
    tool: str,
    *,
    version: str | None,
    model: str | None,
    effort: str | None,
    options: Mapping[str, str],
    steps: Mapping[str, str],
) -> str:
    """``tool[@version]/model/effort+option=value+step.field=value``; what a setup has not is ``-``.

    ``options`` are those that are not at their default, ``steps`` what an evaluation changes about steps;
    both are sorted, so the order in which a document lists them makes no difference.
    """
    head = tool if version is None else f"{tool}@{_shown(version)}"
    extras = sorted(f"+{name}={_shown(value)}" for name, value in {**options, **steps}.items())
    return "/".join([head, _shown(model or "-"), _shown(effort or "-")]) + "".join(extras)


def _shown(value: str) -> str:
    """A value without line breaks, cut when it is long; the digest keeps long values apart."""
    if len(value) > _LONGEST_VALUE:
        value = f"{value[: _LONGEST_VALUE // 2]}~{hashlib.sha256(value.encode()).hexdigest()[:12]}"
    return "".join(character if character.isprintable() else quote(character) for character in value)


def file_safe(label: str) -> str:
    """A file name for a label, different for different labels also where file systems ignore letter case.

    Everything but lower-case letters, digits and a few marks is percent-encoded, and so is a leading dot or
    dash; a name that would be too long ends in a digest.
    """
    name = "".join(
        character
        if character.isascii() and (character.islower() or character.isdigit() or character in _PUNCTUATION)
        else "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
        for character in label
    )
    if name[:1] in {".", "-"}:
        name = f"%{ord(name[0]):02X}{name[1:]}"
    if len(name) > _LONGEST_FILE_NAME:
        digest = hashlib.sha256(label.encode("utf-8", "surrogatepass")).hexdigest()
        name = f"{name[: _LONGEST_FILE_NAME - 34]}~{digest[:32]}"
    return name
