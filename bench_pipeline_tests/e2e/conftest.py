"""A validated project for every test to copy: validating costs seconds, copying milliseconds."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bench_pipeline_tests.e2e.projects import BRIEF, HASTY, TASKS, Project


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Five tasks in two tiers and two of little time, validated by ``bench task validate``."""
    project = Project.new(tmp_path_factory.mktemp("template") / "project")
    for number, name in enumerate(TASKS):
        project.task(name, tier="smoke" if number < 3 else "standard")
    project.task(HASTY, timeout="4s")
    project.task(BRIEF, verify={"timeout": "5s"})
    project.validate()
    return project


Make = Callable[..., Project]


@pytest.fixture(scope="module")
def make(template: Project, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Makes copies of the template with the named tasks (one by default)."""

    def copy(*tasks: str) -> Project:
        project = template.copied_to(tmp_path_factory.mktemp("e2e") / "project")
        wanted = tasks or TASKS[:1]
        for name in {*TASKS, HASTY, BRIEF} - set(wanted):
            shutil.rmtree(project.root / "tasks" / name)
        return project

    return copy


@pytest.fixture(autouse=True)
def nothing_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration of the person who runs the tests reaches them."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-config"))
    for name in ("BENCH_PROJECT", "DAGSTER_HOME"):
        monkeypatch.delenv(name, raising=False)
