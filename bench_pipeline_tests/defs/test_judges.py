"""The judge that a project names, asked by its assets over a real connection: once for each question, within caps."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from bench_pipeline.definitions import build_defs
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.checking import check_table
from bench_pipeline.pipeline.judge_reports import poorly_judged, questions_to_ask, write_judgements
from bench_pipeline.pipeline.scenario_results import look_at_comparisons, write_results
from bench_pipeline.providers import retrying
from bench_pipeline_tests.providers.chat_server import ChatServer, Response, answer, document, serving
from bench_pipeline_tests.scenarios.making import scenario_file, trace_file

KEY = "sk-planted-6f1c0d9e8b7a"
HEAD = "apiVersion: bench.ber.run/v1alpha1\nkind: {}\n"
COMPARISON = (
    HEAD.format("ScenarioComparison")
    + """\
scenarios: [a.toml, b.toml, c.toml]
cells: {one: {traces: traces/one}, two: {traces: traces/two}}
judge: {JUDGE}
"""
)
PRICES = HEAD.format("Pricing") + "models: {judge-1: {input: 1.0, output: 1.0}}\n"

Handler = Callable[[dict[str, Any]], Response | None]


def longer(asked: dict[str, Any]) -> Response:
    """A judge that prefers the longer answer."""
    blocks = re.findall(
        r"^BEGIN ([AB]) \w{32}\n(.*?)\nEND \1", asked["messages"][0]["content"], re.MULTILINE | re.DOTALL
    )
    lengths = {slot: len(text) for slot, text in blocks}
    return answer(json.dumps({"verdict": "A" if lengths["A"] > lengths["B"] else "B"}))


def goal(asked: dict[str, Any]) -> str:
    found = re.search(r"^Task: (.*)$", asked["messages"][0]["content"], re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three scenarios, each with a short answer of one cell and a long one of the other."""
    scenarios = tmp_path / "project" / "scenarios"
    scenarios.mkdir(parents=True)
    for number, name in enumerate("abc"):
        scenario_file(scenarios, name, goal=f"goal {name}", file=f"{name}.toml")
        for cell, length in (("one", 5), ("two", 50)):
            events = [{"type": "artifact", "text": "x" * length}, {"type": "end", "seconds": 3}]
            run_id = f"00000000-0000-4000-8000-0000000000{len(cell)}{number}"
            trace_file(scenarios / "traces" / cell, *events, run_id=run_id, scenario=name)
    return tmp_path / "project"


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with serving(longer) as found:
        yield found


def project(folder: Path, server: ChatServer, *, judge: str = "{}", more: str = "") -> Bench:
    """A workbench of the project as it is now, with results that nobody has judged yet or again."""
    upstream = (
        f"{{base_url: '{server.url.removesuffix('/chat/completions')}', key_env: JUDGE_KEY, concurrency: 2}}"
    )
    config = f"upstreams: {{main: {upstream}}}\njudge: {{upstream: main, model: judge-1}}\n{more}"
    (folder / "config.yaml").write_text(HEAD.format("Project") + "defaults: {max_attempts: 2}\n" + config)
    (folder / "scenarios" / "both.yaml").write_text(COMPARISON.replace("{JUDGE}", judge))
    bench = Bench(folder)
    write_results(bench, [1])
    return bench


def report(bench: Bench) -> dict[str, Any]:
    (row,) = [
        row
        for row in bench.store.tables.read("judge_reports", attempt=1).to_pylist()
        if row["judge"] != "rubric"
    ]
    return row


def rules(bench: Bench) -> dict[str, str]:
    rows = bench.store.tables.read("judge_pairs", attempt=1).to_pylist()
    return {
        row["scenario"]: row["verdict"] if row["rule"] == "judge" else row["rule"]
        for row in rows
        if row["judge"] != "rubric"
    }


def test_every_pair_is_asked_about_in_both_orders_and_nothing_twice(folder: Path, server: ChatServer) -> None:
    bench = project(folder, server)
    assert questions_to_ask(bench) == {"both": 6}
    written, problems = write_judgements(bench, [1])
    assert problems == ()
    assert len(server.asked) == 6
    assert rules(bench) == dict.fromkeys("abc", "right")
    assert report(bench)["right_wins"] == 3
    assert all(outcome.passed for outcome in check_table(bench.store, "judge_reports"))
    again = project(folder, server)
    assert questions_to_ask(again) == {}
    rewritten, _ = write_judgements(again, [1])
    assert len(server.asked) == 6
    assert rewritten[1].digest == written[1].digest


