"""Scenario files: five fields, all of them, and nothing else."""

import hashlib
from pathlib import Path

import pytest

from bench_pipeline.errors import DocumentError
from bench_pipeline.scenarios import load_scenario
from bench_pipeline_tests.scenarios.making import scenario_file


def _problems(path: Path) -> str:
    with pytest.raises(DocumentError) as raised:
        load_scenario(path)
    assert all(problem.file == str(path) for problem in raised.value.problems)
    return str(raised.value)


def test_a_scenario_has_five_fields_and_the_digest_of_its_file(tmp_path: Path) -> None:
    path = scenario_file(tmp_path, required=("python-tests", "done"))
    scenario = load_scenario(path)
    assert (scenario.name, scenario.max_steps, scenario.max_seconds) == ("fix the sum", 5, 20)
    assert scenario.required_evidence == ("python-tests", "done")
    assert scenario.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_every_missing_field_is_named(tmp_path: Path) -> None:
    path = tmp_path / "empty.toml"
    path.write_text("")
    said = _problems(path)
    assert all(
        f"{name}: " in said for name in ("name", "goal", "max_steps", "max_seconds", "required_evidence")
    )


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ('name = "  "', "name"),
        ('goal = ""', "goal"),
        ("max_steps = -1", "max_steps"),
        ("max_steps = 1.0", "max_steps"),
        ("max_seconds = 1.5", "max_seconds"),
        ('max_seconds = "3"', "max_seconds"),
        ("max_seconds = true", "max_seconds"),
        ('required_evidence = ["a", "a"]', "required_evidence"),
        ('required_evidence = "a"', "required_evidence"),
        ('required_evidence = [""]', "required_evidence"),
        ("required_evidence = [1]", "required_evidence"),
    ],
)
def test_a_wrong_value_is_told_with_its_line_and_field(tmp_path: Path, line: str, field: str) -> None:
    path = scenario_file(tmp_path)
    lines = path.read_text().splitlines()
    place = next(number for number, text in enumerate(lines) if text.startswith(field))
    lines[place] = line
    path.write_text("\n".join(lines))
    assert f"{path}:{place + 1}: {field}" in _problems(path)


def test_an_unknown_field_is_refused(tmp_path: Path) -> None:
    path = scenario_file(tmp_path)
    path.write_text(path.read_text() + "max_step = 3\n")
    assert ":6: max_step: " in _problems(path)


def test_its_workspace_is_the_folder_beside_it_that_has_its_name(tmp_path: Path) -> None:
    path = scenario_file(tmp_path)
    assert load_scenario(path).workspace is None
    (tmp_path / "scenario").mkdir()
    assert load_scenario(path).workspace == tmp_path / "scenario"
