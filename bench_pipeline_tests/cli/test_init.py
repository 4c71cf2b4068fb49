"""``bench init`` makes a project that works at once, replaces no file, and may be run again."""

import json
import re
import stat
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml
from click.testing import CliRunner, Result

from bench_pipeline.cli.init import init
from bench_pipeline.documents import StrictModel, load_yaml_bytes, read_document
from bench_pipeline.errors import BenchError, DocumentError, RefusedError
from bench_pipeline.pipeline.initialising import (
    initialise,
    write_instance_config,
    write_workspace,
)
from bench_pipeline.project import ProjectConfig, find_project, load_project


@pytest.fixture(autouse=True)
def nothing_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    for name in ("BENCH_PROJECT", "DAGSTER_HOME"):
        monkeypatch.delenv(name, raising=False)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(init, list(arguments), catch_exceptions=False)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_new_project_is_found_and_its_example_resolves(tmp_path: Path) -> None:
    from bench_pipeline.evaluations import load_evaluation, resolve
    from bench_pipeline.registry import Registry

    folder = tmp_path / "deep" / "project"
    result = run(str(folder))
    assert result.exit_code == 0
    project = find_project(folder)
    assert project.config == ProjectConfig()
    for name in ("evaluations", "tools", "tasks", "predictions"):
        assert (folder / name).is_dir()
    registry = Registry.load(project.root, tmp_path / "xdg")
    resolution = resolve(project, registry, load_evaluation(project, "example"))
    assert [setup.tool for setup in resolution.setups] == ["shell"]


def test_the_next_steps_are_commands_that_exist(tmp_path: Path) -> None:
    from bench_pipeline.cli.main import COMMANDS

    output = run(str(tmp_path / "a b")).output
    commands = re.findall(r"^  bench (\S+)", output, re.MULTILINE)
    assert commands == ["doctor", "task", "task", "evaluation", "run", "rank"]
    assert set(commands) <= set(COMMANDS)
    assert f"cd '{tmp_path / 'a b'}'" in output


def test_a_second_run_changes_nothing_and_says_what_it_left_alone(tmp_path: Path) -> None:
    first = run(str(tmp_path / "p"))
    before = contents(tmp_path / "p")
    second = run(str(tmp_path / "p"))
    assert contents(tmp_path / "p") == before
    for name in ("config.yaml", "evaluations/example.yaml", ".gitignore"):
        assert f"wrote {name}" in first.output
        assert f"left alone {name}" in second.output
    assert "wrote" not in second.output


def test_files_that_are_there_are_never_replaced(tmp_path: Path) -> None:
    config = "apiVersion: bench.ber.run/v1alpha1\nkind: Project\ntries: 7\n"
    (tmp_path / "config.yaml").write_text(config)
    (tmp_path / "evaluations").mkdir()
    (tmp_path / "evaluations" / "mine.yaml").write_text("not even valid: [")
    result = initialise(tmp_path)
    assert (tmp_path / "config.yaml").read_text() == config
    assert (tmp_path / "evaluations" / "mine.yaml").read_text() == "not even valid: ["
    assert not (tmp_path / "evaluations" / "example.yaml").exists()
    assert tmp_path / "config.yaml" in result.left_alone


