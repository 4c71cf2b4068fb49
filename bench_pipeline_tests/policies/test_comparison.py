"""A project's comparisons resolve, or every problem of their files is named."""

import json
import shutil
from pathlib import Path

import pytest

from bench_pipeline.errors import DocumentError, RefusedError
from bench_pipeline.policies.comparison import list_comparisons, load_comparison, load_comparisons
from bench_pipeline.project import Project, find_project
from bench_pipeline_tests.policies.orchard import ORCHARD

HEAD = "apiVersion: bench.ber.run/v1alpha1\n"
CONFIG = """\
kind: Project
defaults: {max_attempts: 3}
policies: {max_timeout: 10m}
upstreams:
  here: {base_url: "http://127.0.0.1:9/v1/", key_env: MY_KEY, models: [m, n], concurrency: 4}
  any: {base_url: "https://example.com/v1"}
  bad: {base_url: "http://example.com/v1"}
"""
REPLAY = "cases: cases.json\nrecording: recording.json\nbudget: 4\n"
LIVE = "cases: cases.json\nupstream: here\nmodel: m\nbudget: 4\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "config.yaml").write_text(HEAD + CONFIG)
    (tmp_path / "policies").mkdir()
    for name in ("cases.json", "recording.json"):
        shutil.copy(ORCHARD / name, tmp_path / "policies" / name)
    return find_project(tmp_path)


def write(project: Project, body: str, name: str = "orchard.yaml") -> None:
    (project.policies_dir / name).write_text(f"{HEAD}kind: PolicyComparison\n{body}")


def test_a_comparison_over_a_recording_has_its_digests_and_terms(project: Project) -> None:
    write(project, REPLAY)
    found = load_comparison(project, "orchard")
    assert found.config.sha256 == "713ad2a41b3b2118e0385f252ac9a952d5a20da6d0fead24d851a74f7f99e90c"
    assert (found.terms.budget, found.terms.timeout_s, found.repeat) == (4, 300, 1)
    assert [policy.name for policy in found.terms.policies] == ["baseline", "retry-errors", "evidence"]


def test_a_live_comparison_asks_below_the_base_url_and_needs_its_key_only_to_ask(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    write(project, f"{LIVE}timeout: 10m\nrepeat: 3\npolicies: [evidence, baseline]\n")
    found = load_comparison(project, "orchard")
    assert found.config.endpoint == "http://127.0.0.1:9/v1/chat/completions"
    assert found.config.settings.model_dump() == {"temperature": 0, "max_tokens": 128}
    assert [policy.name for policy in found.terms.policies] == ["baseline", "evidence"]
    with pytest.raises(RefusedError, match="MY_KEY"):
        found.open_model(None)


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        (f"{REPLAY}upstream: here\n", "upstream", "cannot stand beside recording"),
        (f"{REPLAY}temperature: 0\n", "temperature", "cannot stand beside recording"),
        (f"{REPLAY}max_tokens: 5\n", "max_tokens", "cannot stand beside recording"),
        ("cases: cases.json\nbudget: 4\n", "recording", "is missing"),
        (LIVE.replace("model: m\n", ""), "recording", "is missing"),
        (LIVE.replace("here", "their"), "upstream", "is not an upstream"),
        (LIVE.replace("model: m", "model: o"), "model", "is not a model of here"),
        (LIVE.replace("here", "bad"), "upstream", "http is for localhost"),
        (f"{REPLAY}timeout: 11m\n", "timeout", "more than policies.max_timeout"),
        (f"{REPLAY}repeat: 4\n", "repeat", "more than defaults.max_attempts"),
        (f"{REPLAY}repeat: 0\n", "repeat", "at least 1"),
        (REPLAY.replace("4", "10001"), "budget", "at most 10000"),
        (REPLAY.replace("4", "-1"), "budget", "at least 0"),
        (REPLAY.replace("budget: 4\n", ""), "budget", "is required"),
        (f"{REPLAY}policies: [other]\n", "policies[0]", "expected 'baseline'"),
        (REPLAY.replace("cases.json", "../cases.json"), "cases", "a path inside its folder"),
        (f"{REPLAY}key: x\n", "key", "is not a known field"),
    ],
)
def test_what_contradicts_is_named_with_file_line_and_field(
    project: Project, body: str, field: str, said: str
) -> None:
    write(project, body)
    with pytest.raises(DocumentError) as error:
        load_comparison(project, "orchard")
    (problem,) = error.value.problems
    assert (problem.field, said in problem.message) == (field, True), str(problem)
    assert problem.file.endswith("orchard.yaml")
    assert problem.line


def test_problems_of_the_cases_and_of_the_recording_are_told_together(project: Project) -> None:
    (project.policies_dir / "cases.json").write_text("[]")
    (project.policies_dir / "recording.json").write_text(json.dumps({"kind": "x"}))
    write(project, REPLAY)
    with pytest.raises(DocumentError) as error:
        load_comparison(project, "orchard")
    assert {Path(problem.file).name for problem in error.value.problems} == {"cases.json", "recording.json"}


def test_one_broken_comparison_leaves_the_others(project: Project) -> None:
    write(project, REPLAY)
    write(project, "budget: x\n", "broken.yaml")
    write(project, REPLAY, "wrong end.yaml")
    write(project, REPLAY, "old.yml")
    found, problems = load_comparisons(project)
    assert [comparison.name for comparison in found] == ["orchard"]
    assert {Path(problem.file).name for problem in problems} == {"broken.yaml", "wrong end.yaml", "old.yml"}
    assert list_comparisons(project) == ["broken", "orchard"]


def test_a_project_without_comparisons_has_none(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(f"{HEAD}kind: Project\n")
    assert load_comparisons(find_project(tmp_path)) == ([], [])
