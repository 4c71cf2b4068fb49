"""``bench policy`` as a person or a script calls it."""

import json
import os
import signal
import stat
from pathlib import Path

import pytest

from bench_pipeline_tests.cli.calling import call
from bench_pipeline_tests.policies.orchard import ORCHARD
from bench_pipeline_tests.providers.chat_server import ChatServer, Response, answer, serving

FIXTURE = ("--cases", str(ORCHARD / "cases.json"), "--recording", str(ORCHARD / "recording.json"))
LINES = (ORCHARD / "expected-stdout.txt").read_text()
SECRET = "sk-very-secret-0123456789"
Output = pytest.CaptureFixture[str]


def run(*more: str) -> int:
    return call("policy", "run", *FIXTURE, *more)


def live(server: ChatServer, command: str, *more: str) -> int:
    cases = (
        "--cases",
        str(ORCHARD / "cases.json"),
        "--budget",
        "4",
        "--endpoint",
        server.url,
        "--model",
        "m",
    )
    return call("policy", command, *cases, *more)


def test_the_fixture_comes_out_byte_for_byte(tmp_path: Path, capsys: Output) -> None:
    receipt = tmp_path / "receipt.json"
    assert run("--budget", "4", "--out", str(receipt)) == 0
    assert capsys.readouterr() == (LINES, "")
    assert receipt.read_bytes() == (ORCHARD / "expected-receipt.json").read_bytes()
    assert stat.S_IMODE(receipt.stat().st_mode) == 0o600
    assert call("policy", "leaderboard", str(receipt)) == 0
    assert capsys.readouterr() == (LINES, "")


def test_json_is_rows_of_the_receipts(capsys: Output) -> None:
    assert run("--budget", "2", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {"scope", "model", "dataset_sha256", "results"}
    assert [(row["harness"], row["state"], row["call_budget"]) for row in document["results"]] == [
        ("baseline", "budget-exhausted", 2),
        ("retry-errors", "budget-exhausted", 2),
        ("evidence", "budget-exhausted", 2),
    ]


def test_a_leaderboard_in_json_has_rates_and_intervals(capsys: Output) -> None:
    assert call("policy", "leaderboard", str(ORCHARD / "expected-receipt.json"), "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["rank"], row["harness"], row["method"]) for row in rows] == [
        (1, "evidence", "wilson n=3"),
        (2, "retry-errors", "wilson n=3"),
        (3, "baseline", "wilson n=3"),
    ]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--temperature", "0"),
        ("--max-tokens", "128"),
        ("--model", "m"),
        ("--endpoint", "https://example.com"),
        ("--key-env", "KEY"),
    ],
)
def test_settings_beside_a_recording_are_an_error(option: str, value: str, capsys: Output) -> None:
    assert run("--budget", "4", option, value) == 2
    assert option in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("--budget", "-1"),
        ("--budget", "10001"),
        ("--budget", "x"),
        (),
        ("--budget", "4", "--timeout", "0s"),
        ("--budget", "4", "--timeout", "5m1ms"),
        ("--budget", "4", "--timeout", "30"),
        ("--budget", "4", "--repeat", "0"),
        ("--budget", "4", "--concurrency", "0"),
        ("--budget", "4", "--policy", "other"),
        ("--budget", "4", "--receipt-version", "3"),
    ],
)
def test_words_out_of_their_bounds_are_usage_errors(words: tuple[str, ...]) -> None:
    assert run(*words) == 2


def test_a_project_raises_the_limits_that_it_names(tmp_path: Path, capsys: Output) -> None:
    (tmp_path / "config.yaml").write_text(
        "apiVersion: bench.ber.run/v1alpha1\nkind: Project\npolicies: {max_timeout: 1h, max_cases: 2}\n"
    )
    assert run("--budget", "4", "--timeout", "1h", "--project", str(tmp_path)) == 1
    assert "limit: 3 cases, more than 2" in capsys.readouterr().err


def test_nothing_is_asked_without_a_recording_or_a_live_model(capsys: Output) -> None:
    assert call("policy", "run", "--cases", str(ORCHARD / "cases.json"), "--budget", "4") == 2
    assert "--recording" in capsys.readouterr().err


def test_a_single_policy_can_be_run(capsys: Output) -> None:
    assert run("--budget", "4", "--policy", "evidence") == 0
    assert capsys.readouterr().out.splitlines()[4:] == LINES.splitlines()[4:5]


