"""Comparisons of a project become tables; what is stored is reused, and nothing is asked or paid for twice."""

import json
import os
import shutil
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bench_pipeline.errors import NothingToEvaluateError
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.policy_answers import KeptAnswers
from bench_pipeline.pipeline.policy_leaderboards import check_traces, stored_leaderboards, write_leaderboard
from bench_pipeline.pipeline.policy_receipts import calls_to_make, check_comparisons, write_receipts
from bench_pipeline.pipeline.running import prepare
from bench_pipeline.pipeline.selection import RunOptions, Selection
from bench_pipeline.policies.comparison import load_comparisons
from bench_pipeline.policies.models import Reply
from bench_pipeline_tests.cli.calling import call
from bench_pipeline_tests.policies.orchard import ORCHARD
from bench_pipeline_tests.providers.chat_server import ChatServer, Response, answer, serving

HEAD = "apiVersion: bench.ber.run/v1alpha1\n"
REPLAY = "cases: cases.json\nrecording: recording.json\nbudget: 4\n"
LIVE = "cases: cases.json\nupstream: here\nmodel: m\nbudget: 4\n"
SECRET = "sk-very-secret-0123456789"


def project(root: Path, url: str = "http://127.0.0.1:9", **comparisons: str) -> Bench:
    """A project with the fixture's files and the given comparisons."""
    folder = root / "policies"
    folder.mkdir(parents=True, exist_ok=True)
    upstream = f"{{here: {{base_url: '{url}', key_env: MY_KEY, concurrency: 3}}}}"
    (root / "config.yaml").write_text(f"{HEAD}kind: Project\nupstreams: {upstream}\n")
    for name in ("cases.json", "recording.json"):
        shutil.copy(ORCHARD / name, folder / name)
    for name, body in comparisons.items():
        (folder / f"{name}.yaml").write_text(f"{HEAD}kind: PolicyComparison\n{body}")
    return Bench(root)


def rows(bench: Bench, table: str = "policy_receipts") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = bench.store.tables.read(table).to_pylist()
    return found


def base(server: ChatServer) -> str:
    return server.url.removesuffix("/chat/completions")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)


def test_receipts_and_calls_hold_all_that_a_receipt_says(tmp_path: Path) -> None:
    bench = project(tmp_path, orchard=REPLAY)
    done = write_receipts(bench, [1, 2])
    assert [item.counts for item in done.values()] == [{"hits": 0, "misses": 1}, {"hits": 0, "misses": 0}]
    told = [(row["harness"], row["correct"], row["calls"], row["state"]) for row in rows(bench)]
    assert told == [
        ("baseline", 1, 3, "completed"),
        ("evidence", 3, 3, "completed"),
        ("retry-errors", 2, 4, "completed"),
    ]
    calls = [row for row in rows(bench, "policy_calls") if row["harness"] == "retry-errors"]
    receipt = json.loads((ORCHARD / "expected-receipt.json").read_text())["results"][1]["Trace"]
    by_position = sorted(calls, key=lambda row: row["position"])
    assert [(row["case_id"], row["try"], row["answer"], row["failed"]) for row in by_position] == [
        (entry["CaseID"], entry["Attempt"], entry["Answer"], entry["Failed"]) for entry in receipt
    ]
    assert check_traces(bench) == []


def test_a_second_run_reuses_what_is_stored_and_changes_no_content(tmp_path: Path) -> None:
    bench = project(tmp_path, orchard=f"{REPLAY}repeat: 2\n")
    first, second = write_receipts(bench, [1, 2]), write_receipts(bench, [1, 2])
    assert [item.counts for item in second.values()] == [{"hits": 1, "misses": 0}] * 2
    assert [item.written.digest for item in first.values()] == [
        item.written.digest for item in second.values()
    ]
    assert write_leaderboard(bench).digest == write_leaderboard(bench).digest
    assert write_receipts(bench, [1], fresh=True)[1].counts == {"hits": 0, "misses": 1}


