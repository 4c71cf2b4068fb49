"""Completion signals: the grammar of what has to hold of a tree when a golden task is done.

What belongs here: a signal as text and as data. What does not: looking whether one holds (``execution.signals``)
and the task around it (``golden``).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from bench_pipeline.documents import nearest
from bench_pipeline.documents.fields import as_relative_path
from bench_pipeline.tasks.paths import path_problem

Kind = Literal[
    "path_exists",
    "glob_exists",
    "file_contains",
    "file_unchanged",
    "test_passes",
    "no_files_modified",
    "free_text",
]
_BARE: Final = "no_files_modified"
_NEEDLE = " :: "
_TYPED = re.compile(r"([a-z]+(?:_[a-z]+)+)\s*(?::\s*(.*))?", re.DOTALL)


@dataclass(frozen=True)
class Signal:
    """One completion signal: ``text`` as written, ``argument`` its path, glob or command.

    ``needle`` is the text that ``file_contains`` looks for; the argument of ``no_files_modified`` is empty, that
    of ``free_text``, which only a judge can settle, is the whole text.
    """

    kind: Kind
    argument: str
    needle: str | None
    text: str


@dataclass(frozen=True)
class SignalCheck:
    """How a candidate of a golden task is checked: by its signals, and by commands with expected outcomes.

    ``expected_tests`` maps a test command to whether it has to pass; ``allowed_paths`` are those that the task
    itself expects to change, runner configuration or not.
    """

    signals: tuple[Signal, ...]
    expected_tests: tuple[tuple[str, bool], ...] = ()
    allowed_paths: tuple[str, ...] = ()

    @property
    def tests(self) -> dict[str, bool]:
        """Every test command and whether it has to pass, those of signals too; each once, in order."""
        named = {signal.argument: True for signal in self.signals if signal.kind == "test_passes"}
        return {**named, **dict(self.expected_tests)}

    def document(self) -> dict[str, object]:
        """What of it decides a verdict, as a JSON-able document."""
        return {
            "signals": [signal.text for signal in self.signals],
            "expected_tests": [[command, outcome] for command, outcome in sorted(self.expected_tests)],
            "allowed_paths": sorted(self.allowed_paths),
        }


def parse_signal(text: str) -> Signal:
    """The signal that a text stands for; ValueError with a sentence when it is meant to be typed and is wrong."""
    written = text.strip()
    if not written:
        raise ValueError("expected a completion signal, found nothing")
    found = _TYPED.fullmatch(written)
    if found is None:
        return Signal("free_text", written, None, text)
    name, argument = found[1], found[2]
    if name == _BARE:
        if argument:
            raise ValueError(f"{_BARE} stands alone, found {argument!r} after it")
        return Signal(_BARE, "", None, text)
    if argument is None:
        if name in _ARGUMENTS:
            raise ValueError(f"{name} needs an argument, such as {_EXAMPLES[name]!r}")
        return Signal("free_text", written, None, text)
    read = _ARGUMENTS.get(name)
    if read is not None:
        return read(argument.strip(), text)
    close = nearest(name, [*_ARGUMENTS, _BARE])
    if close is not None:
        raise ValueError(
            f"there is no signal {name}; did you mean {close}? ({', '.join([*_ARGUMENTS, _BARE])})"
        )
    return Signal("free_text", written, None, text)


def _path_exists(argument: str, text: str) -> Signal:
    return Signal("path_exists", as_relative_path(argument), None, text)


def _glob_exists(argument: str, text: str) -> Signal:
    problem = path_problem(argument.removesuffix("/"))
    if problem:
        raise ValueError(f"expected a glob inside the workspace, found {problem}")
    return Signal("glob_exists", argument, None, text)


def _file_contains(argument: str, text: str) -> Signal:
    path, separator, needle = argument.partition(_NEEDLE)
    if not separator or not needle:
        raise ValueError(f"expected {_EXAMPLES['file_contains']!r}, found {argument!r}")
    return Signal("file_contains", as_relative_path(path.strip()), needle, text)


def _file_unchanged(argument: str, text: str) -> Signal:
    return Signal("file_unchanged", as_relative_path(argument), None, text)


def _test_passes(argument: str, text: str) -> Signal:
    if not argument:
        raise ValueError(f"expected a command, such as {_EXAMPLES['test_passes']!r}")
    return Signal("test_passes", argument, None, text)


_ARGUMENTS: dict[str, Callable[[str, str], Signal]] = {
    "path_exists": _path_exists,
    "glob_exists": _glob_exists,
    "file_contains": _file_contains,
    "file_unchanged": _file_unchanged,
    "test_passes": _test_passes,
}
_EXAMPLES = {
    "path_exists": "path_exists: docs/guide.md",
    "glob_exists": "glob_exists: tests/test_*.py",
    "file_contains": "file_contains: setup.py :: version = 2",
    "file_unchanged": "file_unchanged: tests/test_api.py",
    "test_passes": "test_passes: python3 -m unittest",
}
