"""What one cell does, however odd, is that cell's result: it is stored, and the other cells go on."""

import shutil
from collections.abc import Callable

import pytest

from bench_pipeline.errors import DocumentError
from bench_pipeline.execution import cell
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline_tests.e2e.projects import Project

Make = Callable[..., Project]


@pytest.fixture
def project(make: Make) -> Project:
    return make()


def test_a_cost_beyond_any_float_is_unknown_and_the_cell_is_measured(project: Project) -> None:
    """An integer of 400 digits once ended the run, stored nothing, and was paid for again by every rerun."""
    project.acts("one", "absurd", "fix")
    measured = project.measure("one", concurrency=1)
    rows = {row["setup"]: row for row in measured.rows}
    assert {row["outcome"] for row in rows.values()} == {"passed"}
    assert rows["agent/small/-+act=absurd"]["cost_reported_usd"] is None
    project.measure("one")
    assert len(project.calls()) == 2


def test_a_fault_that_nobody_foresaw_is_stored_with_what_was_paid_and_ends_no_other_cell(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    render, calls = cell.render_patch, 0

    def once(*arguments: object) -> bytes:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ZeroDivisionError("of all things")
        return render(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(cell, "render_patch", once)
    project.acts("one", "fix", "wrong")
    measured = project.measure("one", concurrency=1)
    broken = next(row for row in measured.rows if row["setup"] == "agent/small/-")
    assert (broken["outcome"], broken["tries"]) == ("infrastructure_error", 1)
    assert broken["reason"] == "ZeroDivisionError: of all things"
    assert broken["cost_usd"] == 1.0, "the tool ran, so it was paid for"
    assert "failed" in {row["outcome"] for row in measured.rows}
    assert {row["outcome"] for row in project.measure("one").rows} == {"passed", "failed"}


@pytest.mark.parametrize(("act", "outcome"), [("report-folder", "passed"), ("report-later", "failed")])
def test_a_folder_where_the_report_belongs_is_no_fault_of_the_machinery(
    project: Project, act: str, outcome: str
) -> None:
    """Else a candidate could leave the denominator whenever it would have failed."""
    project.acts("one", act)
    assert [row["outcome"] for row in project.measure("one").rows] == [outcome]


def test_the_same_task_in_two_folders_is_refused_with_both_named(project: Project) -> None:
    """Its cells would be one cell counted twice; the table would not take it, after the run was started."""
    shutil.copytree(project.root / "tasks" / "alpha", project.root / "tasks" / "twin")
    project.acts("one", "fix")
    with pytest.raises(DocumentError, match=r"tasks/twin/task\.yaml.*tasks/alpha/task\.yaml"):
        project.measure("one")


@pytest.mark.services
@pytest.mark.parametrize("damage", ["", "[]", '{"tree": null}', '{"tree": "x"}', "\udcff"])
def test_a_damaged_record_of_what_setup_does_is_measured_again(make: Make, damage: str) -> None:
    project = make()
    project.evaluation("one", {"pre": ["echo more >> notes"]})
    bench = Bench(project.root, backend="bubblewrap")
    before = bench.plan().cells["pre_digest"].to_pylist()
    (kept,) = (project.root / ".bench" / "effects").iterdir()
    kept.write_bytes(damage.encode("utf-8", "surrogateescape"))
    assert Bench(project.root, backend="bubblewrap").plan().cells["pre_digest"].to_pylist() == before
    assert None not in before


def test_a_candidate_too_large_to_render_is_judged_and_says_that_its_patch_is_not_there(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench_pipeline.execution.rendering.MAX_BYTES", 1 << 20)
    project.acts("one", f"large {2 << 20}")
    (row,) = project.measure("one").rows
    assert (row["outcome"], row["patch_files"], row["patch_lines"]) == ("passed", 2, None)
    evidence = dict(row["artifacts"])
    assert "patch" not in evidence
    store = Bench(project.root).store
    assert b"more than 5000 files or 1 MiB" in store.artifacts.get(evidence["patch_not_rendered"])
    assert store.artifacts.exists(evidence["overlay"])
