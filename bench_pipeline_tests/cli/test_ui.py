"""``bench ui`` as a person starts it: one real web server and daemon over a small project."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench_pipeline_tests.defs.conftest import small_project

# The steps of one server are one story: tests of this file run in order, in one worker.
pytestmark = pytest.mark.xdist_group("ui")

LAUNCH = """mutation($params: ExecutionParams!) { launchRun(executionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
STATUS = "query($run: ID!) { runOrError(runId: $run) { ... on Run { status } } }"
EVENTS = """query($run: ID!) { logsForRun(runId: $run) { ... on EventConnection { events { __typename
  ... on MessageEvent { message stepKey }
  ... on MaterializationEvent { assetKey { path } metadataEntries { label
    ... on IntMetadataEntry { intValue } ... on FloatMetadataEntry { floatValue }
    ... on MarkdownMetadataEntry { mdStr } } } } } } }"""
LOCATIONS = """{ workspaceOrError { ... on Workspace { locationEntries { name locationOrLoadError { __typename
  ... on RepositoryLocation { repositories { jobs { name } assetNodes { assetKey { path }
  isPartitioned } } } } } } } }"""
RUNS = """{ runsOrError(filter: {pipelineName: "evaluate",
  tags: [{key: ".dagster/repository", value: "__repository__@bench_pipeline"}]}) {
  ... on Runs { results { runId status tags { key } } } } }"""


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def command(root: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "bench_pipeline", "--project", str(root), *words]


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("BENCH_", "DAGSTER_"))}


def bench(root: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command(root, *words), check=False, env=environment(), capture_output=True, text=True, timeout=120
    )


@dataclass
class Server:
    root: Path
    port: int
    process: "subprocess.Popen[str]"

    def ask(self, query: str, **variables: object) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/graphql",
            json.dumps({"query": query, "variables": variables}).encode(),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            document = json.load(answer)
        assert "errors" not in document, document
        return document["data"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return small_project(tmp_path / "project")


@pytest.fixture
def server(project: Path) -> Iterator[Server]:
    with serving(project) as found:
        yield found


@contextmanager
def serving(project: Path) -> Iterator[Server]:
    """The UI of a project, once it is ready, for as long as the block."""
    port, said = free_port(), project.parent / "said"
    with said.open("w") as output:
        process = subprocess.Popen(
            command(project, "ui", "--port", str(port)),
            env=environment(),
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
    with process:
        try:
            wait_for(lambda: process.poll() is not None or "is ready" in said.read_text())
            assert process.poll() is None, said.read_text()
            yield Server(project, port, process)
        finally:
            if process.poll() is None:
                process.terminate()


def wait_for(condition: Callable[[], bool], at_most_s: float = 120) -> None:
    deadline = time.monotonic() + at_most_s
    while not condition():
        assert time.monotonic() < deadline, "what was waited for never came"
        time.sleep(0.2)


def asked_by_people(server: Server) -> list[str]:
    """How the runs of the job that no sensor asked for have ended, or where they are."""
    runs = server.ask(RUNS)["runsOrError"]["results"]
    return [run["status"] for run in runs if {"key": "dagster/sensor_name"} not in run["tags"]]


def launch(server: Server, tier: str) -> str:
    """Launch one partition of the job, as the launchpad does; returns its run once it has ended."""
    tags = {
        "dagster/partition": f"1|{tier}",
        "dagster/partition/tier": tier,
        "dagster/partition/attempt": "1",
    }
    answer = server.ask(
        LAUNCH,
        params={
            "selector": {
                "repositoryLocationName": "bench_pipeline",
                "repositoryName": "__repository__",
                "pipelineName": "evaluate",
            },
            "mode": "default",
            "runConfigData": {},
            "executionMetadata": {"tags": [{"key": key, "value": value} for key, value in tags.items()]},
        },
    )["launchRun"]
    assert answer["__typename"] == "LaunchRunSuccess", answer
    run: str = answer["run"]["runId"]
    ended = {"SUCCESS", "FAILURE", "CANCELED"}
    wait_for(lambda: server.ask(STATUS, run=run)["runOrError"]["status"] in ended)
    return run


def test_the_ui_shows_the_graph_runs_a_partition_and_leaves_nothing_behind(server: Server) -> None:
    (entry,) = server.ask(LOCATIONS)["workspaceOrError"]["locationEntries"]
    assert (entry["name"], entry["locationOrLoadError"]["__typename"]) == (
        "bench_pipeline",
        "RepositoryLocation",
    )
    (repository,) = entry["locationOrLoadError"]["repositories"]
    assert {"evaluate", "score"} <= {job["name"] for job in repository["jobs"]}
    partitioned = {node["assetKey"]["path"][0] for node in repository["assetNodes"] if node["isPartitioned"]}
    assert {"evaluation_cells", "verdicts", "task_results", "composite_scores"} <= partitioned

    second = bench(server.root, "ui", "--port", str(free_port()))
    assert second.returncode == 1
    assert f"run already, at http://127.0.0.1:{server.port}: open that address" in second.stderr

    from_the_command_line = bench(server.root, "run", "models", "--tier", "smoke", "--json")
    assert from_the_command_line.returncode == 0, from_the_command_line.stderr
    assert asked_by_people(server) == ["SUCCESS"]

    _look_at_a_launched_run(server, launch(server, "standard"))

    family = psutil.Process(server.process.pid).children(recursive=True)
    assert len(family) >= 4, "two children and their code servers"
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(60) == 130
    assert not [process for process in family if _lives(process)]


def _lives(process: psutil.Process) -> bool:
    """Whether it still does anything; a process that has ended stays listed until its new parent reaps it."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _look_at_a_launched_run(server: Server, run: str) -> None:
    assert server.ask(STATUS, run=run)["runOrError"]["status"] == "SUCCESS"
    events = server.ask(EVENTS, run=run)["logsForRun"]["events"]
    cells = [
        event["message"] for event in events if event.get("stepKey") == "verdicts" and "[" in event["message"]
    ]
    assert [line for line in cells if "predictions/careful-large/-" in line and "executed, passed" in line]
    (verdicts,) = [
        event
        for event in events
        if event.get("assetKey", {}) == {"path": ["verdicts"]} and "metadataEntries" in event
    ]
    found = {
        entry["label"]: next(
            (entry[name] for name in ("intValue", "floatValue", "mdStr") if name in entry), None
        )
        for entry in verdicts["metadataEntries"]
    }
    assert (found["cells"], found["hits"], found["misses"], found["hit_rate"]) == (2, 0, 2, 0.0)
    assert "careful-large" in found["preview"]
    assert found["summary"].startswith("2 cells: ")


def test_a_busy_port_is_refused_before_anything_starts(project: Path) -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = bench(project, "ui", "--port", str(port))
    assert ended.returncode == 1
    assert f"listening on 127.0.0.1:{port}: Address already in use: choose another port" in ended.stderr
    assert "starting" not in ended.stderr
    assert not (project / ".bench" / "dagster" / "history").exists()
