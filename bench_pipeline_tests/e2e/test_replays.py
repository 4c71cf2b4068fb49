"""A recorded cell gives the same again without its model, and says where it does not; it never counts as measured."""

import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bench_pipeline.cli import launching
from bench_pipeline.cli.run import status_of_replay
from bench_pipeline.defs.assets.evaluations import VerdictsConfig
from bench_pipeline.defs.partitions import key_of
from bench_pipeline.execution.gateway.recordings import Exchange, unpack
from bench_pipeline.pipeline import replaying
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.measuring import write_verdicts
from bench_pipeline.pipeline.selection import Partition, RunOptions
from bench_pipeline_tests.e2e.projects import AGENT, Measured, Project
from bench_pipeline_tests.model_server import ModelServer, model_server

Make = Callable[..., Project]

KEY = "sk-planted-9876543210-zyxwvutsrq"
VARIABLE = "E2E_REPLAY_KEY"
ANSWER = "echo $(($1 + $2))"
# Says who, where and when it is, asks for a title beside, and writes what the model answers. Its option names a file
# of which it speaks; it is no part of the setup, so that the agent can be made to say something else.
TALKER = r"""
import datetime, json, os, sys, threading, urllib.error, urllib.request, uuid
from pathlib import Path

FAILED = []

def ask(messages, **more):
    body = {"model": "model-small", "messages": messages, "max_tokens": 100, "user": str(uuid.uuid4()), **more}
    headers = {"authorization": "Bearer " + os.environ["API_KEY"], "content-type": "application/json"}
    url = os.environ["API_URL"] + "/v1/chat/completions"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=120) as answer:
            return json.load(answer)["choices"][0]["message"]["content"]
    except urllib.error.HTTPError as error:
        FAILED.append(error.code)
        return ""

tools = [{"type": "function", "function": {"name": "write"}}]
where = f"I am in {os.getcwd()}, at home in {os.environ['HOME']}, at {datetime.datetime.now().isoformat()}."
talk = [{"role": "user", "content": where}]
title = threading.Thread(target=ask, args=([{"role": "user", "content": "A title, please"}],))
title.start()
said = ask(talk, tools=tools)
talk += [{"role": "assistant", "content": said}, {"role": "user", "content": Path(sys.argv[1]).read_text()}]
done = ask(talk, tools=tools)
title.join()
Path("sum.sh").write_text(said + "\n")
print(json.dumps({"state": "completed", "tokens": {"input": 1, "output": 1}, "cost_usd": 50.0}))
"""


@pytest.fixture(autouse=True)
def _planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KEY)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server({"text": ANSWER}, side={"text": f"A title; your key is {KEY}"}) as running:
        yield running


def talking(project: Project, url: str, note: Path) -> Project:
    """The project with an agent that talks to its model, and an evaluation ``one`` of it."""
    note.write_text("thank you")
    env = {"API_URL": "{api_url}", "API_KEY": "{api_key}"}
    tool = {
        **AGENT,
        "invoke": {"command": ["python3", "{files}/agent/talk.py"], "env": env},
        "model_apis": ["chat-completions"],
        "options": {"act": {"free": True, "args": ["{value}"]}},
    }
    project.document("tools/agent.yaml", "Tool", tool)
    project.write("agent/talk.py", TALKER)
    upstream = {"base_url": url, "key_env": VARIABLE, "models": ["model-small"]}
    project.configure(upstreams={"mine": upstream})
    project.acts("one", str(note))
    return project


