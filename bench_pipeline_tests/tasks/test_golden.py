"""Golden task files: fields, signals, tiers of the project and of the package, problems that hide nothing."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.errors import NotFoundError
from bench_pipeline.tasks import TIERS, GoldenSet, load_golden
from bench_pipeline.tasks.signals import parse_signal

FULL = """---
id: full-task
title: A title
role: frontend
completion_signals:
  - "path_exists: docs/guide.md"
  - "glob_exists: tests/test_*.py"
  - "file_contains: a.txt :: two :: words"
  - "file_unchanged: tests/test_a.py"
  - "test_passes: python3 -m unittest"
  - no_files_modified
  - The names read well.
expected_files_modified: [a.txt]
expected_test_outcomes:
  python3 -m unittest: true
  python3 broken.py: false
owned_files: [docs/, "*.txt"]
max_cost_usd: 0.5
max_duration_s: 0
workspace: full
starts: passing
canary: kestrel-9182
---
Do it.
"""


def write(root: Path, tier: str, name: str, text: str, workspace: str | None = None) -> Path:
    folder = root / "golden" / tier
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    if workspace is not None:
        (folder / workspace).mkdir()
        (folder / workspace / "a.txt").write_text("two :: words\n")
    return path


def of_project(found: GoldenSet) -> list[str]:
    return [task.id for task in found.tasks if not task.packaged]


def test_every_field_is_read_and_the_body_is_the_prompt(tmp_path: Path) -> None:
    write(tmp_path, "standard", "file.md", FULL, "full")
    found = load_golden(tmp_path)
    task = found.get("full-task")
    assert found.problems == ()
    assert (task.tier, task.title, task.role, task.prompt) == ("standard", "A title", "frontend", "Do it.")
    assert [(signal.kind, signal.argument, signal.needle) for signal in task.signals] == [
        ("path_exists", "docs/guide.md", None),
        ("glob_exists", "tests/test_*.py", None),
        ("file_contains", "a.txt", "two :: words"),
        ("file_unchanged", "tests/test_a.py", None),
        ("test_passes", "python3 -m unittest", None),
        ("no_files_modified", "", None),
        ("free_text", "The names read well.", None),
    ]
    assert task.expected_files_modified == ("a.txt",)
    assert task.expected_test_outcomes == {"python3 -m unittest": True, "python3 broken.py": False}
    assert task.owned_files == ("docs/", "*.txt")
    assert (task.max_cost_usd, task.max_duration_s) == (0.5, 0)
    assert task.workspace == tmp_path / "golden" / "standard" / "full"
    assert (task.starts, task.canary) == ("passing", "kestrel-9182")
    assert "canary: kestrel-9182" in task.front_matter
    assert "---" not in task.front_matter


def test_what_a_file_leaves_out_has_its_documented_default(tmp_path: Path) -> None:
    write(tmp_path, "stretch", "plain-task.md", "---\n---\nDo it.\n")
    task = load_golden(tmp_path).get("plain-task")
    assert (task.title, task.role, task.signals, task.owned_files) == ("plain-task", "backend", (), ())
    assert (task.max_cost_usd, task.max_duration_s, task.workspace) == (1.0, 300, None)
    assert (task.starts, task.canary, dict(task.expected_test_outcomes)) == ("failing", None, {})


def test_a_dashed_line_inside_a_value_does_not_cut_the_front_matter(tmp_path: Path) -> None:
    text = '---\ncompletion_signals:\n  - |\n    one\n    ---\n    two\ncanary: "--- x"\n---\nPrompt\n---\nrest\n'
    write(tmp_path, "standard", "dashes.md", text)
    task = load_golden(tmp_path).get("dashes")
    assert task.prompt == "Prompt\n---\nrest"
    assert task.canary == "--- x"


@pytest.mark.parametrize("line", ["--- ", "---\t", " ---", "----", "---x"])
def test_only_a_line_that_is_exactly_three_dashes_ends_the_front_matter(tmp_path: Path, line: str) -> None:
    write(tmp_path, "standard", "a.md", f"---\ncanary: hidden\n{line}\nPrompt\n")
    found = load_golden(tmp_path)
    assert of_project(found) == []
    assert [problem.file for problem in found.problems] == [str(tmp_path / "golden/standard/a.md")]


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ("colour: red", "colour", "is not a known field"),
        ("completion_signals:", "completion_signals", "expected a list"),
        ("owned_files: ~", "owned_files", "expected a list"),
        ('max_cost_usd: "1.0"', "max_cost_usd", "without quotes"),
        ("max_cost_usd: -1", "max_cost_usd", "at least 0"),
        ("max_cost_usd: .nan", "max_cost_usd", "a finite number"),
        ("max_duration_s: 1.5", "max_duration_s", "a whole number"),
        ("max_duration_s: true", "max_duration_s", "a whole number"),
        ('expected_test_outcomes: {make: "false"}', "expected_test_outcomes.make", "true or false"),
        ("expected_files_modified: [../x]", "expected_files_modified[0]", "inside its folder"),
        ("expected_files_modified: [/etc/passwd]", "expected_files_modified[0]", "inside its folder"),
        ("owned_files: [a/../../b]", "owned_files[0]", "inside the task's tree"),
        ("workspace: ../other", "workspace", "inside its folder"),
        ("workspace: absent", "workspace", "there is no folder absent"),
        ("starts: maybe", "starts", "'failing' or 'passing'"),
        ("id: a/b", "id", "a task id has only"),
        ("id: a\nid: b", "id", "twice"),
        ('completion_signals: ["path_exists: ../x"]', "completion_signals[0]", "inside its folder"),
        ('completion_signals: ["path_exists:"]', "completion_signals[0]", "inside its folder"),
        ('completion_signals: ["path_exist: x"]', "completion_signals[0]", "did you mean path_exists"),
        ('completion_signals: ["file_contains: x"]', "completion_signals[0]", ":: "),
        ('completion_signals: ["test_passes: "]', "completion_signals[0]", "expected a command"),
        ('completion_signals: ["no_files_modified: x"]', "completion_signals[0]", "stands alone"),
        ("completion_signals: [path_exists]", "completion_signals[0]", "needs an argument"),
        (
            "completion_signals:\n  - path_exists: x",
            "completion_signals[0]",
            'put it in quotes: "path_exists: x"',
        ),
        ("completion_signals: [a, a]", "completion_signals", "each signal once"),
        ('completion_signals: [""]', "completion_signals[0]", "found nothing"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_field(
    tmp_path: Path, fields: str, field: str, said: str
) -> None:
    path = write(tmp_path, "standard", "a.md", f"---\n{fields}\n---\nDo it.\n")
    (problem,) = load_golden(tmp_path).problems
    assert (problem.file, problem.field) == (str(path), field)
    assert said in problem.message
    assert problem.line is not None


def test_a_file_that_is_no_utf_8_is_named(tmp_path: Path) -> None:
    write(tmp_path, "standard", "a.md", "")
    (tmp_path / "golden/standard/a.md").write_bytes(b"---\n---\n\xff\n")
    (problem,) = load_golden(tmp_path).problems
    assert "UTF-8" in problem.message


def test_one_bad_file_hides_neither_the_other_tasks_nor_their_problems(tmp_path: Path) -> None:
    write(tmp_path, "standard", "a.md", "---\nid: [\n---\n")
    write(tmp_path, "standard", "b.md", "---\nrole: 1\nmax_cost_usd: x\nnew: 1\n---\nDo it.\n")
    write(tmp_path, "standard", "c.md", "---\n---\nDo it.\n")
    found = load_golden(tmp_path)
    assert of_project(found) == ["c"]
    assert sorted((Path(problem.file).name, problem.field) for problem in found.problems[1:]) == [
        ("b.md", "max_cost_usd"),
        ("b.md", "new"),
    ]
    assert Path(found.problems[0].file).name == "a.md"


def test_a_project_tier_with_one_file_replaces_the_packaged_tier_whole(tmp_path: Path) -> None:
    packaged = load_golden(tmp_path)
    write(tmp_path, "smoke", "mine.md", "---\n---\nDo it.\n")
    found = load_golden(tmp_path)
    assert [task.id for task in packaged.selected(tiers=["smoke"]) if not task.packaged] == []
    assert [task.id for task in found.selected(tiers=["smoke"])] == ["mine"]
    assert found.selected(tiers=["adversarial"]) == packaged.selected(tiers=["adversarial"])


def test_a_file_that_does_not_parse_replaces_the_packaged_tier_too(tmp_path: Path) -> None:
    """A silent fall-back would score something else than what the project says."""
    write(tmp_path, "smoke", "mine.md", "no front matter")
    found = load_golden(tmp_path)
    assert found.selected(tiers=["smoke"]) == ()
    assert [Path(problem.file).name for problem in found.problems] == ["mine.md"]


def test_a_folder_without_markdown_replaces_nothing(tmp_path: Path) -> None:
    write(tmp_path, "smoke", "notes.txt", "x")
    assert load_golden(tmp_path).selected(tiers=["smoke"]) == load_golden(None).selected(tiers=["smoke"])


def test_folders_are_not_searched_below_a_tier(tmp_path: Path) -> None:
    write(tmp_path, "standard", "a.md", "---\n---\nDo it.\n")
    write(tmp_path, "standard/deeper", "b.md", "---\n---\nDo it.\n")
    assert of_project(load_golden(tmp_path)) == ["a"]


def test_a_file_outside_every_tier_is_a_problem(tmp_path: Path) -> None:
    write(tmp_path, "hard", "a.md", "---\n---\nDo it.\n")
    write(tmp_path, ".", "b.md", "---\n---\nDo it.\n")
    assert [Path(problem.file).name for problem in load_golden(tmp_path).problems] == ["b.md", "hard"]


@pytest.mark.parametrize("other", ["same", "SAME", "sa-me"])
def test_one_id_in_two_tiers_is_refused_naming_both_files(tmp_path: Path, other: str) -> None:
    first = write(
        tmp_path, "smoke", "a.md", f"---\nid: {'sa_me' if other == 'sa-me' else 'same'}\n---\nDo it.\n"
    )
    second = write(tmp_path, "stretch", "b.md", f"---\nid: {other}\n---\nDo it.\n")
    found = load_golden(tmp_path)
    assert of_project(found) == []
    assert {problem.file for problem in found.problems} == {str(first), str(second)}
    assert str(second) in next(problem.message for problem in found.problems if problem.file == str(first))


def test_tasks_come_in_tier_order_and_then_by_file_name(tmp_path: Path) -> None:
    for tier in reversed(TIERS):
        for name in ("b", "a"):
            write(tmp_path, tier, f"{tier}-{name}.md", "---\n---\nDo it.\n")
    assert of_project(load_golden(tmp_path)) == [f"{tier}-{name}" for tier in TIERS for name in ("a", "b")]


def test_links_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("---\n---\nDo it.\n")
    write(tmp_path, "standard", "a.md", "---\nworkspace: link\n---\nDo it.\n")
    (tmp_path / "golden/standard/link").symlink_to(tmp_path)
    (tmp_path / "golden/standard/b.md").symlink_to(secret)
    found = load_golden(tmp_path)
    assert of_project(found) == []
    assert all("symbolic link" in problem.message for problem in found.problems)
    assert len(found.problems) == 2


def test_the_digest_covers_the_front_matter_the_prompt_and_the_workspace(tmp_path: Path) -> None:
    path = write(tmp_path, "standard", "file.md", FULL, "full")
    digests = {load_golden(tmp_path).get("full-task").digest}
    for change in (
        lambda: path.write_text(FULL.replace("frontend", "backend")),
        lambda: path.write_text(FULL.replace("Do it.", "Do it now.")),
        lambda: (path.parent / "full" / "a.txt").write_text("other"),
    ):
        change()
        digests.add(load_golden(tmp_path).get("full-task").digest)
    assert len(digests) == 4


def test_an_unknown_task_names_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, "standard", "lookup.md", "---\n---\nDo it.\n")
    with pytest.raises(NotFoundError, match="did you mean lookup"):
        load_golden(tmp_path).get("lokup")


@given(st.text())
def test_any_text_is_a_signal_or_a_sentence_about_it(text: str) -> None:
    try:
        signal = parse_signal(text)
    except ValueError as error:
        said = str(error)
    else:
        said = signal.text
        assert signal.text == text
        assert signal.kind == "no_files_modified" or signal.argument
    assert said
