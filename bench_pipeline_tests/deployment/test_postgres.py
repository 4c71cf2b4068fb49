"""Dagster's records in PostgreSQL: Debian's server, started by the test."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bench_pipeline_tests.deployment.conftest import EVALUATION, NewProject, tables_of

pytestmark = pytest.mark.services

# The server refuses to run as root; its package makes a user for it.
_USER = "postgres"


def _programs() -> Path:
    """Where Debian keeps the newest server's programs, which are not on everybody's PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    assert found, "the package postgresql is not installed"
    return found[-1].parent


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a database on a server of its own, reached through a socket in its folder alone."""
    # The path of a socket is short, and the server's user has to be able to walk to it.
    folder = Path("/tmp") / f"bench-postgres-{os.getpid()}"
    folder.mkdir(mode=0o700)
    as_user: Sequence[str] = ()
    if os.geteuid() == 0:
        shutil.chown(folder, _USER, _USER)
        as_user = ("setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups")
    data, log = folder / "data", folder / "log"

    def call(program: str, *words: str) -> None:
        # The server keeps what it was given as its output: a pipe would never end.
        with log.open("ab") as output:
            subprocess.run(
                [*as_user, str(_programs() / program), *words],
                check=True, cwd="/", stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=120,
            )  # fmt: skip

    try:
        call("initdb", "-D", str(data), "-U", "bench", "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        call("pg_ctl", "-D", str(data), "-w", "-o", options, "start")
        try:
            call("createdb", "-h", str(folder), "-U", "bench", "dagster")
            yield f"postgresql://bench@/dagster?host={folder}"
        finally:
            call("pg_ctl", "-D", str(data), "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


def test_the_same_evaluation_gives_the_same_tables_and_a_second_run_runs_nothing(
    tmp_path: Path, new_project: NewProject, plain_tables: dict[str, list[str]], server: str
) -> None:
    project = new_project(tmp_path / "project", dagster={"storage_url": server})
    first = project.bench("run", EVALUATION, "--json")
    assert (first.status, first.json["executed"]) == (0, 4), first.err
    assert tables_of(project) == plain_tables
    again = project.bench("run", EVALUATION, "--json")
    assert (again.status, again.json["executed"], again.json["reused"]) == (0, 0, 4), again.err

    from dagster import DagsterInstance

    home = project.root / ".bench" / "dagster"
    assert not list(home.rglob("*.db")), "no record is kept in files"
    with DagsterInstance.from_config(str(home)) as instance:
        assert [run.status.value for run in instance.get_runs()] == ["SUCCESS"] * 4


def test_a_server_that_is_away_is_one_clear_error(tmp_path: Path, new_project: NewProject) -> None:
    project = new_project(
        tmp_path / "project", dagster={"storage_url": f"postgresql://bench@/dagster?host={tmp_path}"}
    )
    ended = project.bench("run", EVALUATION)
    assert ended.status == 1
    assert ended.err.count("opening the Dagster instance") == 1
    assert "Traceback" not in ended.err
