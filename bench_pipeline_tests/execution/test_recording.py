"""The scope that a cell's journal records: resolved when it runs, and never about what another place is called."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench_pipeline.execution.job import Kit
from bench_pipeline.execution.recording import scope_of
from bench_pipeline.execution.redaction import Redactor
from bench_pipeline.execution.sandbox import Place, PlacePaths

INSIDE = PlacePaths("/workspace", "/home/agent", "/tmp", None, None)


class _Sandbox:
    """A sandbox that only says where things are."""

    name = "fake"
    notice = None

    def __init__(self, view: PlacePaths, *, isolates: bool) -> None:
        self.isolates = isolates
        self._view = view

    def view(self, _: Place) -> PlacePaths:
        return self._view


def _kit(view: PlacePaths, *denied: Path, isolates: bool) -> Kit:
    sandbox: Any = _Sandbox(view, isolates=isolates)
    nowhere: Any = None
    return Kit(sandbox, nowhere, nowhere, nowhere, Redactor({}), denied, threading.Event())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    for name in ("tree", "home", "tmp"):
        (tmp_path / name).mkdir()
    return Place(tmp_path / "tree", tmp_path / "home", tmp_path / "tmp")


@pytest.mark.parametrize("project", ["/workspace", "/workspace/app", "/home/agent/app", "/tmp/app", "/home"])
def test_a_project_that_is_called_like_the_tree_inside_denies_nothing_there(
    place: Place, project: str
) -> None:
    scope = scope_of(_kit(INSIDE, Path(project), isolates=True), place, [])
    for path in ("app/a.py", "/workspace/a.py", "~/app/a.py", "/tmp/app/a.py", "/usr/lib/a.py"):
        assert scope.of_path(path) is None, path


def test_a_folder_of_the_host_that_is_seen_inside_is_denied(place: Place) -> None:
    scope = scope_of(_kit(INSIDE, Path("/usr/lib/python3/bench"), isolates=True), place, [])
    assert scope.of_path("/usr/lib/python3/bench/golden/a.md") == "out_of_scope_path"
    assert scope.of_path("/usr/lib/python3/json/decoder.py") is None


def test_without_isolation_both_spellings_of_the_tree_are_roots_and_other_cells_are_denied(
    place: Place, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(place.tree)
    view = replace(INSIDE, tree=str(link), home=str(place.home), tmp=str(place.tmp))
    scope = scope_of(_kit(view, tmp_path, isolates=False), place, [])
    assert scope.roots == (str(place.tree.resolve()), str(link))
    assert scope.of_path(str(place.tree / "a.py")) is None
    assert scope.of_path(str(link / "a.py")) is None
    assert scope.of_path(str(place.home / "notes")) is None
    assert scope.of_path(str(tmp_path / "golden" / "a.md")) == "out_of_scope_path"
    assert scope.of_path("../other/tree/a.py") == "out_of_scope_path"
    assert scope.relative(str(link / "src/a.py")) == "src/a.py"
    assert scope.relative(str(tmp_path)) is None


def test_a_server_of_the_agents_own_is_in_scope_and_nothing_else_is(place: Place) -> None:
    scope = scope_of(_kit(INSIDE, isolates=True), place, [])
    assert scope.of_endpoint("http://127.0.0.1:8000/") is None
    assert scope.of_endpoint("https://api.example/") == "out_of_scope_endpoint"
