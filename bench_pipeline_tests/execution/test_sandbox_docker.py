"""The docker backend: its arguments, and its conversation with an engine that is played by a script."""

import csv
import itertools
import os
import stat
import threading
from pathlib import Path

import pytest

from bench_pipeline.errors import SandboxError
from bench_pipeline.execution.sandbox import Command, Limits, Mount, Place
from bench_pipeline.execution.sandbox.docker import (
    DEFAULT_IMAGE,
    Docker,
    exec_arguments,
    run_arguments,
    variables,
)

# Runs the command of `docker exec` as a plain process and answers like an engine; every call is noted.
ENGINE = """#!/bin/sh
printf '%s\\n' "$*" >> "$DOCKER_FAKE/calls"
case "$1" in
run) echo 0123456789ab ;;
exec)
    if [ "$2" = --interactive ]; then
        echo $$ > "$DOCKER_FAKE/pid"
        while [ "$1" != /bin/sh ]; do shift; done
        exec "$@"
    fi
    kill -TERM "$(cat "$DOCKER_FAKE/pid")" ;;
top) printf 'PID\\n1\\n2\\n3\\n'; cat "$DOCKER_FAKE/left" 2>/dev/null ;;
inspect) cat "$DOCKER_FAKE/oom" 2>/dev/null || echo false ;;
rm) ;;
esac
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path / "tree", tmp_path / "home", tmp_path / "tmp")
    for folder in (place.tree, place.home, place.tmp):
        folder.mkdir()
    return place


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "engine"
    folder.mkdir()
    script = folder / "docker"
    script.write_text(ENGINE)
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("DOCKER_FAKE", str(folder))
    return folder


def calls(engine: Path) -> list[str]:
    return (engine / "calls").read_text().splitlines()


def pairs(words: list[str]) -> set[tuple[str, str]]:
    return set(itertools.pairwise(words))


def test_a_container_has_no_network_no_rights_and_a_read_only_system(place: Place) -> None:
    words = run_arguments("name", place, Limits(60), user="1000:1000")
    assert {"--read-only", "--rm", "--init", "--detach"} <= set(words)
    assert {
        ("--network", "none"),
        ("--cap-drop", "ALL"),
        ("--security-opt", "no-new-privileges"),
        ("--user", "1000:1000"),
        ("--ipc", "private"),
        ("--pull", "never"),
    } <= pairs(words)
    assert words[words.index("--") + 1] == DEFAULT_IMAGE


def test_the_limits_are_the_engines(place: Place) -> None:
    words = run_arguments("name", place, Limits(60, cpus=1.5, memory_bytes=1 << 30, pids=100), user="0:0")
    assert {("--cpus", "1.5"), ("--memory", "1073741824"), ("--memory-swap", "1073741824")} <= pairs(words)
    assert ("--pids-limit", "103") in pairs(words)
    unlimited = run_arguments("name", place, Limits(60), user="0:0")
    assert not {"--cpus", "--memory", "--pids-limit"} & set(unlimited)


def test_only_the_cells_folders_and_mounts_are_shown(place: Place, tmp_path: Path) -> None:
    odd = tmp_path / 'a,b "c"'
    full = Place(
        place.tree,
        place.home,
        place.tmp,
        handover=tmp_path / "h",
        mounts=(Mount(odd, "/opt/tool/x"),),
        image="i",
    )
    words = run_arguments("name", full, Limits(60), user="0:0")
    mounts = [next(csv.reader([value])) for word, value in itertools.pairwise(words) if word == "--mount"]
    assert mounts == [
        ["type=bind", f"source={place.tree}", "target=/workspace"],
        ["type=bind", f"source={place.home}", "target=/home/agent"],
        ["type=bind", f"source={place.tmp}", "target=/tmp"],
        ["type=bind", f"source={tmp_path / 'h'}", "target=/handover"],
        ["type=bind", f"source={odd}", "target=/opt/tool/x", "readonly"],
    ]
    assert words[words.index("--") + 1] == "i"


def test_values_of_variables_are_not_on_the_command_line() -> None:
    command = Command(("tool", "-x"), {"KEY": "a secret"})
    words = exec_arguments("name", command)
    assert "KEY" in words
    assert not any("secret" in word for word in words)
    assert variables(command)["KEY"] == "a secret"
    assert words[-2:] == ["tool", "-x"]


def test_a_command_runs_in_a_container_that_is_removed(engine: Path, place: Place, tmp_path: Path) -> None:
    end = Docker(str(engine / "docker")).run(
        Command(("sh", "-c", "cat; echo $KEY; exit 5"), {"KEY": "v"}, b"in\n"),
        place,
        Limits(60),
        stdout=tmp_path / "out",
        stderr=tmp_path / "err",
    )
    assert end.exit_code == 5
    assert end.stdout.read_text() == "in\nv\n"
    assert end.orphans == 0
    assert calls(engine)[0].startswith("run ")
    assert calls(engine)[-1].startswith("rm --force bench-")


def test_what_the_engine_counts_beside_its_own_processes_is_left_behind(
    engine: Path, place: Place, tmp_path: Path
) -> None:
    (engine / "left").write_text("77\n78\n")
    end = Docker(str(engine / "docker")).run(
        Command(("true",)), place, Limits(60), stdout=tmp_path / "out", stderr=tmp_path / "err"
    )
    assert end.orphans == 2


def test_a_container_out_of_memory_is_told_apart(engine: Path, place: Place, tmp_path: Path) -> None:
    (engine / "oom").write_text("true\n")
    end = Docker(str(engine / "docker")).run(
        Command(("sh", "-c", "exit 137")), place, Limits(60), stdout=tmp_path / "out", stderr=tmp_path / "err"
    )
    assert end.memory_killed


def test_cancelling_asks_inside_the_container_first(engine: Path, place: Place, tmp_path: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    end = Docker(str(engine / "docker")).run(
        Command(("sleep", "60")),
        place,
        Limits(60, grace_s=2),
        stdout=tmp_path / "out",
        stderr=tmp_path / "err",
        cancel=cancel,
    )
    assert end.cancelled
    assert any(call.startswith("exec bench-") and call.endswith("kill -TERM -1") for call in calls(engine))


def test_an_engine_that_does_not_start_the_container_is_an_error_with_its_words(
    engine: Path, place: Place, tmp_path: Path
) -> None:
    (engine / "docker").write_text("#!/bin/sh\necho no such image >&2; exit 125\n")
    with pytest.raises(SandboxError, match="no such image"):
        Docker(str(engine / "docker")).run(
            Command(("true",)), place, Limits(60), stdout=tmp_path / "out", stderr=tmp_path / "err"
        )


def test_variables_of_the_host_reach_only_the_docker_command(
    engine: Path, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_HOST", "x")
    end = Docker(str(engine / "docker")).run(
        Command(("env",)), place, Limits(60), stdout=tmp_path / "out", stderr=tmp_path / "err"
    )
    assert "SECRET_OF_THE_HOST" not in end.stdout.read_text()
    assert os.environ["SECRET_OF_THE_HOST"] == "x"
