"""Which paths a candidate may not touch, and whether it did.

Names only: what contents and new modules do to a test runner is ``steering``'s, what a violation means is
``outcome``'s.
"""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

# Files whose only purpose is to steer a test runner: by changing one, a candidate can pass without a fix.
RUNNER_CONFIGURATION = (
    "conftest.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "noxfile.py",
    ".coveragerc",
    "sitecustomize.py",
    "usercustomize.py",
    "*.pth",
    "nose2.cfg",
    "unittest.cfg",
    "jest.config.*",
    "vitest.config.*",
    "karma.conf.*",
    "playwright.config.*",
    ".mocharc.*",
    "phpunit.xml*",
    ".rspec",
    ".proverc",
    "ava.config.*",
    "cypress.config.*",
    "wdio.conf.*",
    "jasmine.json",
    "nextest.toml",
    "junit-platform.properties",
    "*.runsettings",
)


def protected(path: str, pattern: str) -> bool:
    """Whether ``pattern`` covers ``path``: a glob, a folder or file by prefix; case is kept.

    ``tests`` and ``tests/`` cover everything below that folder; ``*`` and ``**`` cross folders.
    """
    pattern = pattern.rstrip("/")
    if any(mark in pattern for mark in "*?["):
        return fnmatchcase(path, pattern) or fnmatchcase(path, f"{pattern}/*")
    return path == pattern or path.startswith(f"{pattern}/")


def is_runner_configuration(path: str) -> bool:
    """Whether the file's name is one of RUNNER_CONFIGURATION, in any folder."""
    name = PurePosixPath(path).name
    return any(fnmatchcase(name, pattern) for pattern in RUNNER_CONFIGURATION)


def violations(
    touched: Iterable[str],
    *,
    declared: Sequence[str],
    brought_by_tests: Iterable[str],
    touched_by_reference: Iterable[str],
) -> tuple[str, ...]:
    """The touched paths that are protected, sorted.

    Protected are the ``declared`` patterns, the files that only the hidden tests bring, and runner
    configuration that the reference leaves alone. Removed and renamed-away paths count as touched.
    """
    hidden = set(brought_by_tests)
    allowed = set(touched_by_reference)
    return tuple(
        sorted(
            path
            for path in set(touched)
            if path in hidden
            or any(protected(path, pattern) for pattern in declared)
            or (is_runner_configuration(path) and path not in allowed)
        )
    )