def test_gitignore_gets_one_line_and_keeps_the_others(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_bytes(b"*.pyc\r\n# no line end")
    initialise(tmp_path)
    assert (tmp_path / ".gitignore").read_bytes() == b"*.pyc\r\n# no line end\n.bench/\n"
    initialise(tmp_path)
    assert (tmp_path / ".gitignore").read_bytes().count(b".bench") == 1


@pytest.mark.parametrize("line", [".bench", ".bench/", "/.bench/", "  .bench/\r"])
def test_a_gitignore_that_names_the_store_is_left_alone(tmp_path: Path, line: str) -> None:
    (tmp_path / ".gitignore").write_text(f"{line}\n", newline="")
    assert tmp_path / ".gitignore" in initialise(tmp_path).left_alone


def test_git_ignores_what_a_run_leaves_behind(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    initialise(tmp_path)
    status = ["git", "-C", str(tmp_path), "status", "--porcelain", "--untracked-files=all"]
    listed = subprocess.run(status, check=True, capture_output=True, text=True).stdout
    assert {line[3:] for line in listed.splitlines()} == {
        ".gitignore",
        "config.yaml",
        "evaluations/example.yaml",
    }


def test_links_are_not_followed_out_of_the_project(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    project = tmp_path / "project"
    project.mkdir()
    (project / ".gitignore").symlink_to(outside)
    (project / "evaluations").mkdir()
    (project / "evaluations" / "example.yaml").symlink_to(outside)
    initialise(project)
    assert not outside.exists()


def test_a_folder_of_another_program_is_refused_untouched(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("port: 80\n")
    with pytest.raises(RefusedError, match="another program"):
        initialise(tmp_path)
    assert contents(tmp_path) == {"config.yaml": b"port: 80\n"}


def test_a_wrong_configuration_is_told_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("apiVersion: bench.ber.run/v1alpha1\nkind: Project\ntires: 3\n")
    with pytest.raises(DocumentError, match="did you mean tries"):
        initialise(tmp_path)
    assert list(contents(tmp_path)) == ["config.yaml"]


def test_a_folder_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(BenchError, match="making"):
            initialise(folder)


def test_json_output_is_one_document(tmp_path: Path) -> None:
    document = json.loads(run(str(tmp_path), "--json").output)
    assert document["project"] == str(tmp_path)
    assert document["written"] == ["config.yaml", "evaluations/example.yaml", ".gitignore"]
    assert document["left_alone"] == []


def test_the_configuration_file_shows_every_key_with_its_default(tmp_path: Path) -> None:
    initialise(tmp_path)
    text = (tmp_path / "config.yaml").read_text()
    head, _, body = text.partition("kind: Project\n")
    settings = "\n".join(line[2:] for line in body.splitlines() if re.match(r"# (?:  |[a-z]+:(?: |$))", line))
    (tmp_path / "all.yaml").write_text(f"{head}kind: Project\n{settings}\n")
    config = read_document(tmp_path / "all.yaml", ProjectConfig, "Project").model
    assert config.model_fields_set == set(ProjectConfig.model_fields)
    default = ProjectConfig()
    shown_by_example = {"source", "dockerfile", "upstreams", "judge", "gates", "notifications"}
    for name in ProjectConfig.model_fields:
        value = getattr(config, name)
        if name not in shown_by_example:
            assert value == getattr(default, name), name
        if isinstance(value, StrictModel):
            assert value.model_fields_set == set(type(value).model_fields), name


def test_editors_find_the_schema_of_each_template(tmp_path: Path) -> None:
    initialise(tmp_path)
    for path in (tmp_path / "config.yaml", tmp_path / "evaluations" / "example.yaml"):
        named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", path.read_text())
        assert named is not None
        schema = json.loads((path.parent / named[1]).read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate(yaml.safe_load(path.read_text()), schema)


def test_the_dagster_instance_is_valid_private_and_quiet(tmp_path: Path) -> None:
    from dagster._core.instance.config import dagster_instance_config

    initialise(tmp_path)
    home = tmp_path / ".bench" / "dagster"
    config, _ = dagster_instance_config(str(home))
    assert config["telemetry"] == {"enabled": False}
    assert config["nux"] == {"enabled": False}
    assert config["run_monitoring"]["free_slots_after_run_end_seconds"] > 0
    assert stat.S_IMODE((home / "dagster.yaml").stat().st_mode) == 0o600


def test_the_workspace_names_the_code_location_by_an_absolute_folder(tmp_path: Path) -> None:
    from bench_pipeline.definitions import LOCATION

    initialise(tmp_path)
    workspace = yaml.safe_load((tmp_path / ".bench" / "dagster" / "workspace.yaml").read_text())
    (entry,) = workspace["load_from"]
    expected = {"module_name": "bench_pipeline.definitions", "working_directory": str(tmp_path)}
    assert entry["python_module"] == expected | {"location_name": LOCATION}


def test_the_instance_follows_the_configuration_until_a_person_takes_it_over(tmp_path: Path) -> None:
    from dagster._core.instance.config import dagster_instance_config

    initialise(tmp_path)
    config = tmp_path / "config.yaml"
    config.write_text(config.read_text() + 'dagster: {storage_url: "postgresql://localhost/bench"}\n')
    project = load_project(config)
    home = write_instance_config(project)
    assert home == tmp_path / ".bench" / "dagster"
    found, _ = dagster_instance_config(str(home))
    assert found["storage"]["postgres"]["postgres_url"] == "postgresql+psycopg2://localhost/bench"
    (home / "dagster.yaml").write_text("telemetry: {enabled: true}\n")
    write_instance_config(project)
    assert (home / "dagster.yaml").read_text() == "telemetry: {enabled: true}\n"


@pytest.mark.parametrize("name", ["ünï cödé", "a: b", "quote'\"s", "-x", "#hash"])
def test_folders_with_unusual_names_survive_in_the_workspace(tmp_path: Path, name: str) -> None:
    initialise(tmp_path / name)
    path = write_workspace(find_project(tmp_path / name))
    loaded = load_yaml_bytes(path.read_bytes(), "workspace")
    assert isinstance(loaded, dict)
    assert loaded["load_from"][0]["python_module"]["working_directory"] == str(tmp_path / name)