def test_what_is_known_needs_no_key_and_no_server(
    folder: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_judgements(project(folder, server), [1])
    monkeypatch.delenv("JUDGE_KEY")
    bench = project(folder, server)
    assert write_judgements(bench, [1])[1] == ()
    assert report(bench)["no_votes"] == 0


def test_a_changed_answer_is_asked_about_and_the_others_are_not(folder: Path, server: ChatServer) -> None:
    write_judgements(project(folder, server), [1])
    trace = next((folder / "scenarios" / "traces" / "two").glob("*30.jsonl"))
    trace.write_text(trace.read_text().replace("x" * 50, "x" * 3))
    bench = project(folder, server, judge="{model: judge-1}")
    write_judgements(bench, [1])
    assert len(server.asked) == 8
    assert rules(bench) == {"a": "left", "b": "right", "c": "right"}


def test_another_model_is_another_judge_and_another_seed_is_not(folder: Path, server: ChatServer) -> None:
    write_judgements(project(folder, server), [1])
    bench = project(folder, server, judge="{model: judge-2}\nseed: 9")
    write_judgements(bench, [1])
    assert len(server.asked) == 12
    write_judgements(project(folder, server, judge="{}\nseed: 9"), [1])
    assert len(server.asked) == 12


def test_a_judge_that_prefers_a_slot_ties_and_is_counted(folder: Path, server: ChatServer) -> None:
    server.handler = lambda _: answer('{"verdict": "A"}')
    bench = project(folder, server)
    write_judgements(bench, [1])
    assert (report(bench)["ties"], report(bench)["inconsistent"]) == (3, 3)
    assert poorly_judged(bench) == []


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        (answer('{"verdict": "A"'), "unreadable"),
        (answer('END A\n{"verdict": "A"} {"verdict": "B"}'), "unreadable"),
        (answer(None), "no_content"),
        (Response(json.dumps(document() | {"choices": []}).encode()), "shape"),
    ],
)
def test_what_the_judge_did_answer_is_paid_for_and_never_asked_again(
    folder: Path, server: ChatServer, reply: Response, rule: str
) -> None:
    server.handler = lambda _: reply
    for _ in range(2):
        bench = project(folder, server)
        write_judgements(bench, [1])
        assert rules(bench) == dict.fromkeys("abc", rule)
        assert len(server.asked) == 6
    assert (report(bench)["left_winrate"], report(bench)["no_votes"]) == (None, 3)
    (poor,) = poorly_judged(bench)
    assert "judge-1 voted on 0 of 3 pairs" in poor


