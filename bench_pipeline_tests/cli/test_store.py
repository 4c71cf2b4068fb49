"""``bench store``: what each command prints, and its exit status."""

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bench_pipeline.cli.main import main
from bench_pipeline.store import Store
from bench_pipeline.store.schemas import VERDICT_PARTS
from bench_pipeline_tests.cli.calling import project as tabled
from bench_pipeline_tests.outcomes import sha, tasks


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    root = tmp_path / "project"
    root.mkdir()
    (root / "config.yaml").write_text("apiVersion: bench.ber.run/v1alpha1\nkind: Project\n")
    return root


@pytest.fixture
def store(project: Path) -> Store:
    store = Store.open(project / ".bench")
    for number in range(3):
        row = {
            "identity": bytes([number]) * 32,
            "run_key": bytes([number + 10]) * 32,
            "verify_key": bytes(32),
            "outcome": "passed",
            "outcome_class": "verdict",
            "passed": True,
            "tool_ran": True,
            "measured_at": datetime.now(UTC),
            "artifacts": {"stdout": store.artifacts.put(b"%d" % number)},
        }
        store.verdicts.append(VERDICT_PARTS.from_rows([row]))
    return store


def run(capsys: pytest.CaptureFixture[str], project: Path, *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["store", *words, "--project", str(project)])
    out, err = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, out, err


def run_json(capsys: pytest.CaptureFixture[str], project: Path, *words: str) -> tuple[int, dict[str, Any]]:
    status, out, _ = run(capsys, project, *words, "--json")
    return status, json.loads(out)


def spoil(store: Store) -> Path:
    assert store.root is not None
    part = min((store.root / "verdicts").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:100])
    return part


def test_a_whole_store_is_verified_with_exit_0(
    project: Path, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    status, document = run_json(capsys, project, "verify")
    assert status == 0
    assert document["whole"] is True
    assert (document["verdict_rows"], document["artifacts"], document["in_quarantine"]) == (3, 3, 0)
    assert document["findings"] == []


def test_a_broken_store_is_told_file_by_file_with_exit_1_and_left_alone(
    project: Path, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    part = spoil(store)
    status, document = run_json(capsys, project, "verify")
    assert (status, document["whole"]) == (1, False)
    [finding] = document["findings"]
    assert finding["path"] == f"verdicts/{part.name}"
    assert finding["moved_to"] is None
    assert part.exists()


def test_what_is_broken_is_put_aside_when_asked(
    project: Path, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    part = spoil(store)
    status, out, _ = run(capsys, project, "verify", "--put-aside")
    assert status == 1
    assert "in_quarantine=1" in out
    assert f"path=verdicts/{part.name}" in out
    assert not part.exists()
    assert run(capsys, project, "verify")[0] == 0


def test_compacting_leaves_one_part_and_every_row(
    project: Path, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    status, document = run_json(capsys, project, "compact")
    assert status == 0
    assert (document["verdict_parts_before"], document["verdict_parts"]) == (3, 1)
    assert run_json(capsys, project, "verify")[1]["verdict_rows"] == 3


def test_migrating_a_current_store_rewrites_nothing(
    project: Path, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    status, document = run_json(capsys, project, "migrate")
    assert status == 0
    assert document == {"parts": 0, "table_files": 0, "quarantined": []}


def test_cleaning_counts_in_a_dry_run_and_removes_otherwise(
    project: Path, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    loose = store.artifacts.put(b"loose")
    assert run_json(capsys, project, "gc")[1]["artifacts"] == 0
    _, dry = run_json(capsys, project, "gc", "--dry-run", "--older-than", "0")
    assert (dry["dry_run"], dry["artifacts"], dry["bytes"]) == (True, 1, 5)
    assert store.artifacts.exists(loose)
    status, document = run_json(capsys, project, "gc", "--older-than", "0")
    assert (status, document["artifacts"]) == (0, 1)
    assert not store.artifacts.exists(loose)


def test_a_cell_is_forgotten_by_its_whole_identity(
    project: Path, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    identity = (bytes([1]) * 32).hex()
    status, document = run_json(capsys, project, "forget", identity)
    assert status == 0
    assert (document["verdict_rows"], document["artifacts"]) == (1, 1)
    status, _, err = run(capsys, project, "forget", identity)
    assert status == 1
    assert "knows nothing of it" in err


@pytest.mark.parametrize("identity", ["01", "../../x", "AB" * 32])
def test_what_starts_no_identity_forgets_nothing(
    project: Path, store: Store, identity: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = run(capsys, project, "forget", identity, "--yes")
    assert status == 1
    assert "looking up the cell" in err
    assert len(store.verdicts.history((bytes([1]) * 32).hex())) == 1


@pytest.fixture
def planned(tmp_path: Path) -> tuple[Path, Store, str]:
    """A project whose tables know a cell that has a verdict."""
    (tmp_path / "planned").mkdir()
    root = Path(tabled(tmp_path / "planned", {"a": tasks(True, False)}))
    store = Store.open(root / ".bench")
    identity = sha("a t000 1")
    row = {
        "identity": bytes.fromhex(identity),
        "run_key": bytes(32),
        "verify_key": bytes(32),
        "outcome": "passed",
        "outcome_class": "verdict",
        "passed": True,
        "tool_ran": True,
        "measured_at": datetime.now(UTC),
    }
    store.verdicts.append(VERDICT_PARTS.from_rows([row]))
    return root, store, identity


def test_the_start_of_an_identity_is_forgotten_when_it_is_confirmed(
    planned: tuple[Path, Store, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, _, identity = planned
    monkeypatch.setattr("bench_pipeline.cli.store.is_terminal", lambda _: False)
    status, _, err = run(capsys, root, "forget", identity[:8])
    assert (status, f"give all of {identity}, or --yes" in err) == (2, True)
    status, document = run_json(capsys, root, "forget", identity[:8], "--yes")
    assert (status, document["identity"], document["verdict_rows"]) == (0, identity, 1)


@pytest.mark.parametrize(("answer", "status", "left"), [("y\n", 0, 0), ("n\n", 130, 1), ("", 130, 1)])
def test_on_a_terminal_forgetting_is_asked_about(
    planned: tuple[Path, Store, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str,
    status: int, left: int,
) -> None:  # fmt: skip
    root, store, identity = planned
    monkeypatch.setattr("bench_pipeline.cli.store.is_terminal", lambda _: True)
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    assert run(capsys, root, "forget", identity)[0] == status
    assert len(store.verdicts.history(identity)) == left


def test_without_a_project_the_error_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = run(capsys, tmp_path / "nowhere", "verify")
    assert status == 1
    assert "bench" in err


def test_hostile_names_are_escaped_on_a_terminal(
    project: Path, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / ".bench" / "verdicts" / "x\x1b[2J.parquet").write_bytes(b"")
    status, out, _ = run(capsys, project, "verify")
    assert status == 1
    assert "\x1b" not in out
