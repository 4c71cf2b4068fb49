"""Which folder is the project: the one named, else the nearest above, else the example in a checkout."""

from pathlib import Path

import pytest

from bench_pipeline.errors import DocumentError, NotFoundError
from bench_pipeline.project import find_project

HEAD = "apiVersion: bench.ber.run/v1alpha1\nkind: Project\n"


@pytest.fixture(autouse=True)
def nothing_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("BENCH_PROJECT", raising=False)


def project(folder: Path, body: str = HEAD) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(body)
    return folder


def test_the_nearest_project_above_the_working_directory_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path / "outer")
    inner = project(tmp_path / "outer" / "inner")
    deep = inner / "evaluations" / "deep"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    found = find_project()
    assert found.root == inner
    assert found.config_path == inner / "config.yaml"
    assert found.tasks_dir == inner / "tasks"


def test_a_project_may_live_inside_another_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nested = project(tmp_path / "repo" / ".ber" / "bench")
    source = tmp_path / "repo" / "src"
    source.mkdir()
    for place in (source, tmp_path / "repo", nested):
        monkeypatch.chdir(place)
        assert find_project().root == nested
    assert find_project(tmp_path / "repo").root == nested


def test_a_config_file_of_another_program_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer = project(tmp_path / "outer")
    other = project(outer / "other", "kind: Projectile\nport: 80\n")
    monkeypatch.chdir(other)
    assert find_project().root == outer
    with pytest.raises(NotFoundError, match="bench init"):
        find_project(other)


def test_a_broken_project_is_told_and_never_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path / "outer")
    broken = project(tmp_path / "outer" / "broken", HEAD + "defaults: [\n")
    monkeypatch.chdir(broken)
    with pytest.raises(DocumentError) as caught:
        find_project()
    assert caught.value.problems[0].file == str(broken / "config.yaml")


def test_a_named_project_comes_before_the_environment_and_that_before_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named, from_environment, here = (project(tmp_path / name) for name in ("named", "environment", "here"))
    monkeypatch.chdir(here)
    assert find_project().root == here
    monkeypatch.setenv("BENCH_PROJECT", str(from_environment))
    assert find_project().root == from_environment
    assert find_project(named).root == named
    monkeypatch.chdir(tmp_path)
    assert find_project(Path("named")).root == named


def test_a_named_folder_that_is_no_project_is_an_error_even_below_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer = project(tmp_path / "outer")
    (outer / "empty").mkdir()
    monkeypatch.setenv("BENCH_PROJECT", str(outer / "empty"))
    with pytest.raises(NotFoundError, match="empty"):
        find_project()


def test_without_a_project_the_error_says_to_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFoundError, match="bench init DIR"):
        find_project()


def test_in_a_source_checkout_the_example_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "checkout"
    package = checkout / "bench_pipeline"
    package.mkdir(parents=True)
    (checkout / "pyproject.toml").touch()
    example = project(checkout / "data")
    monkeypatch.setattr("bench_pipeline.project.__file__", str(package / "project.py"))
    monkeypatch.chdir(package)
    assert find_project().root == example
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFoundError):
        find_project()