def test_repeats_have_a_receipt_and_a_leaderboard_each_and_one_that_pools_them(
    tmp_path: Path, capsys: Output
) -> None:
    out = tmp_path / "receipt.json"
    assert run("--budget", "4", "--repeat", "3", "--out", str(out), "--receipt-version", "2") == 0
    text = capsys.readouterr().out
    assert [line for line in text.splitlines() if line.startswith("ATTEMPT")] == [
        "ATTEMPT 1",
        "ATTEMPT 2",
        "ATTEMPT 3",
        "ATTEMPT pooled",
    ]
    assert "evidence correct=9/9 attempted=9 errors=0 calls=9/12 state=completed" in text
    receipts = [str(tmp_path / f"receipt-{number}.json") for number in (1, 2, 3)]
    assert call("policy", "leaderboard", *receipts) == 0
    assert capsys.readouterr().out == text


def test_receipts_of_different_budgets_are_refused(tmp_path: Path, capsys: Output) -> None:
    receipts = [str(tmp_path / f"{budget}.json") for budget in (3, 4)]
    for budget, receipt in zip((3, 4), receipts, strict=True):
        policy = "baseline" if budget == 3 else "evidence"
        assert run("--budget", str(budget), "--policy", policy, "--out", receipt) == 0
    capsys.readouterr()
    assert call("policy", "leaderboard", *receipts) == 1
    assert "call_budget differs: baseline 3, evidence 4" in capsys.readouterr().err


def test_a_receipt_that_was_edited_is_refused_with_its_line(tmp_path: Path, capsys: Output) -> None:
    text = (ORCHARD / "expected-receipt.json").read_text().replace('"Correct": 1,', '"Correct": 2,', 1)
    (tmp_path / "receipt.json").write_text(text)
    assert call("policy", "leaderboard", str(tmp_path / "receipt.json")) == 1
    assert (
        "receipt.json:16: results[0].Correct: invalid: is 2, and the trace has 1" in capsys.readouterr().err
    )


def test_a_live_run_is_recorded_and_its_replay_says_the_same(tmp_path: Path, capsys: Output) -> None:
    recording = tmp_path / "recording.json"
    with serving(lambda _: answer()) as server:
        assert live(server, "record", "--out", str(recording), "--repeat", "2", "--concurrency", "3") == 0
    recorded = capsys.readouterr().out
    assert stat.S_IMODE(recording.stat().st_mode) == 0o600
    cases = str(ORCHARD / "cases.json")
    words = ("--cases", cases, "--recording", str(recording), "--budget", "4", "--repeat", "2")
    assert call("policy", "run", *words) == 0
    assert capsys.readouterr().out == recorded.replace("SCOPE live_provider", "SCOPE recorded_provider")


def test_version_1_of_a_recording_holds_a_single_run_and_is_refused_before_any_call(tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "recording.json"), "--recording-version", "1")
    with serving(lambda _: answer()) as server:
        assert live(server, "record", *out) == 2
        assert live(server, "record", *out, "--policy", "baseline", "--repeat", "2") == 2
        assert server.asked == []
        assert live(server, "record", *out, "--policy", "baseline") == 0
    assert "version" not in json.loads((tmp_path / "recording.json").read_text())


def test_a_policy_whose_time_is_over_is_kept_marked_and_exits_with_3(tmp_path: Path, capsys: Output) -> None:
    out = tmp_path / "receipt.json"
    with serving(lambda _: None) as server:
        server.handler = lambda document: (
            answer("ready") if "Evidence" in document["messages"][0]["content"] else server.hang(document)
        )
        assert live(server, "run", "--timeout", "300ms", "--out", str(out)) == 3
    output = capsys.readouterr()
    assert "baseline correct=0/3 attempted=1 errors=1 calls=1/4 state=cancelled" in output.out
    assert "evidence correct=1/3 attempted=3 errors=0 calls=3/4 state=completed" in output.out
    assert "the time was over before baseline, retry-errors was done" in output.err
    assert call("policy", "leaderboard", str(out)) == 0


