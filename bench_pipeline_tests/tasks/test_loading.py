"""Task folders: ids, fields, the files beside the document, and problems that do not hide other tasks."""

import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.errors import DocumentError, NotFoundError
from bench_pipeline.tasks import (
    DirectorySource,
    RemoteSource,
    load_tasks,
    task_components,
    trees,
    verify_components,
)
from bench_pipeline.tasks.loading import MAX_ID, folded, id_problem

COMMIT = "0123456789abcdef0123456789abcdef01234567"
HEAD = "apiVersion: bench.ber.run/v1alpha1\nkind: Task\n"
PLAIN = f"""{HEAD}source:
  remote: https://example.org/o/r.git
  base_commit: "{COMMIT}"
verify:
  command: python3 -m unittest
"""
FULL = f"""{HEAD}source:
  remote: ../repository
  pull_request: https://example.org/o/r/pull/7
  base_commit: "{COMMIT}"
  fix_commit: "{COMMIT[::-1]}"
tier: stretch
timeout: 1h30m
environment:
  image: python:3.12
  setup: [make deps]
  fingerprint: [python3 --version]
prompt: what/to-do.md
verify:
  network: true
  protected_paths: [tests/, "*.cfg"]
  tests_patch: hidden.patch
  setup: [make build]
  command: |
    make test
    make more
  timeout: 90s
  results: {{format: junit, path: out/junit.xml}}
reference_patch: fix.patch
validation:
  at: 2025-01-31T12:00:00Z
  fingerprint: v1 base=0
  base_failed: true
  reference_passed: true
  tests: [a, 1.10, no]
  seconds: 1.5
"""


def make_task(root: Path, task_id: str, document: str = PLAIN, **files: bytes) -> Path:
    folder = root / "tasks" / task_id
    folder.mkdir(parents=True)
    (folder / "task.yaml").write_text(document, encoding="utf-8")
    for name, content in (
        {"prompt.md": b"Do it.\n", "tests.patch": b"", "reference.patch": b""} | files
    ).items():
        place = folder / name
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(content)
    return folder


def only(root: Path):
    found = load_tasks(root)
    assert found.problems == ()
    (task,) = found.tasks
    return task


def messages(root: Path) -> str:
    return "\n".join(str(problem) for problem in load_tasks(root).problems)


def test_a_short_document_takes_the_defaults(tmp_path: Path) -> None:
    folder = make_task(tmp_path, "t-1")
    task = only(tmp_path)
    assert (task.id, task.tier, task.folder, task.prompt) == ("t-1", "standard", folder, "Do it.\n")
    assert task.source == RemoteSource("https://example.org/o/r.git", COMMIT)
    assert (task.timeout_s, task.verify.timeout_s, task.verify.results, task.validation) == (None,) * 4
    assert not task.verify.network


def test_every_field_is_read(tmp_path: Path) -> None:
    make_task(tmp_path, "t", FULL, **{"what/to-do.md": b"Go", "hidden.patch": b"H", "fix.patch": b"F"})
    task = only(tmp_path)
    assert (task.tier, task.timeout_s, task.prompt, task.prompt_path) == (
        "stretch",
        5400.0,
        "Go",
        "what/to-do.md",
    )
    assert task.environment.image == "python:3.12"
    assert (task.environment.setup, task.environment.fingerprint) == (("make deps",), ("python3 --version",))
    verify = task.verify
    assert (verify.network, verify.timeout_s, verify.tests_patch) == (True, 90.0, b"H")
    assert verify.protected_paths == ("tests/", "*.cfg")
    assert verify.command == "make test\nmake more\n"
    assert verify.results is not None
    assert (verify.results.format, verify.results.path) == ("junit", "out/junit.xml")
    assert task.reference_patch == b"F"
    assert task.validation is not None
    assert task.validation.tests == ("a", "1.10", "no")
    assert task.validation.at.isoformat() == "2025-01-31T12:00:00+00:00"


