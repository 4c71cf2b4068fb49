"""An agent that needs a model gets it through the gateway, and everything that comes of it is in its cell's record."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench_pipeline.errors import RefusedError
from bench_pipeline.execution.gateway import client
from bench_pipeline.execution.gateway.recordings import unpack
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline_tests.e2e.projects import AGENT, Project, wait_for
from bench_pipeline_tests.e2e.test_credentials import contents
from bench_pipeline_tests.model_server import ModelServer, model_server

Make = Callable[..., Project]

KEY = "sk-planted-0123456789-abcdefghij"
VARIABLE = "E2E_UPSTREAM_KEY"
# Asks as often as its option says, mends the task, and reports tokens that are not true.
CALLER = r"""
import json, os, socket, subprocess, sys, urllib.error, urllib.request
from pathlib import Path

def ask(model):
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "x"}], "max_tokens": 100}).encode()
    headers = {"authorization": "Bearer " + os.environ["API_KEY"], "content-type": "application/json"}
    request = urllib.request.Request(os.environ["API_URL"] + "/v1/chat/completions", body, headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=120) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0

def look(upstream):
    seen = [json.dumps(dict(os.environ))]
    for name in Path("/proc").iterdir():
        for part in ("environ", "cmdline", "maps"):
            try:
                seen.append((name / part).read_bytes().decode("utf-8", "replace"))
            except OSError:
                pass
    for root in (os.environ["HOME"], "/run", "/tmp", "/opt", "/workspace", "/dev/shm"):
        for path in Path(root).rglob("*"):
            try:
                if path.is_file() and not path.is_symlink() and path.stat().st_size < 1 << 20:
                    seen.append(str(path) + path.read_bytes().decode("utf-8", "replace"))
            except OSError:
                pass
    try:
        socket.create_connection(("127.0.0.1", int(upstream)), 2).close()
        seen.append("REACHED " + upstream)
    except OSError:
        pass
    Path("seen").write_text("\n".join(seen))

words = sys.argv[1].split()
if words[0] == "look":
    look(words[1])
statuses = [ask("model-small") for _ in range(int(words[-1]))]
Path("sum.sh").write_text("echo $(($1 + $2))\n")
print(statuses)
print(json.dumps({"state": "completed", "turns": 99, "tokens": {"input": 1, "cache_read": 0, "cache_write": 0,
                  "output": 1}, "cost_usd": 50.0}))
