"""What in a candidate steers the test runner although its files have other purposes too.

What belongs here: sections of shared configuration that differ from the base's, and new modules that stand before
the standard library's or the test runner's where tests import them. What does not: files whose only purpose is to
steer tests, and declared paths (``guard``). Nothing here is executed or followed; contents are compared as data.
"""

import configparser
import json
import sys
import tomllib
from collections.abc import Callable, Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Final, TypeVar

from bench_pipeline.execution.overlay import Overlay
from bench_pipeline.tasks.trees import LINK, TreeFile, read_file

Sections = Mapping[str, object]
T = TypeVar("T")

# Configuration is text that people write; a larger file is not compared, and counts as changed.
_MAX_BYTES: Final = 1 << 20
_TOML_TOOLS: Final = ("pytest*", "tox", "nox", "coverage", "poe", "taskipy")
_INI_SECTIONS: Final = (
    "pytest", "tool:pytest", "tox", "tox:*", "testenv*", "coverage:*", "nosetests", "unittest", "aliases",
)  # fmt: skip
_JSON_KEYS: Final = (
    "scripts",
    "jest",
    "vitest",
    "mocha",
    "ava",
    "nyc",
    "c8",
    "jasmine",
    "tap",
    "tasks",
    "test",
)
_SCRIPTS: Final = ("scripts", "tasks")
# Scripts that are run around others, at installation, or by a pattern of test scripts.
_HOOKS: Final = ("pre*", "post*", "test*", "install", "uninstall", "dependencies", "start", "stop", "restart")

# Names that tests import before, or instead of, the code that they test. Shadowing `test`, CPython's own test suite,
# changes no other test, and it is what many call their folder of tests.
_RUNNERS: Final = frozenset({
    "pytest", "_pytest", "pluggy", "iniconfig", "py", "xdist", "execnet", "nose", "nose2", "tox", "nox", "coverage",
    "hypothesis", "mock", "six", "packaging", "setuptools", "pkg_resources", "typing_extensions", "exceptiongroup",
})  # fmt: skip
_SHADOWED: Final = (_RUNNERS | sys.stdlib_module_names) - {"test"}
_MODULES: Final = (".py", ".so", ".pyd")


def steering_paths(base_tree: Path, overlay: Overlay, test_files: Collection[str]) -> tuple[str, ...]:
    """The touched paths that steer a test runner by their content or by their name, in the overlay's order.

    ``test_files`` are the paths of the hidden tests: their folders are where runners look for modules, as the root
    of the tree is.
    """
    after = {entry.path: entry for entry in overlay.entries}
    configuration = [
        path for path in overlay.touched_paths() if _reconfigures(base_tree, path, after.get(path))
    ]
    roots = {"", *(path.rpartition("/")[0] for path in test_files)}
    return (*configuration, *(path for path in after if _shadows(base_tree, path, roots)))


def _reconfigures(base_tree: Path, path: str, after: TreeFile | None) -> bool:
    """Whether a file that many things are configured in has other sections for tests than the base's has."""
    reader = _READERS.get(PurePosixPath(path).name)
    if reader is None:
        return False
    before, now = (_sections(reader, file) for file in (_base_file(base_tree, path), after))
    return now is None or before is None or before != _without_new_scripts(before, now)


def _without_new_scripts(before: Sections, now: Sections) -> Sections:
    """``now`` without scripts that the base lacks and nothing runs unasked: no check can have been written for them."""
    kept = dict(now)
    for section in _SCRIPTS:
        scripts, known = now.get(section), before.get(section, {})
        if isinstance(scripts, dict) and isinstance(known, dict):
            rest = {name: scripts[name] for name in scripts if name in known or _runs_unasked(name)}
            kept[section] = rest
            if not rest and section not in before:
                del kept[section]
    return kept


def _runs_unasked(script: str) -> bool:
    return any(fnmatchcase(script, pattern) for pattern in _HOOKS)


def _sections(reader: Callable[[str], Sections], file: TreeFile | None) -> Sections | None:
    """The sections for tests; none where no runner could read any, None where it cannot be told."""
    if file is None:
        return {}
    if file.mode == LINK or len(file.content) > _MAX_BYTES:
        return None
    try:
        return reader(file.content.decode("utf-8-sig"))
    except (ValueError, configparser.Error):
        return {}
    except RecursionError:
        return None


def _toml_sections(text: str) -> Sections:
    tools = tomllib.loads(text).get("tool")
    return _chosen(tools if isinstance(tools, dict) else {}, _TOML_TOOLS)


def _ini_sections(text: str) -> Sections:
    parser = configparser.ConfigParser(strict=False, interpolation=None, allow_no_value=True)
    parser.read_string(text)
    return {name: dict(items) for name, items in _chosen(dict(parser), _INI_SECTIONS).items()}


def _json_sections(text: str) -> Sections:
    document = json.loads(text)
    return _chosen(document if isinstance(document, dict) else {}, _JSON_KEYS)


def _chosen(sections: Mapping[str, T], patterns: Collection[str]) -> dict[str, T]:
    return {name: item for name, item in sections.items() if any(fnmatchcase(name, p) for p in patterns)}


_READERS: Final[Mapping[str, Callable[[str], Sections]]] = {
    "pyproject.toml": _toml_sections,
    "setup.cfg": _ini_sections,
    "package.json": _json_sections,
    "composer.json": _json_sections,
    "deno.json": _json_sections,
}


def _shadows(base_tree: Path, path: str, roots: Collection[str]) -> bool:
    """Whether a file makes a module that the base has not, under a name that tests import from elsewhere."""
    folder, _, name = path.rpartition("/")
    if name == "__init__.py":
        folder, _, module = folder.rpartition("/")
    elif name.endswith(_MODULES):
        module = name.partition(".")[0]
    else:
        return False
    is_runner = module in _SHADOWED or module.startswith("pytest_")
    prefix = f"{folder}/" if folder else ""
    known = (f"{prefix}{module}.py", f"{prefix}{module}/__init__.py", path)
    return is_runner and folder in roots and not any(_base_file(base_tree, each) for each in known)


def _base_file(base_tree: Path, path: str) -> TreeFile | None:
    try:
        return read_file(base_tree, path)
    except ValueError:
        return None
