"""Edits of shared files and new modules that steer a test runner, told apart from honest work."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.execution.overlay import Overlay
from bench_pipeline.execution.steering import steering_paths
from bench_pipeline.tasks.trees import LINK, PLAIN, TreeFile

PYPROJECT = """\
[project]
name = "shop"
dependencies = ["a"]

[tool.pytest.ini_options]
addopts = "-q"

[tool.ruff]
line-length = 100
"""
SETUP_CFG = "[metadata]\nname = shop\n\n[tool:pytest]\naddopts = -q\n"
PACKAGE = {"name": "shop", "dependencies": {"a": "1"}, "scripts": {"test": "jest"}, "jest": {"bail": 0}}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "setup.cfg").write_text(SETUP_CFG)
    (tmp_path / "package.json").write_text(json.dumps(PACKAGE))
    (tmp_path / "queue.py").write_text("mine = 1\n")
    (tmp_path / "calendar").mkdir()
    (tmp_path / "calendar" / "__init__.py").write_text("")
    return tmp_path


def found(base: Path, path: str, content: str | bytes, *, mode: str = PLAIN) -> bool:
    raw = content.encode() if isinstance(content, str) else content
    overlay = Overlay((TreeFile(path, mode, raw),))
    paths = steering_paths(base, overlay, ["checks/deep/test_hidden.py"])
    assert paths in ((), (path,))
    return bool(paths)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("pyproject.toml", 'addopts = "-q"', 'addopts = "-q --deselect tests/test_a.py"'),
        ("pyproject.toml", "[tool.pytest.ini_options]", "[tool.pytest]"),
        ("pyproject.toml", "[tool.ruff]", '[tool.tox]\nlegacy_tox_ini = "x"\n[tool.ruff]'),
        ("pyproject.toml", "[tool.ruff]", "[tool.coverage.run]\nplugins = ['x']\n[tool.ruff]"),
        ("setup.cfg", "addopts = -q", "addopts = -q -p no:x"),
        ("setup.cfg", "[metadata]", "[pytest]\naddopts = -x\n[metadata]"),
        ("setup.cfg", "[metadata]", "[aliases]\ntest = pytest --co\n[metadata]"),
        ("package.json", '"jest"}', '"true"}'),
        ("package.json", '"bail": 0', '"bail": 0, "testMatch": []'),
        ("package.json", '"jest": {', '"vitest": {'),
    ],
)
def test_a_changed_section_for_tests_is_found_in_a_shared_file(
    base: Path, path: str, old: str, new: str
) -> None:
    text = (base / path).read_text()
    assert old in text
    assert found(base, path, text.replace(old, new))


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("pyproject.toml", '["a"]', '["a", "b"]'),
        ("pyproject.toml", "line-length = 100", "line-length = 80"),
        ("pyproject.toml", "[tool.ruff]", "# a comment\n[tool.ruff]"),
        ("setup.cfg", "name = shop", "name = store"),
        ("package.json", '{"a": "1"}', '{"a": "2", "b": "1"}'),
    ],
)
def test_a_dependency_or_another_section_may_be_edited(base: Path, path: str, old: str, new: str) -> None:
    text = (base / path).read_text()
    assert old in text
    assert not found(base, path, text.replace(old, new))


@pytest.mark.parametrize(
    ("script", "steers"),
    [
        ("build", False), ("lint:fix", False),
        ("pretest", True), ("postinstall", True), ("prepare", True), ("install", True), ("test:unit", True),
    ],
)  # fmt: skip
def test_a_new_script_steers_when_something_runs_it_unasked(base: Path, script: str, steers: bool) -> None:
    added = PACKAGE | {"scripts": {**PACKAGE["scripts"], script: "true"}}
    assert found(base, "package.json", json.dumps(added)) is steers
    assert found(base, "pkg/package.json", json.dumps({"scripts": {script: "true"}})) is steers
    assert found(base, "package.json", json.dumps(added | {"scripts": {script: "true"}}))


def test_a_new_shared_file_is_found_only_with_a_section_for_tests(base: Path) -> None:
    assert found(base, "pkg/pyproject.toml", "[tool.pytest.ini_options]\n")
    assert not found(base, "pkg/pyproject.toml", "[project]\nname = 'x'\n")


def test_a_shared_file_that_is_removed_broken_replaced_by_a_link_or_huge_is_found(base: Path) -> None:
    assert steering_paths(base, Overlay(deletions=("setup.cfg",)), ()) == ("setup.cfg",)
    assert found(base, "setup.cfg", "no section\n")
    assert found(base, "pyproject.toml", b"\xff")
    assert found(base, "pyproject.toml", "elsewhere.toml", mode=LINK)
    assert found(base, "pyproject.toml", PYPROJECT + "#" * (1 << 20))
    assert found(base, "package.json", "[" * 100_000)


@pytest.mark.parametrize(
    "path",
    [
        "subprocess.py", "unittest/__init__.py", "pytest.py", "_pytest/__init__.py", "pytest_cov.py",
        "json.cpython-311-x86_64-linux-gnu.so", "checks/deep/os.py", "coverage/__init__.py",
    ],
)  # fmt: skip
def test_a_new_module_that_stands_before_the_library_or_the_runner_is_found(base: Path, path: str) -> None:
    assert found(base, path, "")


@pytest.mark.parametrize(
    "path",
    [
        "queue.py",  # the base has it
        "calendar/__init__.py",
        "calendar/json.py",  # not where tests look for modules
        "shop/subprocess.py",
        "test/__init__.py",
        "test/test_a.py",
        "statistics/notes.txt",
        "json/data.json",
        "parser_new.py",
        "subprocess.md",
    ],
)
def test_honest_new_modules_are_left_alone(base: Path, path: str) -> None:
    assert not found(base, path, "")


@given(path=st.sampled_from(["pyproject.toml", "setup.cfg", "package.json"]), content=st.binary(max_size=60))
def test_any_content_is_compared_without_a_fault(
    tmp_path_factory: pytest.TempPathFactory, path: str, content: bytes
) -> None:
    empty = tmp_path_factory.getbasetemp() / "steering-empty"
    os.makedirs(empty, exist_ok=True)
    steering_paths(empty, Overlay((TreeFile(path, PLAIN, content),)), ())
