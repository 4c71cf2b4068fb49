"""Writing task documents: YAML scalars as text, and files that are replaced at once.

What belongs here: text that the strict reader gives back as it was. What does not: what a document says.
"""

import os
import re
import tempfile
from pathlib import Path

_ESCAPED = re.compile('["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]')


def quoted(text: str) -> str:
    """A YAML double-quoted scalar on one line."""
    return '"' + _ESCAPED.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return "\\" + character if character in '"\\' else f"\\u{ord(character):04x}"


def replace_file(path: Path, data: bytes) -> None:
    """Put ``data`` in place of a file, keeping its mode: at once and durable, or not at all."""
    folder = path.parent
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".task-", delete=False) as file:
        temporary = Path(file.name)
        try:
            file.write(data)
            file.flush()
            temporary.chmod(path.stat().st_mode & 0o7777)
            os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
