"""The specs of everything that starts runs, as a snapshot; and the code location as Dagster's own commands load it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.instance.config import dagster_instance_config

from bench_pipeline.definitions import build_defs
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.initialising import write_instance_config, write_workspace

ROOT = Path(__file__).parents[2]
# Jobs that Dagster makes by itself.
IMPLICIT = "__ASSET_JOB"
JOBS: dict[str, Any] = {
    "evaluate": {
        "executor": "in_process",
        "tags": {"dagster/max_retries": "0"},
        "steps": [
            "evaluation_cells",
            "evaluation_cells_checks",
            "evaluation_cells_documents",
            "evaluation_cells_left_failed",
            "evaluation_rankings",
            "evaluation_rankings_checks",
            "paired_comparisons",
            "paired_comparisons_checks",
            "task_results",
            "task_results_checks",
            "task_results_telemetry",
            "verdicts",
            "verdicts_checks",
        ],
        "config": [
            "attempts", "concurrency", "evaluations", "fresh", "max_cells", "max_cost_usd", "plan", "record", "replay",
            "retry", "tasks", "tiers",
        ],
    },
    "score": {
        "executor": "in_process",
        "tags": {"dagster/max_retries": "0"},
        "steps": [
            "composite_scores",
            "composite_scores_checks",
            "judge_reports",
            "judge_reports_checks",
            "judge_reports_quorum",
            "policy_leaderboard",
            "policy_leaderboard_checks",
            "policy_receipts",
            "policy_receipts_checks",
            "policy_receipts_comparisons",
            "policy_receipts_traces",
            "scenario_results",
            "scenario_results_checks",
            "scenario_results_comparisons",
        ],
        "config": ["comparisons", "fresh"],
    },
    "read_ledgers": {
        "executor": "in_process",
        "tags": {"dagster/max_retries": "0"},
        "steps": [
            "ledger_rows",
            "ledger_rows_checks",
            "ledger_rows_read",
            "ledger_summaries",
            "ledger_summaries_checks",
        ],
        "config": [],
    },
    "report": {
        "executor": "in_process",
        "tags": {"dagster/max_retries": "0"},
        "steps": ["bench_report"],
        "config": [],
    },
}  # fmt: skip
SCHEDULES: dict[str, Any] = {
    "nightly": {"cron": "17 2 * * *", "timezone": "UTC", "jobs": ["evaluate"], "status": "STOPPED"}
}
SENSORS: dict[str, Any] = {
    "follow_sensor": {"seconds": 15, "jobs": ["evaluate", "score"], "status": "RUNNING"},
    "file_sensor": {"seconds": 15, "jobs": ["evaluate", "score"], "status": "STOPPED"},
    "ledger_sensor": {"seconds": 10, "jobs": ["read_ledgers"], "status": "RUNNING"},
    "failure_hook": {"seconds": 30, "jobs": [], "status": "RUNNING"},
    "night_sensor": {"seconds": 30, "jobs": ["evaluate", "score", "report"], "status": "RUNNING"},
    "notify_sensor": {"seconds": 30, "jobs": [], "status": "RUNNING"},
}


def test_every_job_schedule_and_sensor_is_as_documented(bench: Bench) -> None:
    repository = build_defs({"bench": bench}).get_repository_def()
    jobs = {
        job.name: {
            "executor": job.executor_def.name,
            "tags": dict(job.run_tags),
            "steps": sorted(node.name for node in job.nodes),
            "config": sorted(_config_fields(job)),
        }
        for job in repository.get_all_jobs()
        if not job.name.startswith(IMPLICIT)
    }
    schedules = {
        schedule.name: {
            "cron": schedule.cron_schedule,
            "timezone": schedule.execution_timezone,
            "jobs": [schedule.job_name],
            "status": schedule.default_status.value,
        }
        for schedule in repository.schedule_defs
    }
    sensors = {
        sensor.name: {
            "seconds": sensor.minimum_interval_seconds,
            "jobs": [target.job_name for target in sensor.targets],
            "status": sensor.default_status.value,
        }
        for sensor in repository.sensor_defs
    }
    assert (jobs, schedules, sensors) == (JOBS, SCHEDULES, SENSORS)


def _config_fields(job: dg.JobDefinition) -> list[str]:
    schemas = (
        node.definition.config_schema for node in job.nodes if node.name in {"verdicts", "policy_receipts"}
    )
    return [name for schema in schemas for name in schema.config_type.fields]


@pytest.mark.parametrize(
    ("chosen", "executor"), [("in_process", "in_process"), ("multiprocess", "multiprocess")]
)
def test_the_configured_executor_is_that_of_runs_from_the_ui(
    project: Path, chosen: str, executor: str
) -> None:
    config = project / "config.yaml"
    config.write_text(f"{config.read_text()}dagster: {{executor: {chosen}}}\n")
    job = build_defs({"bench": Bench(project)}).resolve_job_def("evaluate")
    assert job.executor_def.name == executor


def test_runs_that_may_call_the_same_upstream_are_started_one_at_a_time(project: Path) -> None:
    config = project / "config.yaml"
    config.write_text(
        f"{config.read_text()}upstreams:\n  main: {{base_url: 'https://a.example/v1'}}\n"
        "  my lab: {base_url: 'https://b.example/v1'}\n"
    )
    keys = {"bench/upstream-main", "bench/upstream-my-lab"}
    definitions = build_defs({"bench": Bench(project)})
    tagged = {name: keys & definitions.resolve_job_def(name).run_tags.keys() for name in JOBS}
    assert {name for name, found in tagged.items() if found == keys} == {"evaluate", "score"}
    read, _ = dagster_instance_config(str(write_instance_config(Bench(project).project)))
    limits = read["concurrency"]["runs"]["tag_concurrency_limits"]
    assert {limit["key"]: limit["limit"] for limit in limits} == dict.fromkeys(keys, 1)


def validate(workspace: Path, cwd: Path, **environment: str) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BENCH_", "DAGSTER_"))}
    done = subprocess.run(
        [sys.executable, "-m", "dagster", "definitions", "validate", "-w", str(workspace)],
        cwd=cwd,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "bench_pipeline" in done.stderr + done.stdout


def test_dagsters_own_check_passes_in_this_checkout(tmp_path: Path) -> None:
    validate(ROOT / "workspace.yaml", ROOT, DAGSTER_HOME=str(tmp_path))


def test_dagsters_own_check_passes_for_a_project_elsewhere(project: Path, tmp_path: Path) -> None:
    workspace = write_workspace(Bench(project).project)
    validate(workspace, tmp_path, DAGSTER_HOME=str(tmp_path), BENCH_PROJECT=str(project))