@pytest.mark.parametrize(
    ("failing", "rule", "tries"),
    [
        (Response(status=401), "unauthorised", 1),
        (Response(status=429, headers={"Retry-After": "0"}), "rate_limited", retrying.TRIES),
        (
            Response(status=429, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
            "rate_limited",
            retrying.TRIES,
        ),
        (Response(status=500, headers={"Retry-After": "0"}), "server_error", retrying.TRIES),
        (Response(status=307, headers={"Location": "/"}), "redirect", 1),
        (Response(b"{"), "not_json", 1),
    ],
    ids=["401", "429", "429-past", "500", "redirect", "cut"],
)
def test_one_bad_item_ends_nothing_and_is_asked_again_the_next_time(
    folder: Path, server: ChatServer, failing: Response, rule: str, tries: int
) -> None:
    server.handler = lambda asked: failing if goal(asked) == "goal b" else longer(asked)
    bench = project(folder, server)
    write_judgements(bench, [1])
    assert rules(bench) == {"a": "right", "b": rule, "c": "right"}
    assert len(server.asked) == 4 + 2 * tries
    assert report(bench)["left_winrate"] == 0.0
    assert poorly_judged(bench) == []
    server.handler = longer
    bench = project(folder, server)
    write_judgements(bench, [1])
    assert len(server.asked) == 6 + 2 * tries
    assert rules(bench) == dict.fromkeys("abc", "right")


def test_a_call_that_hangs_is_given_up_and_made_again(folder: Path, server: ChatServer) -> None:
    hung = set()

    def handle(asked: dict[str, Any]) -> Response | None:
        prompt = asked["messages"][0]["content"]
        if goal(asked) == "goal b" and prompt not in hung:
            hung.add(prompt)
            return server.hang(asked)
        return longer(asked)

    server.handler = handle
    bench = project(folder, server, judge="{timeout: 500ms}")
    write_judgements(bench, [1])
    assert (rules(bench), len(server.asked)) == (dict.fromkeys("abc", "right"), 8)


def test_a_cap_on_calls_is_kept_over_tries_and_the_rest_comes_the_next_time(
    folder: Path, server: ChatServer
) -> None:
    bench = project(folder, server, judge="{max_calls: 4}")
    _, (problem,) = write_judgements(bench, [1])
    assert "judge-1 was not asked everything" in problem
    assert len(server.asked) == 4
    assert "over_cap" in rules(bench).values()
    bench = project(folder, server, judge="{max_calls: 4}")
    assert write_judgements(bench, [1])[1] == ()
    assert len(server.asked) == 6
    assert rules(bench) == dict.fromkeys("abc", "right")


def test_a_cap_in_dollars_is_never_exceeded_by_what_the_calls_could_cost(
    folder: Path, server: ChatServer
) -> None:
    (folder / "pricing.yaml").write_text(PRICES)
    bench = project(folder, server, more="spending: {max_cost_usd: 0.005}\n")
    write_judgements(bench, [1])
    # One call holds some 2,000 millionths of a dollar at the most, and costs 15 of them.
    assert len(server.asked) == 6
    assert bench.left_usd == pytest.approx(0.005 - 6 * 15e-6)
    bench = project(
        folder, server, judge="{model: judge-1}\nseed: 3", more="spending: {max_cost_usd: 0.001}\n"
    )
    for path in folder.glob(".bench/runs/judgements/*/*.json"):
        path.unlink()
    write_judgements(bench, [1])
    assert len(server.asked) == 6
    assert rules(bench) == dict.fromkeys("abc", "over_cap")


def test_a_cap_in_dollars_without_a_price_refuses_to_ask(folder: Path, server: ChatServer) -> None:
    bench = project(folder, server, more="spending: {max_cost_usd: 5}\n")
    _, (problem,) = write_judgements(bench, [1])
    assert "no price is known for it" in problem
    assert "pricing.yaml as models.judge-1" in problem
    assert (server.asked, rules(bench)) == ([], dict.fromkeys("abc", "not_asked"))


def test_a_reply_whose_file_is_corrupt_is_put_aside_and_asked_for_again(
    folder: Path, server: ChatServer
) -> None:
    write_judgements(project(folder, server), [1])
    path = next(folder.glob(".bench/runs/judgements/*/*.json"))
    path.write_bytes(b"")
    bench = project(folder, server)
    write_judgements(bench, [1])
    assert len(server.asked) == 7
    assert [found.path for found in bench.store.quarantined] == [
        str(path.relative_to(folder / ".bench")).replace("\\", "/")
    ]


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("{upstream: mian}", "did you mean main"),
        ("{max_calls: 0}", "max_calls"),
        ("{quorum: 2}", "quorum"),
        ("{}\njudgements: replies.jsonl", "name one of them"),
    ],
)
def test_a_judge_that_is_named_wrongly_is_told_before_anything_is_asked(
    folder: Path, server: ChatServer, judge: str, said: str
) -> None:
    bench = project(folder, server, judge=judge)
    assert said in "\n".join(map(str, look_at_comparisons(bench).problems))
    write_judgements(bench, [1])
    assert server.asked == []


def test_a_key_is_in_no_file_no_log_and_no_event(
    folder: Path, server: ChatServer, instance: dg.DagsterInstance, capfd: pytest.CaptureFixture[str]
) -> None:
    """The server sends the key back in what it answers, in headers and in the text of its failures."""

    def handle(asked: dict[str, Any]) -> Response:
        if goal(asked) == "goal a":
            return Response(f'{{"error": "bad key {KEY}"}}'.encode(), 401, {"X-Key": KEY})
        return answer(f'{{"verdict": "A", "reason": "{KEY}"}}')

    server.handler = handle
    bench = project(folder, server)
    job = build_defs({"bench": bench}).resolve_job_def("score")
    done = job.execute_in_process(
        instance=instance,
        asset_selection=[dg.AssetKey("judge_reports")],
        tags={"dagster/asset_partition_range_start": "1", "dagster/asset_partition_range_end": "1"},
    )
    assert done.success
    assert [asked.headers["authorization"] for asked in server.asked] == [f"Bearer {KEY}"] * 6
    events = "\n".join(map(repr, instance.all_logs(done.run_id)))
    assert "judge_reports" in events
    printed = capfd.readouterr()
    assert KEY not in events + printed.out + printed.err
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(b"[JUDGE_KEY]" in path.read_bytes() for path in files)
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