@pytest.mark.parametrize(
    "change",
    [
        "budget: 5\n",
        "timeout: 1s\n",
        "policies: [baseline]\n",
    ],
)
def test_other_terms_are_run_anew(tmp_path: Path, change: str) -> None:
    bench = project(tmp_path, orchard=REPLAY)
    write_receipts(bench, [1])
    body = REPLAY.replace("budget: 4\n", "") if change.startswith("budget") else REPLAY
    changed = project(tmp_path, orchard=body + change)
    assert write_receipts(changed, [1])[1].counts == {"hits": 0, "misses": 1}


@pytest.mark.parametrize("name", ["cases.json", "recording.json"])
def test_other_questions_or_answers_are_run_anew(tmp_path: Path, name: str) -> None:
    bench = project(tmp_path, orchard=REPLAY)
    write_receipts(bench, [1])
    path = tmp_path / "policies" / name
    path.write_text(path.read_text().replace("15 minutes", "16 minutes"))
    assert write_receipts(bench.again(), [1])[1].counts == {"hits": 0, "misses": 1}


def test_lines_and_spaces_of_the_files_are_not_what_is_asked(tmp_path: Path) -> None:
    bench = project(tmp_path, orchard=REPLAY)
    write_receipts(bench, [1])
    for name in ("cases.json", "recording.json"):
        path = tmp_path / "policies" / name
        path.write_text(json.dumps(json.loads(path.read_text())))
    assert write_receipts(bench, [1])[1].counts == {"hits": 1, "misses": 0}


def test_a_comparison_that_is_gone_or_repeats_less_leaves_the_tables(tmp_path: Path) -> None:
    bench = project(tmp_path, orchard=f"{REPLAY}repeat: 2\n", other=REPLAY)
    write_receipts(bench, [1, 2])
    (tmp_path / "policies" / "other.yaml").unlink()
    shorter = project(tmp_path, orchard=REPLAY)
    write_receipts(shorter, [1, 2])
    assert {(row["comparison"], row["attempt"]) for row in rows(shorter)} == {("orchard", 1)}
    assert {(row["comparison"], row["attempt"]) for row in rows(shorter, "policy_calls")} == {("orchard", 1)}


def test_only_the_named_comparisons_are_run_and_the_others_keep_what_they_have(tmp_path: Path) -> None:
    bench = project(tmp_path, a=REPLAY, b=REPLAY)
    assert write_receipts(bench, [1], names=["a"])[1].counts == {"hits": 0, "misses": 1}
    assert write_receipts(bench, [1], names=["b"])[1].counts == {"hits": 1, "misses": 1}
    assert {row["comparison"] for row in rows(bench)} == {"a", "b"}


def test_a_live_model_is_asked_once_and_what_was_cancelled_is_asked_again(tmp_path: Path) -> None:
    with serving(lambda _: answer("ready")) as server:
        bench = project(tmp_path, base(server), live=f"{LIVE}timeout: 400ms\n")
        server.handler = server.hang
        write_receipts(bench, [1])
        assert {row["state"] for row in rows(bench)} == {"cancelled"}
        server.handler = lambda _: answer("ready")
        assert write_receipts(bench, [1])[1].counts == {"hits": 0, "misses": 1}
        asked = len(server.asked)
        assert write_receipts(bench, [1])[1].counts == {"hits": 1, "misses": 0}
        assert len(server.asked) == asked
    call_row = rows(bench, "policy_calls")[0]
    assert (call_row["tokens_input"], call_row["latency_s"] > 0) == (12, True)


def test_a_run_that_is_stopped_keeps_what_was_answered_and_begins_nothing_more(tmp_path: Path) -> None:
    def handle(_: object) -> Response:
        if len(server.asked) == 2:
            bench.stop.ask()
        return answer("ready")

    with serving(handle) as server:
        bench = project(tmp_path, base(server), live=LIVE, other=LIVE)
        write_receipts(bench, [1, 2])
        asked = len(server.asked)
        calls = rows(bench, "policy_calls")
        assert [row["answer"] for row in calls] == ["ready"] * asked
        assert {row["comparison"] for row in rows(bench)} == {"live"}
        assert {row["state"] for row in rows(bench)} >= {"cancelled"}
        assert any((row["failure"] or "").startswith("stopped") for row in calls)
        assert check_traces(bench) == []


