"""Which sandbox is opened, and what is said when there is none."""

import json
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench_pipeline.errors import SandboxError, UsageError
from bench_pipeline.execution.sandbox import Mount, Place, Sandbox, choose, open_sandbox
from bench_pipeline.execution.sandbox.bubblewrap import Bubblewrap
from bench_pipeline.execution.sandbox.docker import Docker
from bench_pipeline.execution.sandbox.process import Process

ALL: list[Sandbox] = [Bubblewrap("bwrap"), Docker("docker"), Process()]


@pytest.fixture(autouse=True)
def _asked_afresh() -> Iterator[None]:
    for probe in (choose._bubblewrap, choose._docker):
        probe.cache_clear()
    yield
    for probe in (choose._bubblewrap, choose._docker):
        probe.cache_clear()


def program(folder: Path, name: str, script: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole search path."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_without_any_backend_the_error_says_what_to_install_and_what_to_set(only: Path) -> None:
    with pytest.raises(SandboxError) as caught:
        open_sandbox("auto", allow_process=False)
    text = str(caught.value)
    assert "apt-get install bubblewrap" in text
    assert "docker is not installed" in text
    assert "sandbox.allow_process: true" in text


def test_plain_processes_are_used_only_when_that_is_allowed_and_are_said_loudly(only: Path) -> None:
    sandbox = open_sandbox("auto", allow_process=True)
    assert sandbox.name == "process"
    assert not sandbox.isolates
    assert sandbox.notice is not None
    assert "no isolation" in sandbox.notice
    assert "\n" not in sandbox.notice


def test_naming_the_process_backend_is_an_opt_in(only: Path) -> None:
    assert open_sandbox("process", allow_process=False).name == "process"


def test_an_old_bubblewrap_is_not_used(only: Path) -> None:
    program(only, "bwrap", "echo bubblewrap 0.6.2")
    with pytest.raises(SandboxError, match=r"bubblewrap 0\.6\.2, 0\.8 or newer is needed"):
        open_sandbox("bubblewrap", allow_process=True)


def test_a_bubblewrap_that_cannot_start_a_sandbox_is_not_used_and_its_words_are_shown(only: Path) -> None:
    program(
        only,
        "bwrap",
        '[ "$1" = --version ] && echo bubblewrap 0.11.0 && exit; echo bwrap: no leave >&2; exit 1',
    )
    with pytest.raises(SandboxError, match="bwrap: no leave"):
        open_sandbox("bubblewrap", allow_process=True)


def test_docker_is_used_when_bubblewrap_is_not_there_and_an_engine_answers(only: Path) -> None:
    program(only, "docker", "echo 27.0")
    assert open_sandbox("auto", allow_process=True).name == "docker"


def test_docker_without_an_engine_is_not_used(only: Path) -> None:
    program(only, "docker", "echo Cannot connect to the Docker daemon >&2; exit 1")
    with pytest.raises(SandboxError, match="no engine: Cannot connect"):
        open_sandbox("docker", allow_process=True)


def test_another_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="bubblewrap, docker, process"):
        open_sandbox("chroot", allow_process=True)


@pytest.mark.services
def test_bubblewrap_comes_first() -> None:
    assert shutil.which("bwrap")
    assert open_sandbox("auto", allow_process=True).name == "bubblewrap"


@pytest.mark.parametrize("sandbox", ALL, ids=lambda sandbox: sandbox.name)
def test_a_policy_is_the_same_on_every_machine(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    before = json.dumps(sandbox.policy(), sort_keys=True)
    monkeypatch.setenv("HOME", "/somewhere/else")
    monkeypatch.setenv("PATH", "/nowhere")
    assert json.dumps(sandbox.policy(), sort_keys=True) == before
    assert os.getcwd() not in before
    assert json.loads(before)["backend"] == sandbox.name


@pytest.mark.parametrize("sandbox", ALL, ids=lambda sandbox: sandbox.name)
def test_a_view_names_what_the_place_has(sandbox: Sandbox, tmp_path: Path) -> None:
    bare = Place(tmp_path / "tree", tmp_path / "home", tmp_path / "tmp")
    assert (sandbox.view(bare).handover, sandbox.view(bare).files) == (None, None)
    full = Place(
        tmp_path / "tree",
        tmp_path / "home",
        tmp_path / "tmp",
        handover=tmp_path / "handover",
        mounts=(Mount(tmp_path / "project" / "scripts" / "a.py", "/opt/tool/scripts/a.py"),),
    )
    paths = sandbox.view(full)
    if sandbox.isolates:
        assert (paths.handover, paths.files) == ("/handover", "/opt/tool")
        assert (paths.tree, paths.home, paths.tmp) == ("/workspace", "/home/agent", "/tmp")
    else:
        assert paths.handover == str(tmp_path / "handover")
        assert paths.files == str(tmp_path / "project")


def test_a_scratch_place_shares_the_tree_and_nothing_else(tmp_path: Path) -> None:
    place = Place(tmp_path / "tree", tmp_path / "home", tmp_path / "tmp", handover=tmp_path / "handover")
    scratch = place.scratch()
    assert scratch.tree == place.tree
    assert scratch.handover is None
    assert len({place.home, place.tmp, scratch.home, scratch.tmp}) == 4
    assert not any(scratch.home.iterdir())
    assert place.scratch().home != scratch.home
