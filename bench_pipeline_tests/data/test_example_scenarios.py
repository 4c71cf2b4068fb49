"""The example's scenarios: they parse, their traces are whole, and what comes of them is worth looking at."""

import shutil
from pathlib import Path

import pytest

from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.checking import check_table
from bench_pipeline.pipeline.judge_reports import write_judgements
from bench_pipeline.pipeline.scenario_results import look_at_comparisons, write_results

DATA = Path(__file__).resolve().parents[2] / "data"
CHECKABLE = {"invoice discount", "csv totals", "greeting in a shell script"}
OPEN = {"release note", "incident summary"}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """The example without its store, in a folder of its own, judged."""
    folder = tmp_path_factory.mktemp("example") / "data"
    shutil.copytree(DATA, folder, ignore=shutil.ignore_patterns(".bench"))
    bench = Bench(folder, backend="process")
    assert write_results(bench, [1])[1] == ()
    assert write_judgements(bench, [1])[1] == ()
    return bench


def test_three_scenarios_can_be_checked_and_two_are_open_ended() -> None:
    seen = look_at_comparisons(Bench(DATA))
    assert seen.problems == ()
    (scenarios,) = seen.scenarios.values()
    checked = {one.name for one in scenarios if any("test" in text for text in one.required_evidence)}
    assert checked == CHECKABLE
    assert {one.name for one in scenarios} == CHECKABLE | OPEN


def test_cells_differ_and_every_kind_of_failure_is_shown(bench: Bench) -> None:
    rows = bench.store.tables.read("scenario_results").to_pylist()
    passed = {
        cell: sum(row["passed"] for row in rows if row["cell"] == cell)
        for cell in ("terse", "thorough", "script")
    }
    assert passed == {"terse": 3, "thorough": 3, "script": 1}
    assert any(row["over_steps"] for row in rows)
    assert any(row["missing_evidence"] for row in rows)


def test_pairs_are_decided_by_different_rules_and_every_check_holds(bench: Bench) -> None:
    pairs = bench.store.tables.read("judge_pairs").to_pylist()
    assert {row["rule"] for row in pairs} >= {"passed", "missing_evidence", "artifact_length"}
    for table in ("scenario_results", "judge_reports", "judge_pairs"):
        assert all(outcome.passed for outcome in check_table(bench.store, table))
