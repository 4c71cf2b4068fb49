"""``bench doctor`` tries what it claims, tells what does not work and why, and leaves nothing behind."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bench_pipeline.cli.main import bench
from bench_pipeline.errors import SandboxError
from bench_pipeline.execution.sandbox import open_sandbox
from bench_pipeline.pipeline.initialising import initialise


@pytest.fixture(autouse=True)
def nothing_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    for name in ("BENCH_PROJECT", "DAGSTER_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return initialise(tmp_path / "project").project


def doctor(project: Path) -> tuple[int, dict[str, dict[str, str]]]:
    """The exit status and the first check of each name."""
    result = CliRunner().invoke(bench, ["doctor", "--project", str(project), "--json"], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    document = json.loads(result.output)
    status = result.return_value
    assert document["ok"] == (status == 0)
    return status, {check["check"]: check for check in reversed(document["checks"])}


def only(backend: str) -> Callable[..., Any]:
    """``open_sandbox`` on a machine where one backend works."""

    def opened(asked: str, allow_process: bool) -> Any:
        if asked == backend or (asked == "auto" and backend == "process" and allow_process):
            return open_sandbox("process", allow_process=True)
        raise SandboxError("opening a sandbox", "bubblewrap is not installed", "install bubblewrap")

    return opened


def test_versions_git_store_and_project_are_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_pipeline.execution.sandbox.open_sandbox", only("process"))
    _, checks = doctor(project)
    for name in ("bench_pipeline", "python", "dagster", "pyarrow", "git", "project", "store", "disk"):
        assert checks[name]["status"] == "ok", checks[name]
    assert checks["project"]["found"] == str(project)
    assert str(project / ".bench") in checks["store"]["found"]


def test_without_any_sandbox_the_reason_and_the_remedy_are_told(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench_pipeline.execution.sandbox.open_sandbox", only("none"))
    status, checks = doctor(project)
    assert status == 1
    assert checks["sandbox bubblewrap"]["status"] == "note"
    assert checks["sandbox of the project"]["status"] == "problem"
    assert checks["sandbox of the project"]["advice"] == "install bubblewrap"


def test_running_without_isolation_is_said_loudly_and_unenforced_limits_are_listed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench_pipeline.execution.sandbox.open_sandbox", only("process"))
    config = project / "config.yaml"
    config.write_text(config.read_text() + "sandbox: {allow_process: true}\n")
    status, checks = doctor(project)
    assert status == 0
    assert "no isolation" in checks["sandbox process"]["found"]
    assert checks["sandbox of the project"]["status"] == "note"
    assert "limits of process" in checks


@pytest.mark.services
def test_bubblewrap_is_tried_by_running_a_command(project: Path) -> None:
    status, checks = doctor(project)
    assert status == 0
    assert checks["sandbox bubblewrap"]["status"] == "ok"
    assert checks["sandbox of the project"]["found"] == "bubblewrap"


def test_problems_of_documents_are_told_not_raised(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_pipeline.execution.sandbox.open_sandbox", only("process"))
    (project / "tools" / "broken.yaml").write_text("kind: Tool\n")
    (project / "tasks" / "broken").mkdir()
    (project / "tasks" / "broken" / "task.yaml").write_text("kind: Task\n")
    status, checks = doctor(project)
    assert status == 1
    assert "broken.yaml" in checks["tools"]["found"]
    assert "task.yaml" in checks["tasks"]["found"]


def test_a_broken_project_is_a_problem_and_the_machine_is_still_looked_at(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench_pipeline.execution.sandbox.open_sandbox", only("process"))
    (project / "config.yaml").write_text("kind: Project\n")
    status, checks = doctor(project)
    assert status == 1
    assert checks["project"]["status"] == "problem"
    assert checks["sandbox process"]["status"] == "ok"


def test_a_store_that_cannot_be_written_is_a_problem(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_pipeline.execution.sandbox.open_sandbox", only("process"))
    config = project / "config.yaml"
    config.write_text(config.read_text() + "results: occupied/store\n")
    (project / "occupied").write_text("a file, not a folder")
    status, checks = doctor(project)
    assert status == 1
    assert checks["store"]["status"] == "problem"


def test_dagster_home_has_to_be_an_absolute_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_pipeline.execution.sandbox.open_sandbox", only("process"))
    for value in ("relative", str(project / "absent")):
        monkeypatch.setenv("DAGSTER_HOME", value)
        assert doctor(project)[1]["DAGSTER_HOME"]["status"] == "problem"
    monkeypatch.setenv("DAGSTER_HOME", str(project))
    assert doctor(project)[1]["DAGSTER_HOME"]["status"] == "ok"
    monkeypatch.delenv("DAGSTER_HOME")
    assert str(project / ".bench" / "dagster") in doctor(project)[1]["DAGSTER_HOME"]["found"]


def test_a_database_needs_its_library(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_pipeline.execution.sandbox.open_sandbox", only("process"))
    config = project / "config.yaml"
    config.write_text(config.read_text() + "dagster: {storage_url: 'postgresql://localhost/bench'}\n")
    assert "Dagster storage" not in doctor(project)[1]
    monkeypatch.setattr("bench_pipeline.pipeline.diagnosing.find_spec", lambda _: None)
    status, checks = doctor(project)
    assert status == 1
    assert "bench-pipeline[postgres]" in checks["Dagster storage"]["advice"]


def test_nothing_is_left_behind(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_pipeline.execution.sandbox.open_sandbox", only("process"))
    config = project / "config.yaml"
    config.write_text(config.read_text() + "results: elsewhere\n")
    before = {path for path in project.rglob("*") if "__pycache__" not in path.parts}
    doctor(project)
    assert {path for path in project.rglob("*") if "__pycache__" not in path.parts} == before
