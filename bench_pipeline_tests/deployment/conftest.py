"""One small evaluation, measured in the plainest way: what every other deployment has to come to as well."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer

from bench_pipeline_tests.e2e.conftest import nothing_configured
from bench_pipeline_tests.e2e.projects import Project, without_clocks

__all__ = ["nothing_configured"]

TABLES = ("evaluation_cells", "verdicts", "evaluation_rankings", "paired_comparisons")
EVALUATION = "one"


NewProject = Callable[..., Project]


@pytest.fixture(scope="session")
def new_project(tmp_path_factory: pytest.TempPathFactory) -> NewProject:
    """Makes a project of two validated tasks and one evaluation of two setups, configured as told."""
    template = Project.new(tmp_path_factory.mktemp("template") / "project")
    template.task("alpha")
    template.task("beta", tier="standard")
    template.validate()
    template.acts(EVALUATION, "fix", "wrong")

    def make(root: Path, **config: object) -> Project:
        project = template.copied_to(root)
        project.configure(**config)
        return project

    return make


@pytest.fixture(scope="session")
def plain_tables(tmp_path_factory: pytest.TempPathFactory, new_project: NewProject) -> dict[str, list[str]]:
    """The tables of the evaluation, run in threads, with files and SQLite."""
    project = new_project(tmp_path_factory.mktemp("plain") / "project")
    ended = project.bench("run", EVALUATION)
    assert ended.status == 0, ended.err
    return tables_of(project)


def tables_of(project: Project) -> dict[str, list[str]]:
    """Every row that the evaluation comes to, without what a clock decided."""
    return {name: without_clocks(project.table(name)) for name in TABLES}


@pytest.fixture(scope="session")
def object_store() -> Iterator[str]:
    """The URL of a server on this machine that speaks S3."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()