def test_a_task_crosses_processes(tmp_path: Path) -> None:
    make_task(tmp_path, "t")
    task = only(tmp_path)
    assert pickle.loads(pickle.dumps(task)) == task


def test_a_folder_beside_the_document_can_be_the_source(tmp_path: Path) -> None:
    document = f"{HEAD}source: {{directory: base}}\nverify: {{command: make}}\n"
    folder = make_task(tmp_path, "t", document, **{"base/a": b"1"})
    assert only(tmp_path).source == DirectorySource(folder / "base", "base")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ((f'"{COMMIT}"', "1234567"), "quotes"),
        (("verify:", "verifi:"), "verify"),
        (("  command: python3 -m unittest", "  command: ''"), "command"),
        (("verify:", "tier: hard\nverify:"), "tier"),
        (("verify:", "timeout: 12:30\nverify:"), "timeout"),
        (("verify:", "verify:\n  protected_paths: [../x]"), "protected_paths"),
        (("verify:", "verify:\n  results: {format: xml, path: a}"), "format"),
        (("verify:", "prompt: ../../secret\nverify:"), "prompt"),
        (("verify:", "prompt: none.md\nverify:"), "no file none.md"),
        (("  remote", "  directory: base\n  remote"), "found both"),
        ((f'  base_commit: "{COMMIT}"\n', ""), "base_commit"),
        (("kind: Task", "kind: Tool"), "kind"),
    ],
)
def test_a_wrong_field_is_named_with_its_file(tmp_path: Path, change: tuple[str, str], expected: str) -> None:
    make_task(tmp_path, "wrong", PLAIN.replace(*change))
    make_task(tmp_path, "right")
    found = load_tasks(tmp_path)
    assert [task.id for task in found.tasks] == ["right"]
    assert found.problems
    assert all(problem.file.endswith("wrong/task.yaml") for problem in found.problems)
    assert expected in str(found.problems)


def test_all_problems_of_a_task_are_found_at_once(tmp_path: Path) -> None:
    folder = make_task(tmp_path, "t", **{"prompt.md": b"\xff"})
    (folder / "tests.patch").unlink()
    (folder / "reference.patch").unlink()
    (folder / "reference.patch").symlink_to("/etc/hostname")
    text = messages(tmp_path)
    assert "not UTF-8" in text
    assert "no file tests.patch" in text
    assert "symbolic link" in text


def test_links_never_bring_content_into_a_task(tmp_path: Path) -> None:
    make_task(tmp_path, "real")
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "prompt.md").write_text("secret")
    folder = make_task(tmp_path, "linked", PLAIN + "prompt: sub/prompt.md\n")
    (folder / "sub").symlink_to(secret)
    (tmp_path / "tasks" / "alias").symlink_to("real")
    based = make_task(tmp_path, "based", f"{HEAD}source: {{directory: base}}\nverify: {{command: make}}\n")
    (based / "base").symlink_to(secret)
    found = load_tasks(tmp_path)
    assert [task.id for task in found.tasks] == ["real"]
    assert len(found.problems) == 3


@pytest.mark.parametrize("task_id", ["A_B", "x.y", "_hidden", "a" * MAX_ID, "1", "NUL"])
def test_an_id_of_plain_characters_is_taken(tmp_path: Path, task_id: str) -> None:
    make_task(tmp_path, task_id)
    assert only(tmp_path).id == task_id


@pytest.mark.parametrize(
    "task_id", ["x,y", "x...y", "-rf", "a" * 201, "é", "e\u0301", "a b", ".x", "a|b", "a\nb"]
)
def test_an_id_that_could_not_be_a_file_or_a_partition_is_refused(tmp_path: Path, task_id: str) -> None:
    make_task(tmp_path, task_id)
    make_task(tmp_path, "good")
    found = load_tasks(tmp_path)
    assert [task.id for task in found.tasks] == ["good"]
    assert "a task id" in str(found.problems[0])


def test_a_nested_folder_is_no_id_with_a_slash(tmp_path: Path) -> None:
    make_task(tmp_path, "A/B")
    assert "no '/'" in messages(tmp_path)


