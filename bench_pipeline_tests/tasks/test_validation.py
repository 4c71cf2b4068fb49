"""A validation holds until something it depended on changes; writing it touches no other text."""

import dataclasses
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.errors import DocumentError, RefusedError
from bench_pipeline.tasks import (
    DirectorySource,
    Task,
    TaskValidation,
    load_tasks,
    stale,
    validation_fingerprint,
    write_validation,
)

DOCUMENT = """# A task about apples.
apiVersion: bench.ber.run/v1alpha1
kind: Task
source:
  directory: base   # a folder
tier: smoke
environment: {setup: [make]}
verify:
  command: make test # checks
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "tasks" / "t"
    (folder / "base").mkdir(parents=True)
    (folder / "base" / "a").write_bytes(b"1\n")
    (folder / "task.yaml").write_text(DOCUMENT)
    (folder / "prompt.md").write_text("Do it.\n")
    (folder / "tests.patch").write_text("tests")
    (folder / "reference.patch").write_text("reference")
    return tmp_path


def load(project: Path) -> Task:
    found = load_tasks(project)
    assert found.problems == ()
    return found.tasks[0]


def good(task: Task, **changes: object) -> TaskValidation:
    whole = TaskValidation(
        at=datetime(2025, 1, 31, 12, tzinfo=UTC),
        fingerprint=validation_fingerprint(task),
        base_failed=True,
        reference_passed=True,
        tests=("t.one", "t.two"),
        seconds=1.25,
    )
    return dataclasses.replace(whole, **changes)


def test_a_task_that_was_never_validated_is_stale(project: Path) -> None:
    assert stale(load(project)) == "it was never validated"


def test_what_was_written_is_read_back_and_holds(project: Path) -> None:
    task = load(project)
    write_validation(task.file, good(task))
    again = load(project)
    assert again.validation == good(task)
    assert stale(again) is None


@pytest.mark.parametrize("field", ["base_failed", "reference_passed"])
def test_a_validation_that_found_a_fault_does_not_hold(project: Path, field: str) -> None:
    task = load(project)
    write_validation(task.file, good(task, **{field: False}))
    assert stale(load(project)) is not None


@pytest.mark.parametrize(
    ("file", "old", "new", "part"),
    [
        ("base/a", "1", "2", "base tree"),
        ("prompt.md", "Do it.", "Do it!", "the prompt"),
        ("task.yaml", "make test", "make test\n  protected_paths: [a]", "the protected paths"),
        ("tests.patch", "tests", "text", "hidden tests"),
        ("reference.patch", "ref", "Ref", "reference"),
        ("task.yaml", "make test", "make tests", "verify section"),
        ("task.yaml", "[make]", "[make x]", "environment"),
    ],
)
def test_a_change_of_what_it_depends_on_is_named(
    project: Path, file: str, old: str, new: str, part: str
) -> None:
    task = load(project)
    write_validation(task.file, good(task))
    place = task.folder / file
    place.write_text(place.read_text().replace(old, new, 1))
    why = stale(load(project))
    assert why is not None
    assert part in why
    assert "," not in why


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("task.yaml", "smoke", "stretch"),
        ("task.yaml", "tier", "timeout: 3m\ntier"),
    ],
)
def test_a_change_of_anything_else_leaves_it(project: Path, file: str, old: str, new: str) -> None:
    task = load(project)
    write_validation(task.file, good(task))
    place = task.folder / file
    place.write_text(place.read_text().replace(old, new, 1))
    assert stale(load(project)) is None


def test_a_new_executable_bit_in_the_base_is_a_change(project: Path) -> None:
    task = load(project)
    write_validation(task.file, good(task))
    assert isinstance(task.source, DirectorySource)
    (task.source.path / "a").chmod(0o755)
    assert stale(load(project)) == "changed since it was validated: the base tree"


def test_a_fingerprint_of_other_rules_does_not_hold(project: Path) -> None:
    task = load(project)
    write_validation(task.file, good(task, fingerprint="v0 x=1"))
    assert stale(load(project)) == "it was validated by other rules"


OLD = "validation:\n  at: 2020-01-01T00:00:00Z\n  fingerprint: f\n  base_failed: true\n"
OLD += "  reference_passed: true\n  # a comment inside\n  tests: []\n\n  seconds: 1\n"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(DOCUMENT, DOCUMENT + "{new}", id="at the end"),
        pytest.param(DOCUMENT.rstrip("\n"), DOCUMENT + "{new}", id="without a last line end"),
        pytest.param(DOCUMENT + OLD, DOCUMENT + "{new}", id="in place of another"),
        pytest.param(
            DOCUMENT.replace("tier:", OLD + "# about the tier\ntier:"),
            DOCUMENT.replace("tier:", "{new}# about the tier\ntier:"),
            id="in the middle, before a comment",
        ),
        pytest.param(
            DOCUMENT + "\n" + OLD + "\n# end\n", DOCUMENT + "\n{new}\n# end\n", id="between blank lines"
        ),
        pytest.param(DOCUMENT + "validation: null\n", DOCUMENT + "{new}", id="in place of null"),
    ],
)
def test_all_other_text_stays(project: Path, document: str, expected: str) -> None:
    task = load(project)
    task.file.write_text(document)
    write_validation(task.file, good(task))
    before, _, after = expected.partition("{new}")
    text = task.file.read_text()
    assert text.startswith(before + "validation:\n  at: ")
    assert text.endswith('  tests:\n    - "t.one"\n    - "t.two"\n' + after)
    assert text.count("validation:") == 1
    assert load(project).validation == good(task)


def test_windows_line_ends_stay(project: Path) -> None:
    task = load(project)
    task.file.write_bytes((DOCUMENT + OLD).replace("\n", "\r\n").encode())
    write_validation(task.file, good(task))
    data = task.file.read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n")
    assert load(project).validation == good(task)


@pytest.mark.parametrize(
    "document",
    [
        "{apiVersion: bench.ber.run/v1alpha1, kind: Task, source: {directory: base}, verify: {command: m}}\n",
        DOCUMENT + '"validation":' + OLD.partition(":")[2],
        DOCUMENT + "...\n",
    ],
)
def test_a_document_that_a_text_edit_would_break_is_left_alone(project: Path, document: str) -> None:
    task = load(project)
    task.file.write_text(document)
    with pytest.raises(RefusedError):
        write_validation(task.file, good(task))
    assert task.file.read_text() == document
    assert sorted(os.listdir(task.folder)) == [
        "base",
        "prompt.md",
        "reference.patch",
        "task.yaml",
        "tests.patch",
    ]


def test_a_document_with_other_faults_is_reported_and_left_alone(project: Path) -> None:
    task = load(project)
    task.file.write_text(DOCUMENT + "unknown: 1\n")
    with pytest.raises(DocumentError, match="unknown"):
        write_validation(task.file, good(task))


def test_more_tests_than_a_document_may_hold_are_refused(project: Path) -> None:
    task = load(project)
    with pytest.raises(RefusedError, match="fewer tests"):
        write_validation(task.file, good(task, tests=tuple(f"{n:060d}" for n in range(20_000))))


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20), max_size=5
    )
)
def test_any_test_id_is_read_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, tests: list[str]
) -> None:
    project = tmp_path_factory.mktemp("project")
    folder = project / "tasks" / "t"
    (folder / "base").mkdir(parents=True)
    for name in ("prompt.md", "tests.patch", "reference.patch"):
        (folder / name).write_text("x")
    (folder / "task.yaml").write_text(DOCUMENT)
    task = load(project)
    write_validation(task.file, good(task, tests=tuple(tests)))
    validation = load(project).validation
    assert validation is not None
    assert validation.tests == tuple(tests)