@pytest.mark.parametrize("set_to", [None, ""])
def test_a_key_that_is_not_there_is_told_before_any_call(
    set_to: str | None, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    if set_to is not None:
        monkeypatch.setenv("MY_KEY", set_to)
    with serving(lambda _: answer()) as server:
        assert live(server, "run", "--key-env", "MY_KEY") == 1
        assert server.asked == []
    assert "MY_KEY" in capsys.readouterr().err


@pytest.mark.parametrize(
    "endpoint", ["http://example.com/x", "https://u:hunter22@example.com", "https://h/?q", "https://h/#f"]
)
def test_endpoints_that_would_tell_others_are_refused_without_being_repeated(
    endpoint: str, capsys: Output
) -> None:
    words = ("--cases", str(ORCHARD / "cases.json"), "--budget", "4", "--endpoint", endpoint, "--model", "m")
    assert call("policy", "run", *words) == 2
    assert "hunter22" not in capsys.readouterr().err


@pytest.mark.parametrize("words", [("--temperature", "nan"), ("--temperature", "2.1"), ("--model", " ")])
def test_settings_that_no_model_takes_are_refused_before_any_call(words: tuple[str, ...]) -> None:
    with serving(lambda _: answer()) as server:
        assert live(server, "run", *words) == 2
        assert server.asked == []


def leaking(document: dict[str, object]) -> Response:
    """A server that says the key back in every way it can."""
    prompt = str(document["messages"])
    if "price" in prompt:
        return Response(f'{{"error": "bad key {SECRET}"}}'.encode(), 401, {"X-Key": SECRET})
    if "restore" in prompt:
        return Response(raw=f"{SECRET} not HTTP\r\n\r\n".encode())
    return answer(f"15 minutes {SECRET}")


def test_a_key_is_in_no_file_and_no_output_whatever_the_server_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    with serving(leaking) as server:
        words = ("--key-env", "MY_KEY", "--json", "--concurrency", "2")
        assert (
            live(server, "run", *words, "--out", str(tmp_path / "receipt.json"), "--receipt-version", "2")
            == 0
        )
        assert live(server, "record", *words, "--out", str(tmp_path / "recording.json")) == 0
        assert live(server, "run", "--key-env", "MY_KEY", "--out", str(tmp_path / "no" / "receipt.json")) == 1
        assert SECRET in str([asked.headers for asked in server.asked])
    output = capsys.readouterr()
    written = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) == 2
    assert all(SECRET not in text for text in [*written, output.out, output.err])


def test_a_model_in_a_file_cannot_act_on_the_terminal(tmp_path: Path, capsys: Output) -> None:
    recording = json.loads((ORCHARD / "recording.json").read_text())
    recording["model"] = "m\x1b[2J\nevidence correct=9/9"
    (tmp_path / "recording.json").write_text(json.dumps(recording))
    words = (
        "--cases",
        str(ORCHARD / "cases.json"),
        "--recording",
        str(tmp_path / "recording.json"),
        "--budget",
        "4",
    )
    assert call("policy", "run", *words) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert len(out.splitlines()) == 7


@pytest.mark.parametrize("concurrency", ["1", "3"])
def test_an_interrupt_ends_the_policies_and_no_answer_is_lost(
    tmp_path: Path, capsys: Output, concurrency: str
) -> None:
    def handle(_: object) -> Response:
        if len(server.asked) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return answer("ready")

    receipt = tmp_path / "receipt.json"
    with serving(handle) as server:
        more = ("--repeat", "2", "--concurrency", concurrency, "--out", str(receipt))
        assert live(server, "run", *more) == 130
        asked = len(server.asked)
    results = json.loads((tmp_path / "receipt-1.json").read_text())["results"]
    assert sum(result["Calls"] for result in results) == asked < 10
    assert sum(entry["Answer"] == "ready" for result in results for entry in result["Trace"]) == asked
    assert results[-1]["State"] == "cancelled"
    assert not (tmp_path / "receipt-2.json").exists()
    assert "it was stopped before" in capsys.readouterr().err


def test_the_calls_of_a_live_run_are_counted_on_a_terminal_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    with serving(lambda _: answer()) as server:
        assert live(server, "run") == 0
        assert capsys.readouterr().err == ""
        monkeypatch.setattr("bench_pipeline.cli.progress.is_terminal", lambda _: True)
        assert live(server, "run") == 0
    shown = capsys.readouterr()
    assert "calls" in shown.err
    assert "9/10" in shown.err
    assert shown.out.startswith("SCOPE live_provider")


def test_a_table_for_people_shows_coverage_intervals_and_what_a_lead_rests_on(
    terminal: None, capsys: Output
) -> None:
    assert run("--budget", "3") == 0
    out = capsys.readouterr().out
    assert "66.7% (2/3)" in out
    assert "100.0% (43.9 to 100.0)" in out
    assert "rests on 3 cases attempted against 2" in out
    assert "not distinguishable" in out


def test_rows_made_by_hand_are_ranked_by_their_counters(tmp_path: Path, capsys: Output) -> None:
    rows = [
        {"Harness": name, "Correct": correct, "Attempted": 5, "Errors": 0, "Total": 5}
        for name, correct in (("mine", 2), ("yours", 4))
    ]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rows))
    assert call("policy", "leaderboard", str(path)) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "yours correct=4/5 attempted=5 errors=0 calls=-/- state=-",
        "mine correct=2/5 attempted=5 errors=0 calls=-/- state=-",
    ]
    assert call("policy", "leaderboard", str(path), str(ORCHARD / "expected-receipt.json")) == 1
    assert "receipt differs" in capsys.readouterr().err
