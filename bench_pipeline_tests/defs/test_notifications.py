"""``notify_sensor`` on a real instance with a real server: one message a night, whatever failed and how often."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import dagster as dg
import pytest
from dagster import DagsterInstance, DagsterRunStatus

from bench_pipeline.defs.runs import RUN_KEY
from bench_pipeline.defs.schedules import ended_nights
from bench_pipeline.errors import BenchError, RefusedError, StoreError
from bench_pipeline_tests.defs.ticking import Daemon
from bench_pipeline_tests.listening import Listener, listening

STRIKE = datetime.fromisoformat("2026-05-01T02:17:00+00:00")


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    with listening() as found:
        monkeypatch.setenv("TEAM_URL", found.url("ok"))
        yield found


@pytest.fixture
def daemon(project: Path, instance: DagsterInstance, listener: Listener) -> Daemon:
    config = project / "config.yaml"
    config.write_text(f"{config.read_text()}notifications: {{team: {{url_env: TEAM_URL}}}}\n")
    found = Daemon(project, instance)
    assert not found.look("notify_sensor"), "what there is at first is told to nobody"
    return found


def fail(monkeypatch: pytest.MonkeyPatch, error: BenchError) -> None:
    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr("bench_pipeline.defs.assets.evaluations.write_cells", broken)


def end(daemon: Daemon, requests: Sequence[dg.RunRequest], status: DagsterRunStatus) -> None:
    """Have ended what was asked for, without doing it."""
    for request in requests:
        tags = {**request.tags, RUN_KEY: str(request.run_key)}
        daemon.instance.add_run(dg.DagsterRun(str(request.job_name), tags=tags, status=status))


def told(daemon: Daemon, listener: Listener) -> list[str]:
    """What was told, after a tick of a daemon that has just started."""
    daemon.load()
    daemon.look("notify_sensor")
    return [each["message"] for each in listener.taken]


def test_a_night_that_failed_is_told_once_when_it_has_ended(
    daemon: Daemon, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(monkeypatch, RefusedError("keeping the cap", "no cost of @everyone is known"))
    (run,) = daemon.run(daemon.strike("nightly", STRIKE), may_fail=True)
    assert told(daemon, listener) == [], "its report is to come"
    end(daemon, daemon.look("night_sensor"), DagsterRunStatus.SUCCESS)
    (message,) = told(daemon, listener)
    first, advice, *left = message.splitlines()
    assert first == (
        f"evaluate failed, permanent: keeping the cap: no cost of (at)everyone is known. More: bench ui, run {run}"
    )
    assert advice.startswith("bench doctor lists")
    assert left[0].startswith("left failed: evaluation_cells: 1")
    assert told(daemon, listener) == [message]
    secrets = [
        path for path in daemon.root.parent.rglob("*") if path.is_file() and b"hush-hush" in path.read_bytes()
    ]
    assert secrets == [], "neither the store nor Dagster keeps a URL"


def test_a_run_that_failed_and_came_good_is_told_to_nobody(
    daemon: Daemon, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fail(patch, StoreError("writing a table", "the object store answered 503"))
        daemon.run(daemon.strike("nightly", STRIKE), may_fail=True)
    while requests := daemon.look("night_sensor"):
        end(daemon, requests, DagsterRunStatus.SUCCESS)
    assert [name for name, _ in ended_nights(daemon.instance, None)] == ["2026-05-01 02:17"]
    assert told(daemon, listener) == []


def test_what_failed_three_times_is_one_message_and_a_run_that_was_cancelled_is_none(
    daemon: Daemon, listener: Listener
) -> None:
    requests = daemon.strike("nightly", STRIKE)
    while requests:
        status = DagsterRunStatus.FAILURE if requests[0].job_name == "evaluate" else DagsterRunStatus.CANCELED
        end(daemon, requests, status)
        requests = daemon.look("night_sensor")
    (message,) = told(daemon, listener)
    assert message.splitlines()[0].startswith("evaluate failed, transient: it was killed, or never started.")
    assert "report" not in message
