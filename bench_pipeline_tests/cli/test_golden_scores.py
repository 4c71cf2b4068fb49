"""``bench golden run``, ``report`` and ``failures`` over telemetry, run files and all."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bench_pipeline.project import find_project
from bench_pipeline.store import Store
from bench_pipeline.tables import table_schema
from bench_pipeline_tests.cli.calling import HEAD, call
from bench_pipeline_tests.golden.test_judgements import VERDICT
from bench_pipeline_tests.golden.test_telemetry import RECORD

Record = dict[str, Any]
TASKS = {"a": "smoke", "b": "smoke", "c": "standard", "x": "adversarial"}


def project(folder: Path, tasks: Mapping[str, str] = TASKS) -> str:
    """A project with one golden task or more of each tier, without workspaces."""
    (folder / "config.yaml").write_text(f"{HEAD}kind: Project\n")
    for name, tier in tasks.items():
        path = folder / "golden" / tier / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("---\ncompletion_signals: [it works]\nowned_files: [src]\n---\nDo it.\n")
    return str(folder)


def telemetry(folder: str, *records: Record | str, setup: str = "careful", attempt: int = 1) -> Path:
    path = Path(folder) / "telemetry" / setup / f"{attempt}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [record if isinstance(record, str) else json.dumps(RECORD | record) for record in records]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def whole(**changes: Record) -> list[Record]:
    """A record of each task in the default scope."""
    return [{"task_id": name, **changes.get(name, {})} for name in ("a", "b", "c")]


FAILED = {"completion_signals_passed": 1}
REGRESSED = {"tests_run": 5, "tests_passed": 3, "tests_failed": 2, "tests_regressed": 2}


def run_json(folder: str, capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, Any]]:
    """The runs that ``bench golden run --json`` prints."""
    capsys.readouterr()
    assert call("--project", folder, "golden", "run", "--json", *options) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["runs"]
    runs: list[dict[str, Any]] = document["runs"]
    return runs


def run_files(folder: str) -> list[Path]:
    return sorted((Path(folder) / ".bench" / "runs").glob("*"))


def test_the_json_has_the_columns_of_the_table_and_the_failures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    telemetry(folder, *whole(b=FAILED, c=REGRESSED))
    (run,) = run_json(folder, capsys)
    assert [name for name in run if name not in {"run", "failures", "warnings"}] == table_schema(
        "composite_scores"
    ).schema.names
    assert (run["setup"], run["attempt"], run["scope"]) == ("careful", 1, "smoke,standard,stretch")
    assert (run["tasks"], run["score"], run["safety"], run["complete"]) == (3, 0.0, 0.0, True)
    assert [(item["task"], item["category"], item["severity"]) for item in run["failures"]] == [
        ("b", "incomplete", "medium"),
        ("c", "test_regression", "critical"),
    ]
    assert "safety 0: tests that passed fail after it: c" in run["reasons"]


def test_scores_are_kept_as_rows_and_as_run_files_that_hold_what_they_are_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    telemetry(folder, *whole(a={"duration_s": 10.0 / 3, "cost_usd": 1 / 3}))
    (run,) = run_json(folder, capsys)
    (file,) = run_files(folder)
    assert re.fullmatch(r"eval_run_\d{8}T\d{6}\.\d{6}Z\.json", file.name)
    kept = json.loads(file.read_text())
    assert (kept["run"], run["run"]) == (file.stem, file.stem)
    assert kept["suite_digest"] == run["suite_digest"]
    assert kept["score"] == round(run["score"], 4)
    assert [result["task"] for result in kept["results"]] == ["a", "b", "c"]
    assert (kept["results"][0]["duration_s"], kept["results"][0]["cost_usd"]) == (3.33, 0.3333)
    store = Store.open(find_project(tmp_path).store_url)
    (row,) = store.tables.read("composite_scores").to_pylist()
    assert row["score"] == run["score"]
    assert store.tables.read("task_results").num_rows == len(TASKS)


def test_no_save_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = project(tmp_path)
    telemetry(folder, *whole())
    (run,) = run_json(folder, capsys, "--no-save")
    assert run["run"] is None
    assert not (tmp_path / ".bench").exists()


def test_a_run_file_that_cannot_be_opened_is_named_and_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    telemetry(folder, *whole())
    run_json(folder, capsys)
    closed = "eval_run_29990101T000000.000000Z"
    (tmp_path / ".bench" / "runs" / f"{closed}.json").symlink_to(tmp_path)
    for command in (["report"], ["failures"], ["run", "--compare"]):
        assert call("--project", folder, "golden", *command) == 0
        assert f"{closed} is skipped: it cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["empty", "folder", "link", "unknown"])
def test_telemetry_of_which_nothing_can_be_read_is_an_attempt_at_nothing_and_no_gate_passes_without_it(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    good = telemetry(folder, *whole())
    lost = telemetry(folder, *([] if what == "empty" else ["7"]), setup="lost")
    if what in {"folder", "link"}:
        lost.unlink()
        lost.mkdir() if what == "folder" else lost.symlink_to(good)
    runs = {run["setup"]: run for run in run_json(folder, capsys)}
    assert runs["careful"]["complete"]
    assert (runs["lost"]["score"], runs["lost"]["complete"], runs["lost"]["tasks"]) == (0.0, False, 3)
    assert call("--project", folder, "golden", "run", "--fail-under", "0.5") == 3
    assert "lost/1.jsonl" in capsys.readouterr().err


def test_judgements_of_a_setup_without_results_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    telemetry(folder, *whole())
    (tmp_path / "judgements" / "carefull").mkdir(parents=True)
    (tmp_path / "judgements" / "carefull" / "1.jsonl").write_text("")
    assert call("--project", folder, "golden", "run") == 0
    assert "judgements/carefull/1.jsonl: there are no results of carefull" in capsys.readouterr().err


def test_names_of_run_files_never_collide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = project(tmp_path)
    for attempt in (1, 2, 3):
        telemetry(folder, *whole(), attempt=attempt)
    runs = run_json(folder, capsys)
    assert len({run["run"] for run in runs}) == len(run_files(folder)) == 3
    for run in runs:
        assert call("--project", folder, "golden", "report", run["run"]) == 0


def test_tiers_narrow_and_add_and_a_scope_once_asked_for_stays_current(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    telemetry(folder, *whole(), {"task_id": "x"})
    (smoke,) = run_json(folder, capsys, "--tier", "smoke")
    (hostile,) = run_json(folder, capsys, "--tier", "adversarial", "--tier", "smoke")
    assert (smoke["tasks"], smoke["rate_standard"], smoke["scope"]) == (2, None, "smoke")
    assert (hostile["tasks"], hostile["scope"]) == (3, "smoke,adversarial")
    telemetry(folder, *whole(), {"task_id": "x", **REGRESSED})
    run_json(folder, capsys)
    rows = Store.open(find_project(tmp_path).store_url).tables.read("composite_scores").to_pylist()
    assert {row["scope"]: row["safety"] for row in rows} == {
        "smoke": 1.0,
        "smoke,standard,stretch": 1.0,
        "smoke,adversarial": 0.0,
    }


def test_results_that_are_no_longer_there_leave_the_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    telemetry(folder, *whole())
    gone = telemetry(folder, *whole(), attempt=2)
    assert len(run_json(folder, capsys)) == 2
    gone.unlink()
    assert len(run_json(folder, capsys)) == 1
    tables = Store.open(find_project(tmp_path).store_url).tables
    assert {row["attempt"] for row in tables.read("composite_scores").to_pylist()} == {1}
    assert {row["attempt"] for row in tables.read("task_results").to_pylist()} == {1}


def test_one_setup_and_one_attempt_can_be_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    for setup in ("careful", "quick"):
        for attempt in (1, 2):
            telemetry(folder, *whole(), setup=setup, attempt=attempt)
    found = run_json(folder, capsys, "--setup", "quick", "--attempt", "2")
    assert [(run["setup"], run["attempt"]) for run in found] == [("quick", 2)]
    assert call("--project", folder, "golden", "run", "--setup", "quik") == 1
    assert "quick" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("records", "options", "status"),
    [
        (whole(), [], 0),
        (whole(), ["--fail-under", "0.7"], 0),
        (whole(), ["--fail-under", "0.71"], 4),
        (whole(c=REGRESSED), ["--fail-on-regression"], 4),
        (whole(c=REGRESSED), [], 0),
        (whole(c=FAILED), ["--fail-on-regression"], 0),
        (whole()[:2], [], 0),
        (whole()[:2], ["--fail-under", "0"], 3),
        (whole()[:2], ["--fail-on-regression"], 3),
        (whole()[:2], ["--fail-under", "0.9"], 3),
        (whole(b=REGRESSED)[:2], ["--fail-under", "0.1"], 4),
        (whole(b=REGRESSED)[:2], ["--fail-on-regression"], 4),
    ],
)
def test_exit_statuses(
    tmp_path: Path, records: list[Record], options: list[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    telemetry(folder, *records)
    assert call("--project", folder, "golden", "run", *options) == status
    assert ("bench: " in capsys.readouterr().err) is (status != 0)


@pytest.mark.parametrize(("judged", "told"), [(False, True), (True, False)])
def test_a_score_below_the_threshold_is_told_that_nobody_judged_where_nobody_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], judged: bool, told: bool
) -> None:
    folder = project(tmp_path)
    telemetry(folder, *whole())
    if judged:
        path = tmp_path / "judgements" / "careful" / "1.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(VERDICT | {"task_id": "a"}) + "\n")
    assert call("--project", folder, "golden", "run", "--fail-under", "1") == 4
    assert ("a score without judgements" in capsys.readouterr().err) is told


@pytest.mark.parametrize("options", [[], ["--fail-under", "0"], ["--fail-on-regression"], ["--json"]])
def test_nothing_to_score_is_never_a_pass(
    tmp_path: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    assert call("--project", folder, "golden", "run", *options) == 5
    telemetry(folder, *whole())
    assert call("--project", folder, "golden", "run", "--tier", "stretch", *options) == 5
    assert "nothing to score" in capsys.readouterr().err
    assert not run_files(folder)


@pytest.mark.parametrize("threshold", ["nan", "inf", "-0.1", "1.1"])
def test_a_threshold_that_is_none_is_refused(tmp_path: Path, threshold: str) -> None:
    folder = project(tmp_path)
    telemetry(folder, *whole())
    assert call("--project", folder, "golden", "run", "--fail-under", threshold) == 2


def test_broken_records_are_named_with_file_and_line_and_never_raise_a_score(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    telemetry(folder, *whole()[:2])
    (without,) = run_json(folder, capsys)
    telemetry(folder, *whole()[:2], {"task_id": "c", "cost_usd": "free"}, "{")
    assert call("--project", folder, "golden", "run", "--json") == 0
    out, err = capsys.readouterr()
    assert "1.jsonl:3: cost_usd: expected a finite number" in err.replace("1.jsonl:3: : ", "1.jsonl:3: ")
    assert "1.jsonl:4" in err
    assert json.loads(out)["runs"][0]["score"] <= without["score"]


def test_a_golden_task_that_cannot_be_read_is_an_error_and_never_a_smaller_suite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    telemetry(folder, *whole())
    (tmp_path / "golden" / "standard" / "c.md").write_text("---\nrol: x\n---\n")
    assert call("--project", folder, "golden", "run") == 1
    assert "c.md" in capsys.readouterr().err


def test_a_comparison_gives_the_delta_the_flips_and_the_drift(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    telemetry(folder, *whole(b=FAILED))
    (before,) = run_json(folder, capsys)
    telemetry(folder, *whole(c=FAILED))
    (after,) = run_json(folder, capsys, "--compare")
    found = after["comparison"]
    assert (found["comparable"], found["against"], found["delta"]) == (True, before["run"], 0.0)
    assert found["flips"] == [
        {"task": "b", "before": "failed", "after": "passed"},
        {"task": "c", "before": "passed", "after": "failed"},
    ]
    assert found["drift"] == {"incomplete": 0}
    assert call("--project", folder, "golden", "run", "--compare", "--fail-on-regression") == 0
    telemetry(folder, *whole(c=FAILED, a=FAILED))
    assert call("--project", folder, "golden", "run", "--compare", "--fail-on-regression") == 4
    assert "careful, attempt 1 (a)" in capsys.readouterr().err


def test_other_scopes_and_suites_have_no_delta_but_shared_tasks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    telemetry(folder, *whole(b=FAILED))
    run_json(folder, capsys)
    (narrow,) = run_json(folder, capsys, "--tier", "smoke", "--compare")
    found = narrow["comparison"]
    assert (found["comparable"], found["delta"], found["parts"]) == (False, None, None)
    assert "the scopes differ" in found["reason"]
    assert (found["shared_tasks"], found["only_there"], found["passed_here"]) == (2, ["c"], 1)
    (tmp_path / "golden" / "smoke" / "a.md").write_text("---\n---\nDo it otherwise.\n")
    (changed,) = run_json(folder, capsys, "--tier", "smoke", "--compare")
    assert "the suites differ" in changed["comparison"]["reason"]
    assert (changed["comparison"]["changed"], changed["comparison"]["shared_tasks"]) == (["a"], 1)


def test_a_first_run_has_nothing_to_be_compared_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    telemetry(folder, *whole())
    assert "comparison" not in run_json(folder, capsys, "--compare")[0]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"score": NaN}', b"{}", b'{"version": 2}'])
def test_a_corrupt_run_file_is_named_and_skipped_and_hides_no_older_one(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    telemetry(folder, *whole(b=FAILED))
    (run,) = run_json(folder, capsys)
    corrupt = "eval_run_29990101T000000.000000Z"
    (tmp_path / ".bench" / "runs" / f"{corrupt}.json").write_bytes(content)
    for command in (["report"], ["failures"], ["report", "--json"], ["failures", "--json"]):
        assert call("--project", folder, "golden", *command) == 0
        out, err = capsys.readouterr()
        assert corrupt in err
        assert run["run"] in out or "b" in out
    assert call("--project", folder, "golden", "report", corrupt) == 1
    assert call("--project", folder, "golden", "run", "--compare") == 0
    assert corrupt in capsys.readouterr().err


def test_a_run_file_that_was_copied_under_another_name_is_not_that_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    telemetry(folder, *whole())
    run_json(folder, capsys)
    (file,) = run_files(folder)
    (file.parent / "eval_run_29990101T000000.000000Z.json").write_bytes(file.read_bytes())
    assert call("--project", folder, "golden", "report") == 0
    assert "it holds another run" in capsys.readouterr().err


def test_a_run_can_be_named_and_an_unknown_one_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    for command in ("report", "failures"):
        assert call("--project", folder, "golden", command) == 5
    telemetry(folder, *whole(b=FAILED))
    (first,) = run_json(folder, capsys)
    telemetry(folder, *whole())
    (second,) = run_json(folder, capsys)
    assert call("--project", folder, "golden", "report", f"{first['run']}.json", "--json") == 0
    assert json.loads(capsys.readouterr().out)["passed"] == 2
    for name in ("eval_run_20000101T000000.000000Z", "../config", "/etc/passwd"):
        assert call("--project", folder, "golden", "report", name) == 1
        assert f"the newest first: {second['run']}, {first['run']}" in capsys.readouterr().err


def test_failures_are_listed_counted_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = project(tmp_path)
    telemetry(folder, *whole(a=FAILED, b=FAILED, c={**FAILED, "timed_out": True}))
    (first,) = run_json(folder, capsys)
    assert call("--project", folder, "golden", "failures", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["run"], document["counts"]) == (first["run"], {"incomplete": 2, "timeout": 1})
    assert list(document["failures"][0]) == ["task", "category", "severity", "details", "files"]
    telemetry(folder, *whole(c={**FAILED, "timed_out": True}))
    run_json(folder, capsys)
    assert call("--project", folder, "golden", "failures", "--compare", first["run"]) == 0
    out = capsys.readouterr().out
    assert "timeout=1" in out
    assert "drift incomplete -2" in out


def test_the_report_is_markdown_that_names_every_part_and_lets_no_name_act(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project(tmp_path)
    telemetry(folder, *whole(b={**FAILED, "files_modified": ["<script>|\u202e`x`\x1b[31m"]}), setup="a|b*c")
    run_json(folder, capsys)
    assert call("--project", folder, "golden", "report") == 0
    out = capsys.readouterr().out
    for word in (
        "task\\_success",
        "code\\_quality",
        "efficiency",
        "reliability",
        "safety",
        "smoke",
        "Cost: ",
    ):
        assert word in out
    assert "a\\|b\\*c" in out
    assert "<script>" not in out
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_for_people_a_closed_gate_stands_below_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], terminal: None
) -> None:
    folder = project(tmp_path)
    telemetry(folder, *whole(c=REGRESSED))
    assert call("--project", folder, "golden", "run") == 0
    assert "careful, attempt 1: safety 0: tests that passed fail after it: c" in capsys.readouterr().out


@pytest.mark.parametrize(("options", "kept"), [((), True), (("--no-save",), False)])
def test_the_name_under_which_a_score_is_kept_is_printed_where_it_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], kept: bool
) -> None:
    folder = project(tmp_path)
    telemetry(folder, *whole())
    assert call("--project", folder, "golden", "run", "--plain", *options) == 0
    names = [path.stem for path in run_files(folder)]
    assert len(names) == kept
    assert capsys.readouterr().out.endswith(f" run={names[0] if kept else '-'}\n")


def test_for_people_each_score_says_under_which_name_it_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], terminal: None
) -> None:
    folder = project(tmp_path)
    telemetry(folder, *whole())
    assert call("--project", folder, "golden", "run") == 0
    (path,) = run_files(folder)
    assert f"careful, attempt 1: kept as {path.stem}\n" in capsys.readouterr().out
    assert call("--project", folder, "golden", "run", "--no-save") == 0
    assert "kept as" not in capsys.readouterr().out


def test_an_unwritable_store_is_one_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = project(tmp_path)
    telemetry(folder, *whole())
    (tmp_path / ".bench").write_text("")
    assert call("--project", folder, "golden", "run") == 1
    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert os.linesep.join(err.splitlines()).startswith("bench: ")
