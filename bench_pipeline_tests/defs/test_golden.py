"""The golden lane as Dagster runs it: results over tiers and attempts, scores over attempts."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from bench_pipeline.cli.launching import run_everything
from bench_pipeline.definitions import build_defs
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.checking import check_table
from bench_pipeline.pipeline.selection import TIERS, RunOptions, Selection, rectangle
from bench_pipeline_tests.cli.test_golden_scores import FAILED, REGRESSED, project, telemetry, whole

SCORES = dg.AssetKey("composite_scores")
CONFIG = "defaults: {max_attempts: 2}\nsandbox: {backend: process, allow_process: true}\n"


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """A project of golden tasks with telemetry of two setups over two attempts."""
    folder = tmp_path / "project"
    folder.mkdir()
    project(folder)
    config = folder / "config.yaml"
    config.write_text(config.read_text() + CONFIG)
    for attempt in (1, 2):
        telemetry(str(folder), *whole(), attempt=attempt)
        telemetry(str(folder), *whole(b=FAILED, c=REGRESSED), setup="quick", attempt=attempt)
    return folder


def run(folder: Path, job: str, instance: dg.DagsterInstance, *ends: str) -> dg.ExecuteInProcessResult:
    return (
        build_defs({"bench": Bench(folder)})
        .resolve_job_def(job)
        .execute_in_process(
            instance=instance,
            tags={
                "dagster/asset_partition_range_start": ends[0],
                "dagster/asset_partition_range_end": ends[-1],
            },
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            raise_on_error=False,
        )
    )


def metadata(event: dg.DagsterEvent) -> dict[str, Any]:
    return {
        name: value.value for name, value in event.step_materialization_data.materialization.metadata.items()
    }


def test_scores_and_their_parts_are_charted_and_a_zero_is_explained(
    golden: Path, instance: dg.DagsterInstance
) -> None:
    assert run(golden, "evaluate", instance, "1|smoke", "2|adversarial").success
    scored = run(golden, "score", instance, "1", "2")
    assert scored.success
    events = [event for event in scored.get_asset_materialization_events() if event.asset_key == SCORES]
    assert sorted(str(event.partition) for event in events) == ["1", "2"]
    found = metadata(events[0])
    for part in ("score", "task_success", "code_quality", "efficiency", "reliability", "safety"):
        assert isinstance(found[f"{part}: careful (smoke,standard,stretch)"], float)
    assert found["score: quick (smoke,standard,stretch)"] == 0.0
    assert "safety 0" in found["summary"]


def test_failures_are_previewed_gravest_first(golden: Path, instance: dg.DagsterInstance) -> None:
    done = run(golden, "evaluate", instance, "1|standard")
    assert done.success
    (event,) = (
        item for item in done.get_asset_materialization_events() if item.asset_key.path == ["task_results"]
    )
    assert "test&#95;regression" in metadata(event)["preview"]


def test_a_second_run_moves_no_data_version(golden: Path, instance: dg.DagsterInstance) -> None:
    versions = []
    for _ in range(2):
        assert run(golden, "evaluate", instance, "1|smoke", "2|adversarial").success
        assert run(golden, "score", instance, "1", "2").success
        record = instance.get_latest_data_version_record(SCORES, partition_key="1")
        assert record is not None
        assert record.asset_materialization is not None
        versions.append((record.asset_materialization.tags or {})["dagster/data_version"])
    assert versions[0] == versions[1]


def test_an_invalid_record_fails_its_check_and_stops_nothing(
    golden: Path, instance: dg.DagsterInstance
) -> None:
    telemetry(str(golden), *whole()[:2], "{")
    done = run(golden, "evaluate", instance, "1|smoke", "2|adversarial")
    assert done.success
    failed = [check for check in done.get_asset_check_evaluations() if not check.passed]
    assert [(check.check_name, check.blocking) for check in failed] == [("telemetry", False)]
    assert "1.jsonl:3" in str(failed[0].description)
    assert run(golden, "score", instance, "1", "2").success


def test_a_run_of_everything_scores_and_one_of_an_attempt_leaves_the_others(golden: Path) -> None:
    bench = Bench(golden)
    run_everything(bench, rectangle(TIERS, [1]), RunOptions())
    assert set(bench.store.tables.read("composite_scores")["attempt"].to_pylist()) == {1}
    run_everything(Bench(golden), rectangle(TIERS, [1, 2]), RunOptions())
    rows = Bench(golden).store.tables.read("composite_scores").to_pylist()
    assert {(row["setup"], row["attempt"]): row["safety"] for row in rows} == {
        ("careful", 1): 1.0,
        ("careful", 2): 1.0,
        ("quick", 1): 0.0,
        ("quick", 2): 0.0,
    }


def test_a_run_of_one_evaluation_scores_what_depends_on_it(golden: Path) -> None:
    (golden / "evaluations").mkdir()
    (golden / "evaluations" / "nightly.yaml").write_text(
        "apiVersion: bench.ber.run/v1alpha1\nkind: Evaluation\ntools: [{tool: shell}]\n"
    )
    options = RunOptions(selection=Selection(evaluations=("nightly",)))
    run_everything(Bench(golden), rectangle(TIERS, [1]), options)
    assert Bench(golden).store.tables.read("composite_scores").num_rows == 2


def test_scores_whose_gates_are_not_explained_fail_their_check(
    golden: Path, instance: dg.DagsterInstance
) -> None:
    assert run(golden, "evaluate", instance, "1|smoke", "2|adversarial").success
    assert run(golden, "score", instance, "1", "2").success
    tables = Bench(golden).store.tables
    rows = tables.read("composite_scores", attempt=1)
    (path,) = (path for path in tables.paths("composite_scores") if "attempt=1" in path)
    silent = [row | {"reasons": []} for row in rows.to_pylist()]
    tables.write("composite_scores", type(rows).from_pylist(silent, schema=rows.schema), attempt=1)
    assert Path(path).is_file()
    failed = [
        item.name
        for item in check_table(Bench(golden).store, "composite_scores", [{"attempt": 1}])
        if not item.passed
    ]
    assert failed == ["gates"]
    assert all(item.passed for item in check_table(Bench(golden).store, "composite_scores", [{"attempt": 2}]))
