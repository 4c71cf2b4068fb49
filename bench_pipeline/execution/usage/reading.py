"""Reading what a tool wrote, without trusting it.

What belongs here: finding and opening files below the tool's HOME, JSON lines, and typed access to values.
What does not: what any tool means by them. Every file may be cut, huge, a link, a pipe, or written to
mislead: links are never followed, lines and files have a size limit, and a value of the wrong type is
unknown. It may be unhashable too: look it up in tuples, not in sets.
"""

import errno
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import msgspec

# A line holds at most one tool call's output; programs cut these at about 1 MB.
MAX_LINE_BYTES = 16 * 1024 * 1024
# Files that are read whole: a trajectory of a few thousand steps.
MAX_FILE_BYTES = 128 * 1024 * 1024
# Enough for any final answer; what is longer is in the transcript.
MAX_TEXT = 64 * 1024
_MAX_ENTRIES = 20_000
_MAX_DEPTH = 32
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
_NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.ENXIO}
# Above every real count, below what a 64-bit column holds after sums.
_MAX_COUNT = 10**15
_MAX_USD = 1e9

Object = dict[str, object]


@dataclass(frozen=True)
class ToolOutputs:
    """What a finished tool left to be parsed.

    ``stdout`` and ``stderr`` are host paths of captured output; ``home`` is the host path of its HOME;
    ``files`` maps a name that the format knows to a pattern relative to HOME, in which ``**`` stands for
    any folders.
    """

    stdout: Path
    stderr: Path
    home: Path
    files: Mapping[str, str] = field(default_factory=dict)

    def matches(self, name: str) -> list[tuple[str, ...]]:
        """The plain files below HOME that the pattern of ``name`` matches, as path parts, sorted."""
        pattern = self.files.get(name)
        root = _try_open(str(self.home), _FOLDER) if pattern else None
        if not pattern or root is None:
            return []
        try:
            return sorted(set(_match(root, tuple(pattern.strip("/").split("/")), (), [_MAX_ENTRIES])))
        finally:
            os.close(root)

    def read(self, name: str) -> bytes | None:
        """The whole of the only or first file of ``name``; None when there is none or it is too large."""
        for parts in self.matches(name):
            stream = _open_below(self.home, parts)
            if stream is not None:
                with stream:
                    data = stream.read(MAX_FILE_BYTES + 1)
                return data if len(data) <= MAX_FILE_BYTES else None
        return None

    def lines_in(self, parts: tuple[str, ...]) -> Iterator[Object]:
        """The JSON objects in one file below HOME, one a line."""
        stream = _open_below(self.home, parts)
        if stream is not None:
            with stream:
                yield from json_lines(stream)

    def lines_of(self, name: str) -> Iterator[Object]:
        """The JSON objects in all files of ``name``, one a line."""
        for parts in self.matches(name):
            yield from self.lines_in(parts)

    def stdout_lines(self) -> Iterator[Object]:
        """The JSON objects on standard output, one a line."""
        with self.stdout.open("rb") as stream:
            yield from json_lines(stream)

    def last_line(self) -> bytes:
        """The last line of standard output that is not blank; empty when there is none or it is too long."""
        with self.stdout.open("rb") as stream:
            start = max(0, stream.seek(0, os.SEEK_END) - MAX_LINE_BYTES)
            stream.seek(start)
            lines = stream.read().rstrip().split(b"\n")
            return lines[-1] if start == 0 or len(lines) > 1 else b""


def _try_open(name: str, flags: int, parent: int | None = None) -> int | None:
    """A descriptor, or None when there is no such plain entry; other failures (a bad disk) are raised."""
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except OSError as error:
        if error.errno in _NOT_THERE:
            return None
        raise


def _match(
    folder: int, pattern: tuple[str, ...], prefix: tuple[str, ...], budget: list[int]
) -> Iterator[tuple[str, ...]]:
    head, rest = pattern[0], pattern[1:]
    if head == "**" and rest:
        yield from _match(folder, rest, prefix, budget)
    with os.scandir(folder) as entries:
        listed = list(islice(entries, max(0, budget[0])))
    budget[0] -= len(listed)
    for entry in listed:
        if head != "**" and not fnmatchcase(entry.name, head):
            continue
        here = (*prefix, entry.name)
        if not rest:
            if entry.is_file(follow_symlinks=False):
                yield here
        elif entry.is_dir(follow_symlinks=False) and len(here) < _MAX_DEPTH:
            below = _try_open(entry.name, _FOLDER, folder)
            if below is not None:
                try:
                    yield from _match(below, pattern if head == "**" else rest, here, budget)
                finally:
                    os.close(below)


def _open_below(root: Path, parts: tuple[str, ...]) -> BinaryIO | None:
    """Opens by descriptor, folder by folder, so that no link on the way is followed."""
    folder = _try_open(str(root), _FOLDER)
    for part in parts[:-1]:
        if folder is None:
            return None
        below = _try_open(part, _FOLDER, folder)
        os.close(folder)
        folder = below
    if folder is None:
        return None
    try:
        # O_NONBLOCK: opening a pipe that nobody writes to would wait for ever.
        handle = _try_open(parts[-1], os.O_RDONLY | os.O_NONBLOCK, folder)
    finally:
        os.close(folder)
    if handle is None:
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    return os.fdopen(handle, "rb")


def json_lines(stream: BinaryIO) -> Iterator[Object]:
    """The JSON objects of a stream, one a line (LF); lines that are cut or too long are passed over."""
    while line := stream.readline(MAX_LINE_BYTES + 1):
        whole = len(line) <= MAX_LINE_BYTES
        while not whole and line and not line.endswith(b"\n"):
            line = stream.readline(MAX_LINE_BYTES)
        value = json_value(line) if whole else None
        if isinstance(value, dict):
            yield value


def json_value(data: bytes) -> object:
    """The value of a JSON text, or None when it is none; bytes that are no UTF-8 are replaced."""
    try:
        return msgspec.json.decode(data)
    except (ValueError, RecursionError):
        pass
    # More lenient than the fast one: broken UTF-8, halves of surrogate pairs, NaN.
    try:
        return json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def json_bytes(value: object) -> bytes:
    """A value of ``json_value`` as JSON again."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        # Halves of surrogate pairs can only be written as escapes.
        return json.dumps(value).encode()


def mapping(value: object) -> Object:
    """The value as an object; anything else is an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[object]:
    """The value as a list; anything else is an empty one."""
    return value if isinstance(value, list) else []


def count(value: object) -> int | None:
    """The value as a count; None unless it is an integer (no bool) that is not negative and not absurd."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_COUNT:
        return value
    return None


def usd(value: object) -> float | None:
    """The value as an amount in USD; None unless it is a finite number (no bool) that is not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # The bounds come first: an integer may be too large for any float. A NaN is within none.
    return float(value) if 0 <= value <= _MAX_USD else None


def text(value: object) -> str | None:
    """The value as text that any column and file can hold, cut at MAX_TEXT; None unless it is text."""
    if not isinstance(value, str):
        return None
    return (
        value[:MAX_TEXT].encode("utf-8", "replace").decode("utf-8").replace("\0", "\N{REPLACEMENT CHARACTER}")
    )
