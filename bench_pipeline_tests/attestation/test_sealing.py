"""Attestations in a store: any change is found with its own reason, a cut-off append is finished, nothing leaks."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench_pipeline.attestation import AuditKey, CellEvidence, Subject, Verification, Verifier, seal_cell
from bench_pipeline.attestation.document import Sealed, decode
from bench_pipeline.attestation.examining import Finding
from bench_pipeline.attestation.lineage import read_lineage
from bench_pipeline.attestation.sealing import usage_digest
from bench_pipeline.errors import StoreError
from bench_pipeline.identity import canonical_json
from bench_pipeline.store import Store
from bench_pipeline_tests.attestation.cells import (
    ANSWER,
    CANARY,
    COMMAND,
    KEY,
    SIGNALS,
    START,
    golden,
    journal,
    read,
    sealed,
    subject,
)

SETTINGS = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def _verify(
    store: Store, name: str, tree: Path | None, key: AuditKey | None = KEY, **more: Any
) -> Verification:
    def at_hand(_: str) -> Subject | None:
        return None if tree is None else subject(tree)

    return Verifier(store, key, at_hand, **more).verify(name)


def _files(store: Store, *folders: str) -> list[Path]:
    assert store.root is not None
    return [store.root / info.path for folder in folders for info in store.files.list(folder)]


@pytest.mark.parametrize(("text", "verdict"), [("nothing of note", "CLEAN"), (f"so {ANSWER}", "DIRTY")])
def test_an_attestation_verifies_and_its_verdict_is_derived_again(
    store: Store, tree: Path, text: str, verdict: str
) -> None:
    made = sealed(store, tree, read(text))
    checked = _verify(store, made.hash, tree)
    assert checked.verified
    assert checked.problem is None
    assert {step.state for step in checked.steps} == {"ok"}
    assert checked.examination is not None
    assert checked.examination.verdict == made.attestation.verdict == verdict


def test_each_attestation_names_the_one_before(store: Store, tree: Path) -> None:
    made = [sealed(store, tree, read(f"text {number}")) for number in range(3)]
    assert [each.attestation.previous for each in made] == [None, made[0].hash, made[1].hash]
    assert all(_verify(store, each.hash, tree).verified for each in made)


def test_a_spine_of_several_segments_verifies(
    store: Store, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench_pipeline.attestation.lineage._SEGMENT", 2)
    made = [sealed(store, tree, read(f"text {number}")) for number in range(5)]
    assert len([path for path in _files(store, "lineage") if path.suffix == ".jsonl"]) == 3
    assert all(_verify(store, each.hash, tree).verified for each in made)
    (store.root or tree).joinpath("lineage/000001.jsonl").unlink()
    assert "segment" in str(_verify(store, made[0].hash, tree).problem)


def test_a_clock_that_went_back_breaks_nothing(store: Store, tree: Path) -> None:
    cell = CellEvidence("a" * 64, "b" * 64, "c" * 64, store.artifacts.put(journal(read("x"))))
    moments = [START, START.replace(day=1), START.replace(year=2025), START.replace(day=3)]
    made = [
        seal_cell(store, KEY, cell, subject(tree), now=lambda moment=moment: moment) for moment in moments
    ]
    assert all(_verify(store, each.hash, tree).verified for each in made)
    assert sorted(path.name for path in _files(store, "audit")) == ["2026-01-02.jsonl", "2026-01-03.jsonl"]


def test_all_of_it_works_on_an_object_store(tree: Path) -> None:
    store = Store.open(f"memory://attest-{os.getpid()}-{id(tree)}")
    made = [sealed(store, tree, read(text)) for text in ("nothing", ANSWER)]
    assert [_verify(store, each.hash, tree).verified for each in made] == [True, True]


def test_files_are_private(store: Store, tree: Path) -> None:
    os.umask(0)
    sealed(store, tree, read("x"))
    found = _files(store, "attestations", "lineage", "audit")
    assert len(found) == 4
    assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o600}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Sealed]:
    """A store with three attestations, the middle one of which is looked at; nobody changes it."""
    root = tmp_path_factory.mktemp("whole")
    tree = root / "tree"
    tree.mkdir()
    (tree / "notes.txt").write_text("ships\n")
    store = Store.open(root / "store")
    sealed(store, tree, read("first"))
    made = sealed(store, tree, read(f"so {ANSWER}"), ("message", {"text": "done"}))
    sealed(store, tree, read("last"))
    return root, tree, made


def _copy(whole: tuple[Path, Path, Sealed], into: Path) -> Store:
    target = into / "store"
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(whole[0] / "store", target)
    return Store.open(target)


@SETTINGS
@given(data=st.data(), flip=st.integers(1, 255))
@pytest.mark.parametrize("what", ["attestation", "journal", "spine", "head", "audit"])
def test_a_change_of_any_byte_is_found(
    whole: tuple[Path, Path, Sealed], tmp_path: Path, what: str, data: st.DataObject, flip: int
) -> None:
    store = _copy(whole, tmp_path)
    assert store.root is not None
    _, tree, made = whole
    artifact = made.attestation.journal.artifact
    path = {
        "attestation": store.root / f"attestations/{made.hash}.json",
        "journal": store.root / f"artifacts/{artifact[:2]}/{artifact}.jsonl",
        "spine": store.root / "lineage/000000.jsonl",
        "head": store.root / "lineage/head.json",
        "audit": store.root / "audit/2026-01-02.jsonl",
    }[what]
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= flip
    path.write_bytes(content)
    assert not _verify(store, made.hash, tree).verified
    # And where the task is not at hand.
    assert not _verify(_copy_with(store, path, content), made.hash, None).verified


def _copy_with(store: Store, path: Path, content: bytes) -> Store:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return store


@SETTINGS
@given(data=st.data())
@pytest.mark.parametrize("what", ["lineage/000000.jsonl", "audit/2026-01-02.jsonl", "lineage/head.json"])
def test_a_cut_at_any_place_is_found(
    whole: tuple[Path, Path, Sealed], tmp_path: Path, what: str, data: st.DataObject
) -> None:
    store = _copy(whole, tmp_path)
    assert store.root is not None
    path = store.root / what
    content = path.read_bytes()
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    assert not _verify(store, whole[2].hash, whole[1]).verified


def test_each_step_fails_with_a_reason_of_its_own(whole: tuple[Path, Path, Sealed], tmp_path: Path) -> None:
    root, tree, made = whole
    other = AuditKey(bytes(32))
    reasons = {
        "path": lambda store: (store.root / f"attestations/{made.hash}.json").chmod(0o644),
        "types": lambda store: _rewrite(store, made, lambda body: body["attestation"].update(schema=True)),
        "name": lambda store: _rewrite(store, made, lambda body: body.update(hash="0" * 64)),
        "hash": lambda store: _rewrite(store, made, lambda body: body["attestation"].update(verdict="CLEAN")),
        "signature": lambda store: _rewrite(store, made, lambda body: body.update(signature="0" * 128)),
        "journal": lambda store: _lose_journal(store, made),
        "spine": lambda store: (store.root / "lineage/head.json").unlink(),
        "mirrored": lambda store: (store.root / "audit/2026-01-02.jsonl").unlink(),
    }
    for step, damage in reasons.items():
        store = _copy(whole, tmp_path)
        damage(store)
        checked = _verify(store, made.hash, tree)
        assert checked.steps[-1].name == step, checked.problem
        assert checked.steps[-1].state == "failed"
    assert _verify(_copy(whole, tmp_path), made.hash, tree, other).steps[-1].name == "key"
    assert _verify(_copy(whole, tmp_path), made.hash, tree, None).steps[-1].name == "key"
    assert root.exists()


def _rewrite(store: Store, made: Sealed, change: Callable[[dict[str, Any]], object]) -> None:
    body = json.loads(made.encode())
    change(body)
    (store.files.local(f"attestations/{made.hash}.json") or Path()).write_bytes(canonical_json(body))


def _lose_journal(store: Store, made: Sealed) -> None:
    path = store.artifacts.path(made.attestation.journal.artifact)
    assert path is not None
    path.unlink()


def _forged(store: Store, made: Sealed, **changes: Any) -> Sealed:
    """What somebody with the key, or a fault of ours, would have sealed instead, anchored and mirrored."""
    from bench_pipeline.attestation.document import Attestation
    from bench_pipeline.attestation.lineage import LOCK, Appender
    from bench_pipeline.attestation.sealing import _sealed

    forged = _sealed(KEY, Attestation.model_validate({**made.attestation.body, **changes}))
    with store.lock(LOCK):
        Appender(store, KEY).append(forged.hash, forged.encode(), task="harbour", cell="a" * 64, now=START)
    return forged


def test_what_does_not_follow_from_the_evidence_fails_even_when_it_is_sealed(
    whole: tuple[Path, Path, Sealed], tmp_path: Path
) -> None:
    _, tree, made = whole
    body = made.attestation.body
    cases: dict[str, dict[str, Any]] = {
        "commitment": {"commitment": {**body["commitment"], "windows": body["commitment"]["windows"][:-1]}},
        "journal": {"journal": {**body["journal"], "rows": body["journal"]["rows"] - 1}},
        "activities": {"activities": body["activities"][:-1]},
        "findings": {"findings": [], "verdict": "CLEAN"},
    }
    for step, changes in cases.items():
        store = _copy(whole, tmp_path)
        checked = _verify(store, _forged(store, made, **changes).hash, tree)
        assert checked.steps[-1].name == step, checked.problem
        assert checked.steps[-1].state == "failed"
    store = _copy(whole, tmp_path)
    assert _verify(store, _forged(store, made, created="2026-01-02T03:04:06.000000Z").hash, tree).verified


def test_a_scope_or_an_expectation_that_the_sandbox_did_not_record_fails(
    whole: tuple[Path, Path, Sealed], tmp_path: Path
) -> None:
    _, tree, made = whole
    for changes in (
        {"scope": {**made.attestation.body["scope"], "readable": ["/"]}},
        {"expected": ["message"]},
        {"exhausted": True},
    ):
        store = _copy(whole, tmp_path)
        assert _verify(store, _forged(store, made, **changes).hash, tree).steps[-1].name == "activities"


def test_a_tail_cut_off_the_spine_and_its_mirror_shows_in_the_count(
    whole: tuple[Path, Path, Sealed], tmp_path: Path
) -> None:
    store = _copy(whole, tmp_path)
    assert store.root is not None
    for path in (store.root / "lineage/000000.jsonl", store.root / "audit/2026-01-02.jsonl"):
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert "its head counts 3" in str(_verify(store, whole[2].hash, whole[1]).problem)


def test_a_spine_taken_away_whole_shows_in_the_attestations_it_no_longer_knows(
    whole: tuple[Path, Path, Sealed], tmp_path: Path
) -> None:
    store = _copy(whole, tmp_path)
    assert store.root is not None
    shutil.rmtree(store.root / "lineage")
    shutil.rmtree(store.root / "audit")
    assert not _verify(store, whole[2].hash, whole[1]).verified
    with pytest.raises(StoreError, match="does not know 3"):
        sealed(store, whole[1], read("more"))


def test_an_unanchored_attestation_fails(whole: tuple[Path, Path, Sealed], tmp_path: Path) -> None:
    store = _copy(whole, tmp_path)
    other = Store.open(tmp_path / "other")
    made = sealed(other, whole[1], read("first"))
    lineage = read_lineage(store, KEY)
    assert lineage.anchor_problem(made.hash) is not None
    assert lineage.anchor_problem(whole[2].hash) is None


@pytest.mark.parametrize("kind", ["link", "folder link", "hard link", "folder"])
def test_a_file_that_is_not_plainly_ours_is_refused(
    whole: tuple[Path, Path, Sealed], tmp_path: Path, kind: str
) -> None:
    store = _copy(whole, tmp_path)
    assert store.root is not None
    path = store.root / f"attestations/{whole[2].hash}.json"
    if kind == "folder link":
        path.parent.rename(tmp_path / "elsewhere")
        path.parent.symlink_to(tmp_path / "elsewhere")
    elif kind == "hard link":
        (tmp_path / "second").hardlink_to(path)
    else:
        path.rename(tmp_path / "moved")
        path.mkdir() if kind == "folder" else path.symlink_to(tmp_path / "moved")
    checked = _verify(store, whole[2].hash, whole[1])
    assert checked.steps[-1].name == "path"
    assert not checked.verified


@pytest.mark.parametrize("name", ["", "../../x", "a" * 63, "g" * 64, "A" * 64, "a" * 64 + "\n"])
def test_a_name_that_is_none_is_refused(store: Store, name: str) -> None:
    assert _verify(store, name, None).steps[-1].name == "path"


def test_others_verify_by_the_public_key_without_the_secret(
    whole: tuple[Path, Path, Sealed], tmp_path: Path
) -> None:
    store = _copy(whole, tmp_path)
    checked = _verify(store, whole[2].hash, None, None, public=KEY.public)
    assert checked.verified
    assert checked.examination is not None
    assert checked.examination.verdict == "DIRTY"
    assert [step.name for step in checked.steps if step.state == "not checked"] == [
        "key",
        "commitment",
        "activities",
    ]
    wrong = _verify(store, whole[2].hash, None, None, public=AuditKey(bytes(32)).public)
    assert wrong.steps[-1].name == "key"


def test_a_task_that_changed_or_is_gone_is_said_and_does_not_fail(
    whole: tuple[Path, Path, Sealed], tmp_path: Path
) -> None:
    store = _copy(whole, tmp_path)
    tree = whole[1]

    def changed(_: str) -> Subject:
        return subject(tree, prompt="Another prompt.")

    for at_hand, reason in (
        (changed, "the task has changed since"),
        (lambda _: None, "the task is not at hand"),
    ):
        checked = Verifier(store, KEY, at_hand).verify(whole[2].hash)
        assert checked.verified
        assert [step.reason for step in checked.steps if step.name == "commitment"] == [reason]


def test_verifying_writes_nothing_and_makes_no_key(
    whole: tuple[Path, Path, Sealed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCH_AUDIT_KEY_FILE", str(tmp_path / "none" / "key"))
    store = _copy(whole, tmp_path)
    assert store.root is not None
    before = {path: path.stat().st_mtime_ns for path in store.root.rglob("*") if path.is_file()}
    for key in (KEY, None):
        _verify(store, whole[2].hash, whole[1], key)
    after = {path: path.stat().st_mtime_ns for path in store.root.rglob("*") if path.is_file()}
    assert after == before
    assert not (tmp_path / "none").exists()


def test_the_answer_the_key_and_the_canary_are_in_no_file(
    store: Store, tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    task = golden(tree, canary=CANARY)
    from bench_pipeline.attestation import subject_of

    found = subject_of(task.as_task(), task, tree)
    for number in range(3):
        artifact = store.artifacts.put(journal(read(f"nothing {number}"), ("message", {"text": "hello"})))
        seal_cell(store, KEY, CellEvidence("a" * 64, "b" * 64, "c" * 64, artifact), found)
    assert store.root is not None
    content = b"".join(path.read_bytes() for path in store.root.rglob("*") if path.is_file())
    words = {word for text in (*SIGNALS, COMMAND) for word in text.split() if len(word) > 6} - {"harbour"}
    needles = [*words, ANSWER, COMMAND, CANARY, "zanzibar", KEY.secret.hex()]
    for needle in needles:
        assert needle.casefold().encode() not in content.lower(), needle
    assert KEY.secret not in content
    assert repr(KEY) == "AuditKey()"
    assert not any(needle in text for needle in needles for text in capfd.readouterr())


def test_findings_name_rows_and_kinds_and_no_text(store: Store, tree: Path) -> None:
    made = sealed(store, tree, read(ANSWER))
    assert made.attestation.examination.findings == (Finding(1, "contraband"),)
    assert set(made.attestation.body["findings"][0]) == {"row", "kind"}
    assert ANSWER.encode() not in made.encode()


def test_a_read_of_10_000_words_adds_less_than_64_kib(store: Store, tree: Path) -> None:
    text = "\n".join(f"word{number} other{number * 7} third{number % 97}" for number in range(3334))
    assert len(text.split()) > 10_000
    assert len(sealed(store, tree, read(text)).encode()) < 16 << 10


@pytest.mark.parametrize(
    "exact", [b"", b"{}", b"[]", b"\xff", b"[" * 100_000, b"null", b'{"attestation":{}}']
)
def test_what_is_no_attestation_is_refused_without_a_quote(exact: bytes) -> None:
    with pytest.raises(ValueError, match=r"^its fields are not those of an attestation$"):
        decode(exact)


_KILLED = """
import os, signal, sys
from pathlib import Path
from bench_pipeline.store import Store
from bench_pipeline.store.files import LocalFiles
from bench_pipeline_tests.attestation.cells import read, sealed
store, tree, step = Store.open(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
done = 0
def counted(method):
    def call(self, path, *args, **kwargs):
        global done
        if path.startswith(("lineage", "audit", "attestations")):
            if done == step:
                os.kill(os.getpid(), signal.SIGKILL)
            done += 1
        return method(self, path, *args, **kwargs)
    return call
for name in ("write", "create", "delete"):
    setattr(LocalFiles, name, counted(getattr(LocalFiles, name)))
sealed(store, tree, read("third"))
print(done)
"""


def _killed_at(store: Store, tree: Path, step: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _KILLED, str(store.root), str(tree), str(step)],
        capture_output=True, text=True, timeout=120, check=False,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip


@pytest.mark.parametrize("step", range(6))
def test_an_append_that_was_killed_is_finished_by_whoever_comes_next(
    store: Store, tree: Path, tmp_path: Path, step: int
) -> None:
    """Six writes make an append; a process dies before each of them."""
    made = [sealed(store, tree, read(text)) for text in ("first", "second")]
    assert _killed_at(store, tree, step).returncode == -signal.SIGKILL
    assert store.root is not None
    kept = tmp_path / "kept"
    shutil.copytree(store.root, kept)
    # By a verification,
    assert _verify(store, made[0].hash, tree).verified
    assert not (store.root / "lineage/pending.json").exists()
    names = {path.stem for path in _files(store, "attestations")}
    assert all(_verify(store, name, tree).verified for name in names)
    assert len(names) == (3 if step > 1 else 2)
    # and by the next attestation.
    again = Store.open(kept)
    new = sealed(again, tree, read("fourth"))
    lineage = read_lineage(again, KEY)
    assert (lineage.spine_problem, lineage.audit_problem) == (None, None)
    assert len(lineage.entries) == len(lineage.rows) == len(names) + 1
    assert _verify(again, new.hash, tree).verified


def test_an_append_has_no_more_steps_than_were_killed(store: Store, tree: Path) -> None:
    ended = _killed_at(store, tree, 100)
    assert ended.stdout.split() == ["6"], ended.stderr


def test_two_processes_seal_at_once_and_no_entry_is_lost(store: Store, tree: Path) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from bench_pipeline.store import Store\n"
        "from bench_pipeline_tests.attestation.cells import read, sealed\n"
        "for number in range(4): sealed(Store.open(sys.argv[1]), Path(sys.argv[2]), read(str(number)))\n"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(store.root), str(tree)], cwd=Path(__file__).parents[2]
        )
        for _ in range(2)
    ]
    assert [process.wait(120) for process in running] == [0, 0]
    lineage = read_lineage(store, KEY)
    assert (lineage.spine_problem, lineage.audit_problem, len(lineage.entries)) == (None, None, 8)
    assert all(_verify(store, entry["attestation"], tree).verified for entry in lineage.entries)


def test_a_pending_append_that_is_not_ours_is_never_finished(store: Store, tree: Path) -> None:
    made = sealed(store, tree, read("first"))
    assert _killed_at(store, tree, 2).returncode == -signal.SIGKILL
    path = (store.root or tree) / "lineage/pending.json"
    path.write_bytes(path.read_bytes().replace(b'"sequence":2', b'"sequence":3'))
    assert not _verify(store, made.hash, tree).verified
    with pytest.raises(StoreError, match="not ours"):
        sealed(store, tree, read("more"))


def test_another_key_appends_to_no_lineage_of_ours(store: Store, tree: Path) -> None:
    sealed(store, tree, read("first"))
    with pytest.raises(StoreError, match="another key"):
        sealed(store, tree, read("second"), key=AuditKey(bytes(32)))


def test_raw_usage_is_tokens_times_and_counts_and_no_price() -> None:
    row = {"tokens_input": 1, "tokens_output": 2, "duration_s": 1.5, "turns": 3, "cost_usd": 1.0}
    assert usage_digest(row) == usage_digest({**row, "cost_usd": 2.0, "cost_reported_usd": 3.0})
    for name in ("tokens_input", "tokens_output", "duration_s", "turns", "orphans", "signal", "exit_code"):
        assert usage_digest(row) != usage_digest({**row, name: 9})
    assert usage_digest(row) != usage_digest({**row, "turns": None})