def asked_of(server: ChatServer) -> list[str]:
    return sorted(asked.document["messages"][0]["content"] for asked in server.asked)


def test_an_attempt_that_was_stopped_goes_on_with_the_answers_it_has(tmp_path: Path) -> None:
    def handle(_: object) -> Response:
        if len(server.asked) == 4:
            bench.stop.ask()
        return answer("ready")

    with serving(handle) as server:
        bench = project(tmp_path, base(server), live=LIVE)
        write_receipts(bench, [1])
        first = {row["harness"]: row for row in rows(bench)}
        again = project(tmp_path, base(server), live=LIVE)
        assert calls_to_make(again)["live"] == 10 - len(answer_files(tmp_path))
        assert write_receipts(again, [1])[1].counts == {"hits": 0, "misses": 1}
        # Of the three policies, which ask three cases each, only calls that were cut off are made twice.
        assert 9 <= len(server.asked) <= 9 + 3
    told = {row["harness"]: row for row in rows(again)}
    assert {row["state"] for row in told.values()} == {"completed"}
    assert [row["calls"] for row in told.values()] == [3, 3, 3]
    assert told["baseline"]["started_at"] <= first["baseline"]["started_at"] + timedelta(seconds=1)
    assert check_traces(again) == []
    assert answer_files(tmp_path) == []


def answer_files(root: Path) -> list[Path]:
    return [path for path in (root / ".bench" / "runs" / "answers").rglob("*") if path.is_file()]


def test_an_attempt_that_was_killed_pays_for_no_answer_twice(tmp_path: Path) -> None:
    """Also failed calls are not made again: they would make the attempt a better one than it was."""
    with serving(lambda _: answer("ready")) as server:
        bench = project(tmp_path, base(server), live=f"{LIVE}policies: [retry-errors]\n")
        reached = threading.Event()

        def handle(_: object) -> Response | None:
            if len(server.asked) == 1:
                return Response(b"no", 500)
            if len(server.asked) == 3:
                reached.set()
                server.hang({})
                return None
            return answer("ready")

        server.handler = handle
        program = "import sys; from pathlib import Path; from bench_pipeline.pipeline.bench import Bench\n"
        program += "from bench_pipeline.pipeline.policy_receipts import write_receipts\n"
        program += "write_receipts(Bench(Path(sys.argv[1])), [1])"
        process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)])
        assert reached.wait(60)
        process.kill()
        process.wait()
        assert rows(bench) == []
        assert len(answer_files(tmp_path)) == 2
        server.handler = lambda _: answer("ready")
        write_receipts(bench, [1])
        assert len(server.asked) == 3 + 2
    calls = sorted(rows(bench, "policy_calls"), key=lambda row: row["position"])
    assert [(row["try"], row["failed"]) for row in calls] == [(1, True), (2, False), (1, False), (1, False)]
    assert rows(bench)[0]["errors"] == 0
    assert answer_files(tmp_path) == []


def test_what_a_stopped_fresh_run_asked_replaces_no_complete_attempt_and_is_not_lost(tmp_path: Path) -> None:
    with serving(lambda _: answer("ready")) as server:
        bench = project(tmp_path, base(server), live=LIVE)
        before = write_receipts(bench, [1])[1].written.digest
        server.asked.clear()

        def handle(_: object) -> Response:
            if len(server.asked) == 2:
                bench.stop.ask()
            return answer("other")

        server.handler = handle
        assert write_receipts(bench, [1], fresh=True)[1].written.digest == before
        kept = len(answer_files(tmp_path))
        assert kept
        server.handler = lambda _: answer("other")
        server.asked.clear()
        again = project(tmp_path, base(server), live=LIVE)
        write_receipts(again, [1], fresh=True)
        assert len(server.asked) == 9 - kept
    assert {row["answer"] for row in rows(again, "policy_calls")} == {"other"}


