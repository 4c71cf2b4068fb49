"""A commit's change, split into hidden tests, reference and noise.

What belongs here: which changed file is which, and the two patches. What does not: whether a commit makes a
good task (``harvest``).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pathspec

from bench_pipeline.tasks.git import Repository
from bench_pipeline.tasks.patches import TouchedFile, read_patch

# Patterns are those of .gitignore: without a slash they match at any depth, with one at the end only folders.
TEST_PATTERNS = (
    "test/", "tests/", "Test/", "Tests/", "__tests__/", "__snapshots__/", "spec/", "specs/", "e2e/",
    "testdata/", "/t/", "*.Tests/", "test_*.*", "tests.py", "*_test.*", "*_tests.*", "*_spec.*", "*.test.*",
    "*.tests.*", "*.spec.*", "*Test.java", "*Tests.java", "*IT.java", "*Test.kt", "*Tests.kt", "*Test.cs",
    "*Tests.cs", "*Test.php", "*Tests.swift", "*Spec.scala", "*Spec.hs", "*.t", "conftest.py", "pytest.ini",
)  # fmt: skip
NOISE_PATTERNS = (
    "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "poetry.lock",
    "uv.lock", "pdm.lock", "Pipfile.lock", "Gemfile.lock", "composer.lock", "Cargo.lock", "flake.lock",
    "CHANGELOG", "CHANGELOG.*", "CHANGES", "CHANGES.*", "HISTORY", "HISTORY.*", "NEWS", "NEWS.*",
    "changelog.d/", ".changeset/", "newsfragments/", "AUTHORS", "AUTHORS.*", "CONTRIBUTORS", "CONTRIBUTORS.*",
    ".github/", ".gitlab/", ".gitlab-ci.yml", ".circleci/", ".travis.yml", "appveyor.yml", ".ci/",
    "azure-pipelines.yml", "Jenkinsfile", "/docs/**/*.png", "/docs/**/*.jpg", "/docs/**/*.gif",
    "/docs/**/*.svg", "__pycache__/", "*.py[co]",
)  # fmt: skip


# Said in full, because a repository may set any of them.
_EXACT = (
    "-r", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color",
    "--unified=3", "--inter-hunk-context=0", "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short",
    "--ignore-submodules=none", "--diff-algorithm=myers",
)  # fmt: skip


@dataclass(frozen=True)
class Patterns:
    """Which paths are tests and which are noise, as .gitignore patterns; noise is asked first."""

    tests: tuple[str, ...] = TEST_PATTERNS
    noise: tuple[str, ...] = NOISE_PATTERNS

    @classmethod
    def of(cls, tests: Sequence[str] | None, noise: Sequence[str] | None) -> "Patterns":
        """The project's patterns where it names any, else the defaults."""
        return cls(tuple(tests or TEST_PATTERNS), tuple(noise or NOISE_PATTERNS))

    def describing(self, paths: Iterable[str]) -> tuple[str, ...]:
        """The patterns by which ``paths`` are tests, in the order of the list, without any that names one file."""
        telling = [pattern for pattern in self.tests if pattern in TEST_PATTERNS or "*" in pattern]
        matching = pathspec.GitIgnoreSpec.from_lines
        files = list(paths)
        return tuple(pattern for pattern in telling if any(matching([pattern]).match_files(files)))

    @cached_property
    def _tests(self) -> pathspec.GitIgnoreSpec:
        return pathspec.GitIgnoreSpec.from_lines(self.tests)

    @cached_property
    def _noise(self) -> pathspec.GitIgnoreSpec:
        return pathspec.GitIgnoreSpec.from_lines(self.noise)

    def kind(self, path: str) -> str:
        """``noise``, ``test`` or ``source``."""
        if self._noise.match_file(path):
            return "noise"
        return "test" if self._tests.match_file(path) else "source"


@dataclass(frozen=True)
class Split:
    """The files of one commit by kind; a rename counts as a removal and a new file."""

    tests: tuple[TouchedFile, ...]
    reference: tuple[TouchedFile, ...]
    noise: tuple[TouchedFile, ...]

    @property
    def tests_patch(self) -> bytes:
        """The hidden tests as one Git-format patch to the base."""
        return b"".join(part.section for part in self.tests)

    @property
    def reference_patch(self) -> bytes:
        """The reference as one Git-format patch to the base."""
        return b"".join(part.section for part in self.reference)


def change_of(repository: Repository, base: str, commit: str) -> bytes:
    """The change between two commits as a patch that applies exactly: binary, full ids, no renames."""
    return repository.run(["diff-tree", *_EXACT, base, commit])


def split_change(patch: bytes, patterns: Patterns) -> Split:
    """The sections of a patch by kind, each in the order of the patch; PatchError when it cannot be read."""
    kinds: dict[str, list[TouchedFile]] = {"test": [], "source": [], "noise": []}
    for part in read_patch(patch):
        kinds[patterns.kind(part.paths[-1])].append(part)
    return Split(tuple(kinds["test"]), tuple(kinds["source"]), tuple(kinds["noise"]))
