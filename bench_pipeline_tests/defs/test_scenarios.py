"""The scenario lane as Dagster runs it: tools run once, traces replayed, pairs judged from the table."""

import json
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from bench_pipeline.definitions import build_defs
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.checking import check_table
from bench_pipeline.pipeline.judge_reports import write_judgements
from bench_pipeline.pipeline.scenario_results import look_at_comparisons, write_results
from bench_pipeline_tests.model_server import model_server
from bench_pipeline_tests.scenarios.making import scenario_file, trace_file

HEAD = "apiVersion: bench.ber.run/v1alpha1\nkind: {}\n"
CONFIG = HEAD.format("Project") + (
    "defaults: {max_attempts: 2, resources: {cpus: 1, memory: 1GiB, pids: 64}}\n"
    "sandbox: {backend: process, allow_process: true}\n"
)
COMPARISON = (
    HEAD.format("ScenarioComparison")
    + """\
scenarios: [a.toml, b.toml]
attempts: 2
cells:
  recorded: {traces: traces}
  script: {tool: shell, options: {command: 'echo run >> "$LOG"; echo exit 0 > test.sh'}}
"""
)
END = {"type": "end", "seconds": 3}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A comparison of a folder of traces, which has one run of ``b`` only, and a script that notes its runs."""
    folder = tmp_path / "project"
    scenarios = folder / "scenarios"
    scenarios.mkdir(parents=True)
    (folder / "config.yaml").write_text(CONFIG)
    (scenarios / "both.yaml").write_text(COMPARISON.replace("$LOG", str(tmp_path / "log")))
    scenario_file(scenarios, "a", required=("shell-fixture-test",), file="a.toml")
    scenario_file(scenarios, "b", file="b.toml")
    for number, name in enumerate("aab"):
        run_id = f"00000000-0000-4000-8000-00000000000{number}"
        events = [{"type": "step"}, {"type": "artifact", "text": f"run {number}"}, END]
        started = f"2026-01-31T12:00:0{number}Z"
        trace_file(scenarios / "traces", *events, run_id=run_id, scenario=name, started_at=started)
    return folder


def runs(project: Path) -> int:
    log = project.parent / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def results(bench: Bench, attempt: int) -> dict[tuple[str, str], dict[str, Any]]:
    rows = bench.store.tables.read("scenario_results", attempt=attempt).to_pylist()
    return {(row["scenario"], row["cell"]): row for row in rows}


def test_traces_are_replayed_by_attempt_and_a_tool_runs_once(project: Path) -> None:
    bench = Bench(project)
    written, problems = write_results(bench, [1, 2])
    assert runs(project) == 4
    assert results(bench, 1)["a", "recorded"]["winning_artifact"] == "run 0"
    assert results(bench, 2)["a", "recorded"]["winning_artifact"] == "run 1"
    assert results(bench, 1)["a", "script"]["passed"]
    assert results(bench, 1)["a", "recorded"]["missing_evidence"] == ["shell-fixture-test"]
    assert ("b", "recorded") not in results(bench, 2)
    assert [problem.startswith("both: recorded: b: looking for run 2") for problem in problems] == [True]
    again, _ = write_results(Bench(project), [1, 2])
    assert runs(project) == 4
    assert [item.digest for item in again.values()] == [item.digest for item in written.values()]


@pytest.mark.parametrize("change", ["scenario", "workspace", "command"])
def test_a_change_of_what_decides_a_run_runs_it_again(project: Path, change: str) -> None:
    write_results(Bench(project), [1])
    before = runs(project)
    if change == "scenario":
        scenario_file(
            project / "scenarios", "a", required=("shell-fixture-test",), goal="Other.", file="a.toml"
        )
    elif change == "workspace":
        (project / "scenarios" / "a").mkdir()
        (project / "scenarios" / "a" / "notes").write_text("x")
    else:
        comparison = project / "scenarios" / "both.yaml"
        comparison.write_text(comparison.read_text().replace("exit 0 >", "exit 0  >"))
    write_results(Bench(project), [1])
    assert runs(project) - before == (2 if change == "command" else 1)


ASKING = """\
import json, os, urllib.request as http
request = http.Request(os.environ["API_URL"] + "/v1/chat/completions", headers={"x-api-key": os.environ["API_KEY"]})
http.urlopen(request, json.dumps({"model": "m-1", "messages": []}).encode()).read()
"""


def test_the_scenarios_of_a_run_share_its_caps(project: Path) -> None:
    tool = {
        "invoke": {
            "command": ["python3", "-c", ASKING],
            "env": {"API_URL": "{api_url}", "API_KEY": "{api_key}"},
        },
        "model_apis": ["chat-completions"],
        "models": {"m": {"id": "m-1"}},
        "usage": {"format": "none"},
    }
    (project / "tools").mkdir()
    document = {"apiVersion": "bench.ber.run/v1alpha1", "kind": "Tool", "tool": "asking", **tool}
    (project / "tools" / "asking.yaml").write_text(json.dumps(document))
    comparison = project / "scenarios" / "both.yaml"
    comparison.write_text(
        comparison.read_text().split("cells:")[0] + "cells: {asking: {tool: asking, model: m}}\n"
    )
    with model_server({"text": "x"}) as server:
        upstream = f"upstreams: {{mine: {{base_url: '{server.url}', models: [m-1]}}}}\n"
        (project / "config.yaml").write_text(CONFIG + upstream + "spending: {max_requests: 1}\n")
        _, problems = write_results(Bench(project), [1])
    assert len(server.requests) == 1
    assert ["the cap on requests of this run (1) is reached" in problem for problem in problems] == [True]


@pytest.mark.parametrize("capped", ["by the project", "by the run"])
def test_a_tool_with_a_model_is_not_run_under_a_cap_that_would_not_be_kept(
    project: Path, capped: str
) -> None:
    config = project / "config.yaml"
    if capped == "by the project":
        config.write_text(config.read_text() + "spending: {max_cost_usd: 1}\n")
    comparison = project / "scenarios" / "both.yaml"
    tool = HEAD.format("Tool") + (
        "tool: paid\ninvoke: {command: [/bin/sh, -c, 'true']}\nmodels: {m: {id: m-1}}\nusage: {format: none}\n"
    )
    (project / "tools").mkdir()
    (project / "tools" / "paid.yaml").write_text(tool)
    text = comparison.read_text().split("cells:")[0]
    comparison.write_text(text + "cells: {paid: {tool: paid, model: m}}\n")
    bench = Bench(project)
    if capped == "by the run":
        bench.left_usd = 0.5
    _, problems = write_results(bench, [1])
    assert len(problems) == 2
    assert all("spending.max_cost_usd" in problem for problem in problems)


def test_pairs_are_judged_from_the_table_and_every_check_holds(project: Path) -> None:
    bench = Bench(project)
    write_results(bench, [1, 2])
    _, problems = write_judgements(bench, [1, 2])
    assert problems == ()
    (report,) = bench.store.tables.read("judge_reports", attempt=1).to_pylist()
    assert (report["left"], report["right"], report["judge"]) == ("recorded", "script", "rubric")
    assert (report["pairs"], report["left_wins"], report["right_wins"]) == (2, 1, 1)
    pairs = bench.store.tables.read("judge_pairs", attempt=1).to_pylist()
    assert [(row["scenario"], row["verdict"], row["rule"]) for row in pairs] == [
        ("a", "right", "passed"),
        ("b", "left", "artifact_length"),
    ]
    for table in ("scenario_results", "judge_reports", "judge_pairs"):
        assert all(outcome.passed for outcome in check_table(bench.store, table))


def test_both_assets_are_materialised_with_versions_of_their_content(
    project: Path, instance: dg.DagsterInstance
) -> None:
    def run() -> dg.ExecuteInProcessResult:
        job = build_defs({"bench": Bench(project)}).resolve_job_def("score")
        chosen = ["scenario_results", "judge_reports"]
        return job.execute_in_process(
            instance=instance,
            asset_selection=[dg.AssetKey(name) for name in chosen],
            tags={"dagster/asset_partition_range_start": "1", "dagster/asset_partition_range_end": "2"},
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )

    versions = []
    for _ in range(2):
        assert run().success
        key = dg.AssetKey("judge_reports")
        event = instance.get_latest_data_version_record(key, partition_key="1")
        assert event is not None
        assert event.asset_materialization is not None
        versions.append((event.asset_materialization.tags or {})["dagster/data_version"])
        assert "recorded against script" in str(event.asset_materialization.metadata["summary"].value)
    assert versions[0] == versions[1]
    assert runs(project) == 4


def test_recorded_replies_of_a_judge_are_replayed_beside_the_rubric(project: Path) -> None:
    comparison = project / "scenarios" / "both.yaml"
    comparison.write_text(comparison.read_text() + "judgements: replies.jsonl\n")
    row = {"schema": 1, "model": "judge-1", "scenario": "a", "prompt_sha256": "0" * 64, "failure": "timeout"}
    (project / "scenarios" / "replies.jsonl").write_text(json.dumps(row) + "\n")
    bench = Bench(project)
    write_results(bench, [1])
    write_judgements(bench, [1])
    rows = {row["judge"]: row for row in bench.store.tables.read("judge_reports").to_pylist()}
    assert (rows["judge-1"]["no_votes"], rows["judge-1"]["left_winrate"]) == (2, None)
    assert rows["rubric"]["pairs"] == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("cells: {a: {tool: shell, traces: x}}", "either a tool or a folder"),
        ("cells: {a: {}}", "either a tool or a folder"),
        ("cells: {a: {traces: x, model: m}}", "belong to a tool"),
        ("cells: {a: {traces: ../x}}", "not absolute and without"),
        ("cells: {}", "cells"),
        ("judge_pairs: [[recorded, nobody]]", "judge_pairs names nobody"),
        ("judge_pairs: [[script, script]]", "against itself"),
        ("scenarios: []", "scenarios"),
        ("scenarios: [absent.toml]", "absent.toml"),
        ("scenarios: [a.toml, a.toml]", "has the name of"),
        ("attempts: 0", "attempts"),
        ("sed: 3", "did you mean seed"),
    ],
)
def test_a_broken_comparison_is_told_and_the_others_go_on(project: Path, line: str, said: str) -> None:
    good = project / "scenarios" / "both.yaml"
    field = line.split(":", maxsplit=1)[0]
    kept = [
        text
        for text in good.read_text().splitlines()
        if not text.startswith((field, "  ") if field == "cells" else field)
    ]
    (project / "scenarios" / "bad.yaml").write_text("\n".join([*kept, line]) + "\n")
    seen = look_at_comparisons(Bench(project))
    assert [comparison.name for comparison in seen.comparisons] == ["both"]
    assert said in "\n".join(map(str, seen.problems))