def test_a_policy_whose_time_was_over_when_it_was_killed_gets_no_more_time(tmp_path: Path) -> None:
    with serving(lambda _: answer("ready")) as server:
        bench = project(tmp_path, base(server), live=f"{LIVE}policies: [baseline]\n")
        (comparison,), _ = load_comparisons(bench.project)
        answers = KeptAnswers(bench.store, comparison, 1)
        case = comparison.cases.cases[0]
        late = Reply(case.expected, started_at=datetime.now(UTC), latency_s=1.0)
        answers.add("baseline", 1, case.prompt, late, 0.0)
        write_receipts(bench, [1])
        assert server.asked == []
    (row,) = rows(bench)
    assert (row["state"], row["attempted"], row["errors"], row["correct"]) == ("cancelled", 1, 1, 0)
    assert row["duration_s"] >= 300


def test_a_kept_answer_that_is_damaged_is_put_aside_and_asked_for_again(tmp_path: Path) -> None:
    with serving(lambda _: answer("ready")) as server:
        bench = project(tmp_path, base(server), live=LIVE)
        (comparison,), _ = load_comparisons(bench.project)
        answers = KeptAnswers(bench.store, comparison, 1)
        answers.add("baseline", 1, "?", Reply("x", started_at=datetime.now(UTC)), 1.0)
        answer_files(tmp_path)[0].write_text("{")
        write_receipts(bench, [1])
        assert len(server.asked) == 9
    assert len(list((tmp_path / ".bench" / "quarantine").rglob("*baseline-1.json"))) == 1


def test_a_key_that_is_not_there_stops_no_other_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_KEY")
    bench = project(tmp_path, live=LIVE, orchard=REPLAY)
    done = write_receipts(bench, [1])[1]
    assert str(done.failures[0]).startswith("reading the key from MY_KEY")
    assert {row["comparison"] for row in rows(bench)} == {"orchard"}


def test_a_broken_comparison_is_named_and_stops_no_other(tmp_path: Path) -> None:
    bench = project(tmp_path, broken="budget: x\n", orchard=REPLAY)
    write_receipts(bench, [1])
    assert {row["comparison"] for row in rows(bench)} == {"orchard"}
    assert any("broken.yaml:3: budget" in problem for problem in check_comparisons(bench))


def test_the_leaderboard_has_each_attempt_and_all_of_them_pooled(tmp_path: Path) -> None:
    bench = project(tmp_path, orchard=f"{REPLAY}repeat: 2\n")
    write_receipts(bench, [1, 2])
    write_leaderboard(bench)
    table = rows(bench, "policy_leaderboard")
    assert sorted({row["attempt"] for row in table}, key=str) == [1, 2, None]
    pooled = [row for row in table if row["attempt"] is None and row["rank"] == 1]
    assert [(row["harness"], row["correct"], row["total"]) for row in pooled] == [("evidence", 6, 6)]


def test_attempts_under_other_terms_are_not_pooled(tmp_path: Path) -> None:
    write_receipts(project(tmp_path, orchard=f"{REPLAY}repeat: 2\n"), [1, 2])
    changed = project(tmp_path, orchard=f"{REPLAY.replace('4', '3')}repeat: 2\n")
    write_receipts(changed, [1])
    assert [board.attempt for board in stored_leaderboards(changed)["orchard"]] == [1, 2]


def test_counters_that_were_changed_in_the_store_are_found(tmp_path: Path) -> None:
    bench = project(tmp_path, orchard=REPLAY)
    write_receipts(bench, [1])
    table = bench.store.tables.read("policy_receipts", attempt=1)
    changed = table.set_column(
        table.schema.get_field_index("correct"), table.schema.field("correct"), [[2, 3, 2]]
    )
    bench.store.tables.write("policy_receipts", changed, attempt=1)
    assert check_traces(bench) == ["baseline of orchard, attempt 1"]


