"""``bench notify``: targets and what waits for them, a test message, and what doctor says of both."""

import json
from pathlib import Path

import pytest

from bench_pipeline_tests.cli.calling import HEAD, call
from bench_pipeline_tests.listening import listening


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "config.yaml").write_text(
        f"{HEAD}kind: Project\nnotifications: {{team: {{url_env: TEAM_URL}}, down: {{url_env: DOWN_URL}}}}\n"
    )
    for name in ("TEAM_URL", "DOWN_URL"):
        monkeypatch.delenv(name, raising=False)
    return str(tmp_path)


def test_a_test_message_goes_to_every_target_and_the_status_says_whether_all_took_it(
    project: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with listening() as listener:
        monkeypatch.setenv("TEAM_URL", listener.url("ok"))
        assert call("--project", project, "notify", "--test", "--json") == 1
        assert json.loads(capsys.readouterr().out) == [
            {"target": "team", "sent": True, "problem": None},
            {"target": "down", "sent": False, "problem": "DOWN_URL is not set"},
        ]
        monkeypatch.setenv("DOWN_URL", listener.url("ok"))
        assert call("--project", project, "notify", "--test") == 0
    assert len(listener.taken) == 3
    assert "Nothing has happened; this is a test." in listener.taken[0]["message"]


def test_targets_are_shown_without_their_urls(
    project: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TEAM_URL", "json://hush-hush-secret")
    assert call("--project", project, "notify", "--plain") == 0
    assert capsys.readouterr().out.splitlines() == [
        "target=team url_env=TEAM_URL url_set=yes events=gate_flipped,night_failed waiting=0 given_up=0 problem=-",
        "target=down url_env=DOWN_URL url_set=no events=gate_flipped,night_failed waiting=0 given_up=0 problem=-",
    ]


def test_a_project_without_targets_is_told_how_to_add_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.yaml").write_text(f"{HEAD}kind: Project\n")
    assert call("--project", str(tmp_path), "notify") == 1
    assert "add one under `notifications:` in config.yaml" in capsys.readouterr().err
