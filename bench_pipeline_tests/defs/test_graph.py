"""The asset graph as others rely on it, and real runs of it on a real instance."""

import shutil
from pathlib import Path

import dagster as dg
import pyarrow.compute as pc
import pytest

from bench_pipeline.definitions import build_defs
from bench_pipeline.pipeline.bench import Bench

READ_BY_THE_REPORT = [
    *("composite_scores", "evaluation_rankings", "judge_reports", "ledger_summaries", "paired_comparisons"),
    *("policy_leaderboard", "policy_receipts", "scenario_results", "task_results", "verdicts"),
]
CELLS, VERDICTS = dg.AssetKey("evaluation_cells"), dg.AssetKey("verdicts")


def materialise(
    bench: Bench, instance: dg.DagsterInstance, *, first: str = "1|smoke", last: str = "2|adversarial"
) -> dg.ExecuteInProcessResult:
    job = build_defs({"bench": bench}).resolve_job_def("evaluate")
    return job.execute_in_process(
        instance=instance,
        tags={"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last},
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        raise_on_error=False,
    )


def data_versions(instance: dg.DagsterInstance, key: dg.AssetKey) -> dict[str, str]:
    versions = {}
    for partition in instance.get_materialized_partitions(key):
        record = instance.get_latest_data_version_record(key, partition_key=partition)
        assert record is not None
        assert record.asset_materialization is not None
        versions[partition] = (record.asset_materialization.tags or {})["dagster/data_version"]
    return versions


def test_the_graph_is_the_documented_one(bench: Bench) -> None:
    graph = build_defs({"bench": bench}).resolve_asset_graph()
    shape = {
        node.key.to_user_string(): (
            sorted(parent.to_user_string() for parent in node.parent_keys),
            node.group_name,
            sorted(node.kinds),
            node.partitions_def is not None,
        )
        for node in graph.asset_nodes
    }
    inputs = ["evaluation_files", "prediction_files", "task_files", "tool_files"]
    assert shape == {
        "evaluation_files": ([], "evaluations", ["yaml"], False),
        "tool_files": ([], "evaluations", ["yaml"], False),
        "task_files": ([], "evaluations", ["yaml"], False),
        "prediction_files": ([], "evaluations", ["json"], False),
        "evaluation_cells": (inputs, "evaluations", ["parquet", "python"], True),
        "verdicts": (["evaluation_cells"], "evaluations", ["parquet", "python"], True),
        "evaluation_rankings": (["verdicts"], "evaluations", ["parquet", "python"], False),
        "paired_comparisons": (["verdicts"], "evaluations", ["parquet", "python"], False),
        "golden_files": ([], "golden", ["markdown"], False),
        "telemetry_files": ([], "golden", ["json"], False),
        "judgement_files": ([], "golden", ["json"], False),
        "task_results": (
            ["golden_files", "judgement_files", "telemetry_files", "verdicts"],
            "golden",
            ["parquet", "python"],
            True,
        ),
        "composite_scores": (["task_results"], "golden", ["parquet", "python"], True),
        "policy_files": ([], "policies", ["yaml"], False),
        "policy_receipts": (["policy_files"], "policies", ["parquet", "python"], True),
        "policy_leaderboard": (["policy_receipts"], "policies", ["parquet", "python"], False),
        "comparison_files": ([], "scenarios", ["yaml"], False),
        "scenario_files": ([], "scenarios", ["toml"], False),
        "trace_files": ([], "scenarios", ["json"], False),
        "scenario_results": (
            ["comparison_files", "scenario_files", "trace_files"],
            "scenarios",
            ["parquet", "python"],
            True,
        ),
        "judge_reports": (["scenario_results"], "scenarios", ["parquet", "python"], True),
        "ledger_files": ([], "ledgers", ["json"], False),
        "ledger_rows": (["ledger_files"], "ledgers", ["parquet", "python"], True),
        "ledger_summaries": (["ledger_rows"], "ledgers", ["parquet", "python"], False),
        "bench_report": (READ_BY_THE_REPORT, "report", ["html", "python"], False),
    }


def test_every_asset_says_whose_it_is_what_it_holds_and_which_code_made_it(bench: Bench) -> None:
    graph = build_defs({"bench": bench}).resolve_asset_graph()
    for node in graph.asset_nodes:
        assert node.description
        if node.is_executable:
            assert node.owners == ["team:benchmarks"]
            assert node.code_version == "1"
            assert node.tags["lane"] == node.group_name


def test_every_check_blocks_except_those_about_files_of_others(bench: Bench) -> None:
    graph = build_defs({"bench": bench}).resolve_asset_graph()
    blocking = {
        (spec.asset_key.to_user_string(), spec.name): spec.blocking
        for spec in (graph.get_check_spec(key) for key in graph.asset_check_keys)
    }
    assert {key for key, blocks in blocking.items() if not blocks} == {
        ("evaluation_cells", "documents"),
        ("evaluation_cells", "left_failed"),
        ("task_results", "telemetry"),
        ("policy_receipts", "comparisons"),
        ("scenario_results", "comparisons"),
        ("judge_reports", "quorum"),
        ("ledger_rows", "read"),
    }
    assert {asset for asset, _ in blocking} == {
        "evaluation_cells",
        "verdicts",
        "evaluation_rankings",
        "paired_comparisons",
        "task_results",
        "composite_scores",
        "policy_receipts",
        "policy_leaderboard",
        "scenario_results",
        "judge_reports",
        "ledger_rows",
        "ledger_summaries",
    }


def test_a_ranged_run_covers_every_partition_with_a_version_of_its_own_content(
    bench: Bench, instance: dg.DagsterInstance
) -> None:
    result = materialise(bench, instance)
    assert result.success
    versions = data_versions(instance, VERDICTS)
    assert len(versions) == 8
    tiers = {bench.tasks.get("delimited-last-field").tier, bench.tasks.get("backup-names-with-spaces").tier}
    filled = {f"1|{tier}" for tier in tiers}
    empty = {version for key, version in versions.items() if key not in filled}
    assert len(empty) == 1, "empty partitions have the same content"
    assert len({versions[key] for key in filled}) == len(filled)
    assert not empty & {versions[key] for key in filled}
    events = [event for event in result.get_asset_materialization_events() if event.asset_key == VERDICTS]
    assert sorted(str(event.partition) for event in events) == sorted(versions), "one event per partition"


def test_a_second_run_executes_nothing_and_moves_no_data_version(
    project: Path, instance: dg.DagsterInstance
) -> None:
    assert materialise(Bench(project), instance).success
    before = {key: data_versions(instance, key) for key in (CELLS, VERDICTS)}
    rankings = instance.get_latest_data_version_record(dg.AssetKey("evaluation_rankings"))
    again = Bench(project)
    second = materialise(again, instance)
    assert second.success
    deeds = again.store.tables.read("run_cells", run_id=second.run_id)
    assert set(deeds["action"].to_pylist()) == {"reused"}
    assert {key: data_versions(instance, key) for key in (CELLS, VERDICTS)} == before
    later = instance.get_latest_data_version_record(dg.AssetKey("evaluation_rankings"))
    assert rankings is not None
    assert later is not None
    tags = (record.asset_materialization.tags for record in (rankings, later) if record.asset_materialization)
    assert len({(tag or {})["dagster/data_version"] for tag in tags}) == 1


def test_one_partition_can_be_run_alone_and_shows_counts_preview_and_columns(
    bench: Bench, instance: dg.DagsterInstance
) -> None:
    tier = bench.tasks.get("delimited-last-field").tier
    assert materialise(bench, instance, first=f"1|{tier}", last=f"1|{tier}").success
    assert instance.get_materialized_partitions(VERDICTS) == {f"1|{tier}"}
    record = instance.get_latest_data_version_record(VERDICTS, partition_key=f"1|{tier}")
    assert record is not None
    assert record.asset_materialization is not None
    metadata = record.asset_materialization.metadata
    assert metadata["dagster/row_count"].value == metadata["cells"].value == 2
    assert metadata["hits"].value + metadata["misses"].value == 2
    assert "careful-large" in str(metadata["preview"].value)
    assert "dagster/column_schema" in metadata
    rankings = instance.get_latest_data_version_record(dg.AssetKey("evaluation_rankings"))
    assert rankings is not None
    assert rankings.asset_materialization is not None
    assert rankings.asset_materialization.metadata["setups_ranked"].value == 2


def test_the_instance_can_be_deleted_and_costs_history_only(project: Path, tmp_path: Path) -> None:
    tables = []
    for name in ("first", "second"):
        home = tmp_path / name
        home.mkdir()
        with dg.DagsterInstance.from_config(str(home)) as instance:
            bench = Bench(project)
            assert materialise(bench, instance).success
            tables.append(bench.store.tables.read("verdicts"))
        shutil.rmtree(home)
    assert tables[0].equals(tables[1])


def test_a_document_that_does_not_parse_shows_as_a_failed_check_and_the_others_run(
    project: Path, instance: dg.DagsterInstance
) -> None:
    (project / "evaluations" / "broken.yaml").write_text(
        "apiVersion: bench.ber.run/v1alpha1\nkind: Evaluation\ntool: x\n"
    )
    bench = Bench(project)
    result = materialise(bench, instance)
    assert result.success
    failed = [check for check in result.get_asset_check_evaluations() if not check.passed]
    assert [check.check_name for check in failed] == ["documents"]
    assert "evaluations/broken.yaml:3" in (failed[0].description or "")
    assert set(bench.store.tables.read("verdicts")["outcome_class"].to_pylist()) == {"verdict"}


@pytest.mark.parametrize(
    "config", ["kind: Project", "apiVersion: bench.ber.run/v1alpha1\nkind: Project\nnonsense: 1\n"]
)
def test_a_config_that_does_not_parse_never_takes_the_code_location_down(project: Path, config: str) -> None:
    (project / "config.yaml").write_text(config)
    assert build_defs({"bench": Bench(project)}).resolve_job_def("evaluate").name == "evaluate"


def test_a_table_that_breaks_its_schema_stops_what_is_downstream(
    bench: Bench, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = bench.store.tables.read

    def twice(name: str, columns: object = None, **partition: object) -> object:
        table = read(name, columns, **partition)  # type: ignore[arg-type]
        return type(table).from_batches([*table.to_batches(), *table.to_batches()], table.schema)

    monkeypatch.setattr(bench.store.tables, "read", twice)
    result = materialise(bench, instance)
    assert not result.success
    failed = {check.check_name for check in result.get_asset_check_evaluations() if not check.passed}
    assert "unique_keys" in failed
    assert not instance.get_materialized_partitions(VERDICTS)


def test_verdicts_say_what_was_measured_and_run_cells_what_the_run_did(
    bench: Bench, instance: dg.DagsterInstance
) -> None:
    result = materialise(bench, instance)
    verdicts = bench.store.tables.read("verdicts")
    deeds = bench.store.tables.read("run_cells", run_id=result.run_id)
    assert sorted(deeds["identity"].to_pylist()) == sorted(verdicts["identity"].to_pylist())
    assert set(deeds["action"].to_pylist()) == {"executed"}
    passed = verdicts.filter(pc.equal(verdicts["setup"], "predictions/careful-large/-"))["passed"].to_pylist()
    assert passed == [True, True]