def test_a_key_is_in_no_file_of_the_store_whatever_the_server_says(tmp_path: Path) -> None:
    def leaking(document: dict[str, Any]) -> Response:
        prompt = document["messages"][0]["content"]
        return Response(SECRET.encode(), 401) if "price" in prompt else answer(f"it is {SECRET}")

    with serving(leaking) as server:
        bench = project(tmp_path, base(server), live=LIVE)
        write_receipts(bench, [1])
        write_leaderboard(bench)
    files = [Path(folder) / name for folder, _, names in os.walk(tmp_path) for name in names]
    assert any(path.suffix == ".parquet" for path in files)
    for path in files:
        assert SECRET.encode() not in path.read_bytes()
        if path.suffix == ".parquet":
            assert SECRET not in str(pq.read_table(path, partitioning=None).to_pylist())
    assert "it is [MY_KEY]" in {row["answer"] for row in rows(bench, "policy_calls")}


def test_the_command_prints_what_the_tables_hold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        call("policy", "leaderboard", "--project", str(project(tmp_path, orchard=REPLAY).project.root)) == 5
    )
    bench = project(tmp_path, orchard=REPLAY, second=REPLAY)
    write_receipts(bench, [1])
    capsys.readouterr()
    assert call("policy", "leaderboard", "--project", str(tmp_path), "--comparison", "orchard") == 0
    assert capsys.readouterr().out == "COMPARISON orchard\n" + (ORCHARD / "expected-stdout.txt").read_text()
    assert call("policy", "leaderboard", "--project", str(tmp_path), "--json") == 0
    assert {row["comparison"] for row in json.loads(capsys.readouterr().out)} == {"orchard", "second"}
    assert call("policy", "leaderboard", "--project", str(tmp_path), "--comparison", "third") == 1


def test_a_project_with_comparisons_alone_can_be_run(tmp_path: Path) -> None:
    bench = project(tmp_path, orchard=REPLAY)
    assert prepare(bench, RunOptions()).actions.num_rows == 0
    with pytest.raises(NothingToEvaluateError):
        prepare(bench, RunOptions(Selection(tiers=("smoke",))))
    (tmp_path / "policies" / "orchard.yaml").unlink()
    with pytest.raises(NothingToEvaluateError):
        prepare(bench, RunOptions())


def test_the_calls_to_a_live_model_are_announced_before_they_are_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(lambda _: answer("ready")) as server:
        bench = project(tmp_path, base(server), live=f"{LIVE}repeat: 2\n", orchard=REPLAY)
        assert calls_to_make(bench) == {"live": 20}
        assert call("run", "--dry-run", "--project", str(tmp_path)) == 0
        assert "the comparison live makes up to 20 calls to a live model" in capsys.readouterr().err
        assert server.asked == []
        write_receipts(bench, [1])
        assert calls_to_make(bench) == {"live": 10}
        write_receipts(bench, [2])
    assert calls_to_make(bench) == {}


HOSTILE = '<script>\x1b[2J\u202e\x00\u2028"\\|`é𝄞' + "x" * 100_000


def test_answers_that_hold_anything_are_kept_exactly_and_shown_harmlessly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = project(tmp_path, orchard=REPLAY)
    path = tmp_path / "policies" / "recording.json"
    recording = json.loads(path.read_text())
    recording["model"] = HOSTILE[:20]
    for answers in recording["responses"].values():
        answers[0] = {"answer": HOSTILE, "error": HOSTILE}
    path.write_text(json.dumps(recording))
    write_receipts(bench, [1])
    write_leaderboard(bench)
    first = next(row for row in rows(bench, "policy_calls") if row["position"] == 1)
    assert (first["answer"], first["failure"]) == (HOSTILE, HOSTILE)
    assert call("policy", "leaderboard", "--project", str(tmp_path)) == 0
    assert call("table", "policy_receipts", "--project", str(tmp_path)) == 0
    shown = capsys.readouterr().out
    assert not any(mark in shown for mark in ("\x1b", "\u202e", "\x00"))
