"""The harness's own checks: which a workspace calls for, the commands of each, and the label it earns.

What belongs here: names, commands, labels, and which files of a workspace are tests. What does not: running anything
(``live``). Checks run after the agent, in the tree as it left it, but for the tests that were there at the start: these
are put back, so that no agent passes by rewriting them.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class HarnessCheck:
    """A check by name: when it applies, and the shell commands that all have to succeed."""

    name: str
    commands: tuple[str, ...]
    applies: Callable[[Path], bool]


def _has_file(name: str) -> Callable[[Path], bool]:
    return lambda tree: (tree / name).is_file() and not (tree / name).is_symlink()


def _has_python_tests(tree: Path) -> bool:
    folders = [tree, *(tree / name for name in ("test", "tests"))]
    return any(
        path.is_file() and not path.is_symlink()
        for folder in folders
        if folder.is_dir() and not folder.is_symlink()
        for path in folder.glob("test_*.py")
    )


# Standard modules come before the tree's own, and no tests at all are no success.
_PYTHON_TESTS = """\
python3 -B -P -c "import sys, os, unittest
sys.path.append('.')
load = unittest.TestLoader().discover
found = [load(at, 'test_*.py') for at in ('.', 'tests', 'test') if os.path.isdir(at)]
result = unittest.TextTestRunner().run(unittest.TestSuite(found))
sys.exit(not (result.testsRun and result.wasSuccessful()))"\
"""
_TESTS = re.compile(r"test\.(js|sh)|(.*/)?test_[^/]*\.py|tests?/.*")

CHECKS: tuple[HarnessCheck, ...] = (
    HarnessCheck("rust-checks", ("cargo check --offline", "cargo test --offline"), _has_file("Cargo.toml")),
    HarnessCheck("node-fixture-test", ("node test.js",), _has_file("test.js")),
    HarnessCheck("python-tests", (_PYTHON_TESTS,), _has_python_tests),
    HarnessCheck("shell-fixture-test", ("sh test.sh",), _has_file("test.sh")),
)
CHECK_NAMES = frozenset(check.name for check in CHECKS)


def checks_for(tree: Path) -> Iterator[HarnessCheck]:
    """The checks that a tree calls for, in a fixed order."""
    return (check for check in CHECKS if check.applies(tree))


def is_test(path: str) -> bool:
    """Whether a file of a workspace, by its path below it, belongs to the tests that checks run."""
    return _TESTS.fullmatch(path) is not None


def label(name: str, *, passed: bool) -> str:
    """The text of a check's evidence; its commands stand beside it."""
    return f"{name} {'passed' if passed else 'failed'}"