"""


@pytest.fixture(autouse=True)
def _planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server({"text": "done"}) as running:
        yield running


def calling(project: Project, server: ModelServer, *acts: str, **config: Any) -> Project:
    """The project with an agent that calls a model, and an evaluation ``one`` of what it does."""
    tool = {
        **AGENT,
        "invoke": {
            "command": ["python3", "{files}/agent/call.py"],
            "env": {"API_URL": "{api_url}", "API_KEY": "{api_key}"},
        },
        "model_apis": ["chat-completions"],
        "options": {"act": {"free": True, "args": ["{value}"]}},
    }
    project.document("tools/agent.yaml", "Tool", tool)
    project.write("agent/call.py", CALLER)
    upstream = {"base_url": server.url, "key_env": VARIABLE, "models": ["model-small"]}
    project.configure(**{"upstreams": {"mine": upstream}, **config})
    project.acts("one", *acts)
    return project


def traffic_of(project: Project, row: dict[str, Any]) -> dict[str, Any]:
    document = Bench(project.root).store.artifacts.get(dict(row["artifacts"])["tool.traffic"])
    found: dict[str, Any] = json.loads(document)
    return found


def journal_of(project: Project, row: dict[str, Any]) -> list[dict[str, Any]]:
    """What the journal of a cell says of its connections."""
    store = Bench(project.root).store
    (stored,) = store.verdicts.newest([bytes.fromhex(row["identity"])]).to_pylist()
    journal = store.artifacts.get(dict(stored["artifacts"])["journal"])
    rows = [json.loads(line) for line in journal.splitlines()]
    return [each["payload"] for each in rows if each["type"] == "connection"]


def test_a_cell_counts_what_the_api_says_and_keeps_what_the_agent_says_beside_it(
    make: Make, server: ModelServer
) -> None:
    project = calling(make(), server, "3")
    row = project.measure("one").row
    assert (row["outcome"], row["turns"]) == ("passed", 3), row
    tokens = [row[f"tokens_{name}"] for name in ("input", "cache_read", "cache_write", "output")]
    assert tokens == [3000, 600, 90, 120]
    assert row["cost_usd"] == pytest.approx((3000 * 2 + 600 * 0.2 + 90 * 2.5 + 120 * 10) / 1e6)
    assert row["cost_reported_usd"] == 50.0
    traffic = traffic_of(project, row)
    assert (traffic["requests"], traffic["estimated"], traffic["cap"]) == (3, 0, None)
    rows = journal_of(project, row)
    (connected,) = {(each["api"], each["model"], each["upstream"], each["status"]) for each in rows}
    assert (len(rows), connected) == (3, ("chat-completions", "model-small", "mine", 200))
    assert traffic["reported"] == {
        "input": 1, "cache_read": 0, "cache_write": 0, "output": 1, "turns": 99, "cost_usd": 50.0,
    }  # fmt: skip
    assert traffic["difference"] == {"input": -2999, "cache_read": -600, "cache_write": -90, "output": -119}


@pytest.mark.parametrize(
    ("spending", "sent", "words"),
    [
        ({"cell": {"max_requests": 2}}, 2, "requests of this cell (2)"),
        ({"max_requests": 1}, 1, "requests of this run (1)"),
        ({"cell": {"max_tokens": 5000}}, 3, "tokens of this cell (5000)"),
        ({"cell": {"max_cost_usd": 0.01}}, 2, "cost of this cell (0.01 USD)"),
    ],
    ids=["requests", "the run's", "tokens", "cost"],
)
def test_what_a_cap_stopped_is_no_wrong_answer_though_the_agent_says_that_it_is_done(
    make: Make, server: ModelServer, spending: dict[str, Any], sent: int, words: str
) -> None:
    project = calling(make(), server, "6", spending=spending)
    row = project.measure("one").row
    assert (row["outcome"], row["passed"]) == ("adapter_error", None)
    assert row["reason"].startswith("cap: ")
    assert words in row["reason"]
    assert words in next(each["why"] for each in journal_of(project, row) if not each["allowed"])
    assert len(server.requests) == sent
    assert row["tokens_output"] == 40 * sent


def test_an_outage_is_no_wrong_answer_though_the_agent_says_that_it_is_done(make: Make) -> None:
    with model_server({"text": "x"}, {"status": 401}) as server:
        project = calling(make(), server, "2")
        row = project.measure("one").row
    assert (row["outcome"], row["tokens_output"]) == ("adapter_error", 40)
    assert row["reason"].startswith("API error: auth: status 401 of mine")


class TestBeforehand:
    """Whatever would keep an agent from its model is said before anything runs."""

    @pytest.mark.parametrize(
        ("config", "words"),
        [
            ({"upstreams": {}}, "no upstream names the model model-small"),
            ({"spending": {"max_cost_usd": 1.0, "assume_cost_usd": 0.1}}, "no price of model-small"),
        ],
        ids=["no upstream", "no price under a cap"],
    )
    def test_a_run_that_would_not_reach_its_model_is_refused(
        self, make: Make, server: ModelServer, config: dict[str, Any], words: str
    ) -> None:
        project = calling(make(), server, "1", **config)
        (project.root / "pricing.yaml").unlink()
        with pytest.raises(RefusedError, match=words):
            project.measure("one")
        assert server.requests == []

    def test_a_key_that_is_not_set_is_named(
        self, make: Make, server: ModelServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv(VARIABLE)
        with pytest.raises(RefusedError, match=f"export {VARIABLE}"):
            calling(make(), server, "1").measure("one")

    def test_a_model_of_two_upstreams_is_refused_with_both_named(
        self, make: Make, server: ModelServer
    ) -> None:
        upstream = {"base_url": server.url, "models": ["model-small"]}
        project = calling(make(), server, "1", upstreams={"mine": upstream, "yours": upstream})
        with pytest.raises(RefusedError, match="mine and yours both name the model"):
            project.measure("one")


@pytest.mark.services
class TestIsolated:
    def test_no_byte_of_the_key_is_reachable_from_inside_or_kept_anywhere(
        self, make: Make, server: ModelServer
    ) -> None:
        port = server.url.rpartition(":")[2].partition("/")[0]
        project = calling(make(), server, f"look {port} 2")
        row = project.measure("one", backend="bubblewrap").row
        assert (row["outcome"], row["tokens_output"], row["orphans"]) == ("passed", 80, 0), row
        overlay = Bench(project.root).store.artifacts.get(dict(row["artifacts"])["overlay"])
        assert client.KEY.encode() in overlay, "the search inside has found what the tool was given"
        assert f"REACHED {port}".encode() not in overlay
        assert KEY.encode() not in overlay
        assert [name for name, data in contents(project.root) if KEY.encode() in data] == []
        assert {request["headers"]["Authorization"] for request in server.requests} == {f"Bearer {KEY}"}

    def test_a_killed_gateway_ends_the_cells_as_infrastructure_errors_that_keep_what_they_used(
        self, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened: list[client.Gateway] = []
        start = client.Gateway._start
        monkeypatch.setattr(client.Gateway, "_start", lambda self: (opened.append(self), start(self))[1])
        with model_server({"text": "x"}, {"hang": True}) as server:
            project = calling(make(), server, "2")

            def kill() -> None:
                wait_for(lambda: len(server.requests) == 2)
                assert opened[0].pid is not None
                os.kill(opened[0].pid, signal.SIGKILL)

            killer = threading.Thread(target=kill)
            killer.start()
            row = project.measure("one", backend="bubblewrap").row
            killer.join()
        assert (row["outcome"], row["reason"]) == ("infrastructure_error", "the gateway to model APIs ended")
        assert row["tokens_output"] == 40 + 100
        assert traffic_of(project, row)["estimated"] == 1
        packed = Bench(project.root).store.artifacts.get(dict(row["artifacts"])["tool.recording"])
        assert [(each.number, each.status) for each in unpack(packed)[1]] == [(1, 200)]


def test_two_cells_at_one_time_have_doors_of_their_own(
    make: Make, server: ModelServer, tmp_path: Path
) -> None:
    project = calling(make("alpha", "beta"), server, "2", "3")
    rows = project.measure("one", concurrency=4).rows
    assert sorted(row["turns"] for row in rows) == [2, 2, 3, 3]
    assert {row["outcome"] for row in rows} == {"passed"}
