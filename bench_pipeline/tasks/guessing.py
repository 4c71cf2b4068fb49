"""Which command would run a commit's tests: a first guess for a person to check.

What belongs here: from changed test files to a command. What does not: running it.
"""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

REPORT = "bench-junit.xml"


@dataclass(frozen=True)
class Guess:
    """A command that runs the tests, how it was found, and the test report it leaves, when it leaves one."""

    command: str
    why: str
    junit: str | None = None


def guess_command(tests: Mapping[str, bytes]) -> Guess | None:
    """A command for the given test files (path to content); None when none of them is known."""
    found = [guess for runner in _RUNNERS if (guess := runner(tests)) is not None]
    if not found:
        return None
    command = " && ".join(guess.command for guess in found)
    return Guess(
        command, "; ".join(guess.why for guess in found), found[0].junit if len(found) == 1 else None
    )


def _words(paths: Sequence[str]) -> str:
    return " ".join(shlex.quote(f"./{path}" if path.startswith("-") else path) for path in paths)


def _named(tests: Mapping[str, bytes], *patterns: str) -> list[str]:
    return sorted(
        path
        for path in tests
        if any(fnmatchcase(PurePosixPath(path).name, pattern) for pattern in patterns) and _printable(path)
    )


def _printable(path: str) -> bool:
    return path.isprintable()


def _python(tests: Mapping[str, bytes]) -> Guess | None:
    paths = _named(tests, "test_*.py", "*_test.py", "tests.py")
    if not paths:
        return None
    plain = all(b"unittest" in tests[path] and b"pytest" not in tests[path] for path in paths)
    if plain and all(part.isidentifier() for path in paths for part in path.removesuffix(".py").split("/")):
        return Guess(f"python3 -m unittest {_words(paths)}", "the changed Python tests use unittest")
    command = f"python3 -m pytest -q --junitxml={REPORT} {_words(paths)}"
    return Guess(command, "the changed Python tests look like pytest's", REPORT)


def _node(tests: Mapping[str, bytes]) -> Guess | None:
    paths = _named(
        tests, "*.test.js", "*.test.mjs", "*.test.cjs", "test-*.js", "*.spec.js", "*.test.ts", "*.spec.ts"
    )
    paths += [
        path
        for path in _named(tests, "*.js", "*.mjs", "*.cjs")
        if path not in paths and b"node:test" in tests[path]
    ]
    if not paths:
        return None
    if all(b"node:test" in tests[path] for path in paths):
        return Guess(f"node --test {_words(paths)}", "the changed JavaScript tests import node:test")
    return Guess(f"npm test -- {_words(paths)}", "the changed tests are JavaScript; npm test has to exist")


def _shell(tests: Mapping[str, bytes]) -> Guess | None:
    paths = _named(tests, "*.sh")
    if not paths:
        return None
    runs = [f"{_shell_of(tests[path])} {_words([path])}" for path in paths]
    return Guess(" && ".join(runs), "the changed tests are shell scripts")


def _shell_of(script: bytes) -> str:
    first_line = script.partition(b"\n")[0]
    return "bash" if first_line.startswith(b"#!") and b"bash" in first_line else "sh"


def _simple(
    patterns: Sequence[str], command: str, what: str
) -> Callable[[Mapping[str, bytes]], Guess | None]:
    def runner(tests: Mapping[str, bytes]) -> Guess | None:
        paths = _named(tests, *patterns)
        return Guess(f"{command} {_words(paths)}", f"the changed tests are {what}") if paths else None

    return runner


def _go(tests: Mapping[str, bytes]) -> Guess | None:
    folders = sorted({str(PurePosixPath(path).parent) for path in _named(tests, "*_test.go")})
    if not folders:
        return None
    packages = _words(["." if folder == "." else f"./{folder}" for folder in folders])
    return Guess(f"go test {packages}", "the changed tests are Go's")


def _rust(tests: Mapping[str, bytes]) -> Guess | None:
    return Guess("cargo test --offline", "the changed tests are Rust's") if _named(tests, "*.rs") else None


_RUNNERS: tuple[Callable[[Mapping[str, bytes]], Guess | None], ...] = (
    _python,
    _node,
    _shell,
    _simple(("*.t",), "prove", "Perl's"),
    _simple(("*_spec.rb",), "bundle exec rspec", "RSpec's"),
    _simple(("*.bats",), "bats", "for bats"),
    _go,
    _rust,
)