def replays_of(project: Project, row: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Bench(project.root).store.replays.history(row["identity"]).to_pylist()
    return found


def recording_of(project: Project, row: dict[str, Any], name: str = "tool.recording") -> list[Exchange]:
    packed = Bench(project.root).store.artifacts.get(dict(row["artifacts"])[name])
    return sorted(unpack(packed)[1], key=lambda each: each.number)


def came_of(project: Project, measured: Measured) -> dict[str, Any]:
    """The summary of a run that replayed."""
    bench = Bench(project.root, backend="process")
    cells = bench.store.tables.read("evaluation_cells")
    return replaying.summary(bench, cells, "one", measured.deeds[0]["run_id"])


def without_dagster(bench: Bench, partitions: Sequence[Partition], options: RunOptions) -> str:
    """Stands in for ``run_everything``: by the run config that it would give to the asset, without a run."""
    chosen = VerdictsConfig(**launching._config(options)).options([key_of(part) for part in partitions])
    assert (chosen.record, chosen.replay) == (options.record, options.replay)
    run_id = str(uuid.uuid4())
    write_verdicts(bench, chosen, partitions=partitions, run_id=run_id, log=lambda _: None)
    return run_id


class TestSame:
    def test_a_replay_gives_the_same_candidate_without_server_key_or_cost_and_counts_nowhere(
        self, make: Make, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project = talking(make("alpha", "beta"), server.url, tmp_path / "note")
        measured = project.measure("one")
        assert [row["outcome"] for row in measured.rows] == ["passed", "passed"]
        tables = {row["identity"]: row for row in measured.rows}
        asked = len(server.requests)
        # No upstream, and no key.
        project.configure(upstreams={})
        monkeypatch.delenv(VARIABLE)
        again = project.measure("one", replay=True)
        assert {row["identity"]: row for row in again.rows} == tables
        assert [(deed["action"], deed["reason"], deed["cost_usd"]) for deed in again.deeds] == [
            ("replayed", None, 0.0)
        ] * 2
        assert len(server.requests) == asked
        summary = came_of(project, again)
        assert (summary["cells"], summary["replayed"], summary["same"], summary["outcomes"]) == (
            2, 2, 2, {"passed": 2},
        )  # fmt: skip
        for row in measured.rows:
            (replay,) = replays_of(project, row)
            assert dict(replay["artifacts"])["overlay"] == dict(row["artifacts"])["overlay"]
            assert replay["tokens_output"] == row["tokens_output"] == 3 * 40
            assert (replay["cost_reported_usd"], replay["tool_ran"]) == (None, False)
        store = Bench(project.root).store
        assert store.verdicts.history(measured.rows[0]["identity"]).num_rows == 1
        assert store.gc(grace_s=0).artifacts == 0
        assert store.verify().findings == []
        kept = b"".join(each.request + each.answer for each in recording_of(project, measured.rows[0]))
        assert (b"your key is" in kept, KEY.encode() in kept) == (True, False)
        report = store.forget(measured.rows[0]["identity"])
        digest = dict(measured.rows[0]["artifacts"])["tool.recording"]
        assert (report.verdict_rows, report.replay_rows, store.artifacts.exists(digest)) == (1, 1, False)

    def test_a_step_of_a_workflow_is_replayed_from_its_own_recording(
        self, make: Make, server: ModelServer, tmp_path: Path
    ) -> None:
        project = talking(make(), server.url, tmp_path / "note")
        options = {"act": str(tmp_path / "note")}
        steps = [
            {"name": name, "tool": "agent", "model": "small", "options": options} for name in ("plan", "do")
        ]
        project.document("tools/both.yaml", "Workflow", {"type": "workflow", "tool": "both", "steps": steps})
        project.document("evaluations/one.yaml", "Evaluation", {"tools": [{"tool": "both"}]})
        row = project.measure("one").row
        assert row["outcome"] == "passed"
        assert {len(recording_of(project, row, f"{step}.recording")) for step in ("plan", "do")} == {3}
        server.requests.clear()
        assert came_of(project, project.measure("one", replay=True))["same"] == 1
        assert server.requests == []


class TestOther:
    def test_a_divergence_names_the_request_and_is_no_wrong_answer(
        self, make: Make, server: ModelServer, tmp_path: Path
    ) -> None:
        project = talking(make(), server.url, tmp_path / "note")
        row = project.measure("one").row
        (tmp_path / "note").write_text("thank you, and goodbye")
        again = project.measure("one", replay=True)
        (replay,) = replays_of(project, row)
        assert (replay["outcome"], replay["outcome_class"], replay["passed"]) == (
            "adapter_error", "execution_failure", None,
        )  # fmt: skip
        assert replay["reason"].startswith("diverged from the recording: request 3 differs from request 3")
        assert (
            'at messages[2].content: recorded "thank you", now "thank you, and goodbye"' in replay["reason"]
        )
        assert again.row["outcome"] == "passed"
        summary = came_of(project, again)
        assert (summary["replayed"], summary["same"], summary["not_replayed"]) == (1, 0, 0)
        ((reason, cells),) = summary["differences"]
        assert (cells, reason.startswith("adapter_error in place of the recorded passed: diverged")) == (
            1,
            True,
        )

    def test_a_cell_that_was_not_recorded_is_left_out_and_says_why(
        self, make: Make, server: ModelServer, tmp_path: Path
    ) -> None:
        project = talking(make(), server.url, tmp_path / "note")
        row = project.measure("one", record=False).row
        assert "tool.recording" not in dict(row["artifacts"])
        again = project.measure("one", replay=True)
        assert [(deed["action"], deed["reason"]) for deed in again.deeds] == [
            ("skipped", "nothing was recorded of it: run it without --no-record")
        ]
        assert came_of(project, again)["not_replayed"] == 1
        assert replays_of(project, row) == []

    def test_a_tool_that_asks_no_model_has_nothing_to_replay(self, make: Make) -> None:
        project = make()
        project.acts("one", "fix")
        project.measure("one")
        (deed,) = project.measure("one", replay=True).deeds
        assert (deed["action"], deed["reason"]) == (
            "skipped",
            "its tools ask no model API, so there is nothing to replay",
        )

    def test_what_the_agent_was_told_when_its_api_was_down_is_replayed_as_that(
        self, make: Make, tmp_path: Path
    ) -> None:
        with model_server({"text": ANSWER}, {"status": 401}, side={"text": "A title"}) as server:
            project = talking(make(), server.url, tmp_path / "note")
            row = project.measure("one").row
        assert (row["outcome"], row["reason"][:16]) == ("adapter_error", "API error: auth:")
        (deed,) = project.measure("one", replay=True).deeds
        assert (deed["action"], deed["reason"]) == ("replayed", None)


class TestCommand:
    def test_replays_are_asked_for_and_shown(
        self, make: Make, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        project = talking(make(), server.url, tmp_path / "note")
        identity = project.measure("one").row["identity"]
        plan = json.loads(project.ask("run", "one", "--replay", "--dry-run", "--json").out)
        assert (plan["cells"], plan["replay"], plan["unrecorded"]) == (1, 1, 0)
        monkeypatch.setattr(launching, "run_everything", without_dagster)
        ended = project.ask("run", "one", "--replay", "--sandbox", "process", "--json")
        assert ended.status == 0, ended
        document = json.loads(ended.out)
        assert (document["replayed"], document["same"], document["cost_usd"]) == (1, 1, 0.0)
        shown = json.loads(project.ask("cell", "show", identity, "--json").out)
        assert [row["source"] for row in (*shown["tries"], *shown["replays"])] == ["executed", "replayed"]
        assert [row["cost_usd"] for row in shown["replays"]] == [0.0]
        patches = [
            json.loads(project.ask("cell", "show", identity, "--evidence", "patch", *more, "--json").out)
            for more in ((), ("--replay", "1"))
        ]
        assert patches[0]["text"] == patches[1]["text"] != ""
        listed = json.loads(project.ask("cell", "recording", identity, "--json").out)
        assert [(row["number"], row["status"]) for row in listed] == [(1, 200), (2, 200), (3, 200)]
        printed = json.loads(project.ask("cell", "recording", identity, "--request", "3", "--json").out)
        assert json.loads(printed["text"])["messages"][-1]["content"] == "thank you"

    @pytest.mark.parametrize(
        ("replayed", "same", "not_replayed", "status"),
        [(2, 2, 0, 0), (1, 1, 1, 3), (2, 1, 0, 4), (1, 0, 1, 4)],
    )
    def test_the_status_says_whether_everything_came_out_as_recorded(
        self, replayed: int, same: int, not_replayed: int, status: int
    ) -> None:
        document = {"replayed": replayed, "same": same, "not_replayed": not_replayed}
        assert status_of_replay(document) == status

    @pytest.mark.parametrize(
        "words",
        [("--replay",), ("one", "--replay", "--fresh"), ("one", "--replay", "--max-cost", "1")],
        ids=["everything", "fresh", "a cap"],
    )
    def test_what_makes_no_sense_is_refused(self, make: Make, words: tuple[str, ...]) -> None:
        ended = make().ask("run", *words)
        assert (ended.status, ended.err[:17]) == (2, "bench: replaying:")