def test_a_misnamed_document_is_pointed_out(tmp_path: Path) -> None:
    make_task(tmp_path, "t")
    (tmp_path / "tasks/t/task.yaml").rename(tmp_path / "tasks/t/task.yml")
    assert "task.yaml" in messages(tmp_path)


@pytest.mark.parametrize("twin", ["a_b", "A-B", "a.b"])
def test_ids_that_differ_only_in_case_or_separators_are_refused_naming_both_files(
    tmp_path: Path, twin: str
) -> None:
    first, second = make_task(tmp_path, "A_B"), make_task(tmp_path, twin)
    make_task(tmp_path, "other")
    found = load_tasks(tmp_path)
    assert [task.id for task in found.tasks] == ["other"]
    assert {problem.file for problem in found.problems} == {
        str(first / "task.yaml"),
        str(second / "task.yaml"),
    }
    for problem in found.problems:
        assert str(first / "task.yaml") in str(problem)
        assert str(second / "task.yaml") in str(problem)


def test_a_project_without_tasks_has_none(tmp_path: Path) -> None:
    assert load_tasks(tmp_path).tasks == ()


def test_selecting_names_what_is_not_there(tmp_path: Path) -> None:
    make_task(tmp_path, "alpha")
    make_task(tmp_path, "beta", PLAIN + "tier: smoke\n")
    make_task(tmp_path, "broken", "kind: Task\n")
    found = load_tasks(tmp_path)
    assert [task.id for task in found.selected()] == ["alpha", "beta"]
    assert [task.id for task in found.selected(tiers=["smoke"])] == ["beta"]
    assert [task.id for task in found.selected(["alpha"], ["smoke"])] == []
    with pytest.raises(NotFoundError, match="alpha"):
        found.selected(["alpah"])
    with pytest.raises(DocumentError, match="broken"):
        found.selected(["broken"])


def test_a_named_pipe_does_not_hold_the_reader(tmp_path: Path) -> None:
    folder = make_task(tmp_path, "t")
    (folder / "tests.patch").unlink()
    os.mkfifo(folder / "tests.patch")
    assert "tests.patch" in messages(tmp_path)


def test_only_what_decides_the_verdict_is_in_the_verify_part(tmp_path: Path) -> None:
    make_task(tmp_path, "a")
    make_task(tmp_path, "b", PLAIN + "tier: smoke\ntimeout: 3m\n", **{"prompt.md": b"Other"})
    make_task(tmp_path, "c", **{"tests.patch": b"x"})
    a, b, c = load_tasks(tmp_path).tasks
    assert verify_components(a) == verify_components(b)
    assert task_components(a, "0") != task_components(b, "0")
    assert task_components(a, "0") == task_components(c, "0")
    assert verify_components(a) != verify_components(c)


IDS = st.text(st.sampled_from("aAbB12_.-é,/ \u0301"), max_size=6)


@given(IDS)
def test_an_id_that_is_taken_is_one_plain_path_component(task_id: str) -> None:
    if id_problem(task_id) is None:
        assert Path(task_id).name == task_id
        assert task_id.isascii()
        assert not set("|,[]/ ") & set(task_id)
        assert ".." not in task_id


@given(IDS)
def test_folding_is_idempotent_and_forgets_case_and_separators(task_id: str) -> None:
    assert folded(folded(task_id)) == folded(task_id)
    assert folded(task_id.upper().lower()) == folded(task_id.replace("_", "-").lower())


@pytest.mark.parametrize("name", ["prompt.md", "tests.patch", "reference.patch"])
def test_a_file_of_gigabytes_is_refused_without_being_read(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_task(tmp_path, "t-1")
    os.truncate(folder / name, 3 << 30)
    monkeypatch.setattr(
        trees, "_content", lambda place, _: place.read_bytes() if place.name != name else 1 / 0
    )
    assert f"{name} cannot be read: {name} has 3221225472 bytes, more than 64 MiB" in messages(tmp_path)
