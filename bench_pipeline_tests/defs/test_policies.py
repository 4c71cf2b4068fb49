"""The policy lane on a real instance: one event an attempt, nothing asked twice, no key in any event."""

import os
import sqlite3
from pathlib import Path

import dagster as dg
import pytest

from bench_pipeline.definitions import build_defs
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline_tests.pipeline.test_policy_receipts import LIVE, REPLAY, SECRET, base, project
from bench_pipeline_tests.providers.chat_server import Response, answer, serving

RECEIPTS, LEADERBOARD = dg.AssetKey("policy_receipts"), dg.AssetKey("policy_leaderboard")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)


def materialise(bench: Bench, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    return (
        build_defs({"bench": bench})
        .resolve_job_def("score")
        .execute_in_process(
            instance=instance,
            tags={"dagster/asset_partition_range_start": "1", "dagster/asset_partition_range_end": "3"},
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            raise_on_error=False,
        )
    )


def versions(result: dg.ExecuteInProcessResult) -> dict[str | None, str]:
    return {
        event.partition or event.asset_key.to_user_string(): (
            event.step_materialization_data.materialization.tags or {}
        )["dagster/data_version"]
        for event in result.get_asset_materialization_events()
        if event.asset_key in {RECEIPTS, LEADERBOARD} and event.step_materialization_data.materialization.tags
    }


def failed_checks(result: dg.ExecuteInProcessResult) -> list[str]:
    return [check.check_name for check in result.get_asset_check_evaluations() if not check.passed]


def test_each_attempt_has_its_event_and_a_second_run_changes_no_version(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    bench = project(tmp_path / "project", orchard=f"{REPLAY}repeat: 2\n")
    first = materialise(bench, instance)
    assert first.success
    assert failed_checks(first) == []
    assert set(versions(first)) == {"1", "2", "3", "policy_leaderboard"}
    assert versions(materialise(bench, instance)) == versions(first)


def test_a_broken_comparison_fails_its_check_and_stops_nothing(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    bench = project(tmp_path / "project", orchard=REPLAY, broken="budget: x\n")
    result = materialise(bench, instance)
    assert result.success
    assert failed_checks(result) == ["comparisons"]


def test_counters_that_disagree_with_their_calls_fail_the_run(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = project(tmp_path / "project", orchard=REPLAY)
    assert materialise(bench, instance).success
    table = bench.store.tables.read("policy_receipts", attempt=1)
    place = table.schema.get_field_index("correct")
    bench.store.tables.write(
        "policy_receipts", table.set_column(place, table.schema.field("correct"), [[2, 3, 2]]), attempt=1
    )
    result = materialise(bench, instance)
    assert not result.success
    assert failed_checks(result) == ["traces"]


def test_a_key_that_is_missing_fails_the_asset_after_the_others_are_reported(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_KEY")
    bench = project(tmp_path / "project", live=LIVE, orchard=REPLAY)
    result = materialise(bench, instance)
    assert not result.success
    assert "1" in {event.partition for event in result.get_asset_materialization_events()}
    assert {row["comparison"] for row in bench.store.tables.read("policy_receipts").to_pylist()} == {
        "orchard"
    }


def test_a_key_is_in_no_event_and_no_file_whatever_the_server_says(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    def leaking(document: dict[str, object]) -> Response:
        return Response(SECRET.encode(), 401) if "price" in str(document) else answer(f"it is {SECRET}")

    with serving(leaking) as server:
        bench = project(tmp_path / "project", base(server), live=LIVE)
        assert materialise(bench, instance).success
    for folder, _, names in os.walk(tmp_path):
        for name in names:
            assert SECRET.encode() not in (Path(folder) / name).read_bytes(), name
    databases = list(tmp_path.rglob("*.db"))
    assert databases
    for path in databases:
        with sqlite3.connect(path) as database:
            assert SECRET not in "\n".join(database.iterdump())
        database.close()
