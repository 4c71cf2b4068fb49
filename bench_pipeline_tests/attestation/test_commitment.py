"""What is sealed of an answer: which windows, without the text, and never what the agent was given."""

import json
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from bench_pipeline.attestation import AuditKey, subject_of
from bench_pipeline.attestation.commitment import Commitment, Matcher, Seal, commit, commitment_of, kinds_of
from bench_pipeline.attestation.power import measure_power
from bench_pipeline.attestation.truth import Allowance, Source
from bench_pipeline.attestation.words import words_of
from bench_pipeline.errors import RefusedError
from bench_pipeline.tasks import Task, load_golden
from bench_pipeline.tasks.task import DirectorySource, TaskEnvironment, TaskVerify
from bench_pipeline_tests.attestation.cells import (
    ANSWER,
    CANARY,
    COMMAND,
    FRONT_MATTER,
    KEY,
    SCAN_KEY,
    findings,
    golden,
    journal,
    read,
    scanned,
    subject,
)

NOTHING = Allowance({})


def _commit(*sources: Source, allowance: Allowance = NOTHING, key: bytes = SCAN_KEY) -> Commitment:
    return commit(Seal(key), sources, allowance)


def _found(commitment: Commitment, text: str) -> set[str]:
    hits = set(Matcher(commitment, Seal(SCAN_KEY)).candidates(words_of(text)))
    kinds = kinds_of(commitment)
    return {kinds[hit] for hit in hits if hit in kinds}


def test_every_source_of_a_golden_task_is_derived(tree: Path) -> None:
    kinds = [source.kind for source in subject(tree, canary=CANARY).sources]
    assert kinds == ["completion_signal", "completion_signal", "test_command", "front_matter", "canary"]


def test_extra_texts_add_to_the_derived_ones_and_replace_none(tree: Path) -> None:
    extra = "seven grey gulls stood on the quay wall waiting"
    assert [source.kind for source in subject(tree, extra=(extra,)).sources][:-1] == [
        source.kind for source in subject(tree).sources
    ]
    assert findings(tree, read(f"so {extra}."), extra=(extra,)) == [(1, "contraband")]
    assert findings(tree, read(f"so {ANSWER}."), extra=(extra,)) == [(1, "contraband")]


def _repository_task(tmp_path: Path, reference: bytes, tests: bytes) -> Task:
    return Task(
        id="t", tier="standard", folder=tmp_path, source=DirectorySource(tmp_path, "base"), timeout_s=None,
        environment=TaskEnvironment(), prompt="Fix it.", prompt_path="prompt.md",
        verify=TaskVerify(command=COMMAND, tests_patch=tests), reference_patch=reference, validation=None,
    )  # fmt: skip


def _patch(path: str, *added: str) -> bytes:
    lines = "".join(f"+{line}\n" for line in added)
    return (
        f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
        f"@@ -0,0 +1,{len(added)} @@\n{lines}"
    ).encode()


def test_added_lines_of_one_file_are_one_text_and_of_two_files_two(tmp_path: Path, tree: Path) -> None:
    lines = ["moor(ship, berth)", "lights.on(berth)", "log.write(ship.name, berth.number)"]
    task = _repository_task(
        tmp_path, _patch("a.py", *lines) + _patch("b.py", *lines[::-1]), _patch("t.py", *lines)
    )
    found = subject_of(task, None, tree)
    assert [source.kind for source in found.sources] == ["test_command", "reference_patch", "hidden_tests"]
    assert found.sources[1].texts == ("\n".join(lines), "\n".join(lines[::-1]))


def test_a_patch_that_cannot_be_read_refuses(tmp_path: Path, tree: Path) -> None:
    task = _repository_task(
        tmp_path,
        b"--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+x\n",
        _patch("t.py", "a b c"),
    )
    with pytest.raises(RefusedError, match="reference patch"):
        subject_of(task, None, tree)


def test_eight_words_count_and_seven_do_not() -> None:
    sealed = _commit(Source("extra", ("one two three four five six seven eight nine",)))
    assert _found(sealed, "so one two three four five six seven eight") == {"contraband"}
    assert _found(sealed, "two three four five six seven eight nine") == {"contraband"}
    assert _found(sealed, "one two three four five six seven") == set()
    assert _found(sealed, "one two three four and five six seven eight nine") == set()


def test_a_short_signal_counts_whole_at_any_place(tree: Path) -> None:
    assert findings(tree, read("then file_contains: notes.txt :: harbour lights, they say")) == [
        (1, "contraband")
    ]
    assert findings(tree, read("the harbour lights of notes.txt")) == []


@pytest.mark.parametrize("signal", ["no_files_modified", "path_exists: out"])
def test_a_signal_of_less_than_three_words_is_told_as_short_and_never_matched(signal: str) -> None:
    sealed = _commit(Source("completion_signal", (signal,)), Source("extra", (ANSWER,)))
    assert (sealed.coverage.declared, sealed.coverage.covered, sealed.coverage.short) == (2, 1, 1)
    assert _found(sealed, f"about {signal} it says") == set()


def test_windows_of_numbers_and_repetitions_do_not_count() -> None:
    table = "0 0 0 0 0 0 0 0 1 2 3 4 5 6 7 8 9 10"
    sealed = _commit(Source("extra", (f"{table} {ANSWER}",)))
    assert _found(sealed, table) == set()
    assert _found(sealed, ANSWER) == {"contraband"}


def test_what_the_agent_was_given_is_no_answer(tmp_path: Path, tree: Path) -> None:
    prompt = f"Do this. It is done when {ANSWER}. Check with {COMMAND}."
    assert findings(tree, read(prompt), prompt=prompt) == []
    (tree / "docs.md").write_text(f"# Docs\n{ANSWER}\n")
    assert findings(tree, read(ANSWER)) == []
    assert findings(tree, read(COMMAND)) == [(1, "contraband")]
    manual = tmp_path / "manual.txt"
    manual.write_text(f"run {COMMAND} to check")
    task = golden(tree)
    allowed = subject_of(task.as_task(), task, tree, documents=[manual])
    sealed = commit(Seal(SCAN_KEY), allowed.sources, allowed.allowance)
    assert _found(sealed, COMMAND) == set()
    assert sealed.coverage.given == 2


def test_the_digest_of_the_allowance_changes_with_anything_that_is_allowed(
    tmp_path: Path, tree: Path
) -> None:
    digests = {subject(tree).allowance.digest(), subject(tree, prompt="Other.").allowance.digest()}
    digests.add(subject(tree, title="Other").allowance.digest())
    (tree / "more.txt").write_text("more")
    digests.add(subject(tree).allowance.digest())
    manual = tmp_path / "manual.txt"
    for text in ("one", "two"):
        manual.write_text(text)
        digests.add(Allowance({}, tree, (manual,)).digest())
    assert len(digests) == 6


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        (Source("front_matter", ("!!! ---",)), "no word"),
        (Source("extra", ("\U0001f6a2 \U0001f30a",)), "no word"),
        (Source("extra", ("only five words are here",)), "no 8 words"),
        (Source("extra", ("1 2 3 4 5 6 7 8 9",)), "no 8 words"),
        (Source("reference_patch", ()), "no word"),
        (Source("completion_signal", ("...",)), "no word"),
        (Source("canary", ("--",)), "no word"),
    ],
)
def test_a_source_that_yields_nothing_refuses_and_quotes_nothing(source: Source, wrong: str) -> None:
    with pytest.raises(RefusedError) as raised:
        _commit(source, Source("extra", (ANSWER,)))
    assert wrong in str(raised.value)
    assert not any(text and text in str(raised.value) for text in source.texts)


def test_a_canary_that_the_agent_was_given_refuses(tree: Path) -> None:
    with pytest.raises(RefusedError) as raised:
        scanned(tree, read("x"), canary=CANARY, prompt=f"Remember {CANARY}.")
    assert CANARY not in str(raised.value)


def test_one_word_is_enough_of_a_canary(tree: Path) -> None:
    assert findings(tree, read("a ledger, Zanzibar-7F3A91C2, and a pen"), canary=CANARY) == [(1, "canary")]
    assert findings(tree, read("lighthouse9931"), canary="lighthouse9931") == [(1, "canary")]


def test_a_document_of_a_commitment_is_the_commitment(tree: Path) -> None:
    sealed = commit(Seal(SCAN_KEY), subject(tree).sources, subject(tree).allowance)
    back = commitment_of(json.loads(json.dumps(sealed.document())))
    assert back.document() == sealed.document()
    assert back.coverage == sealed.coverage


def _digests(document: dict[str, Any]) -> set[str]:
    return {window["digests"] for window in document["windows"]} | {
        window["prefixes"] for window in document["windows"]
    }


def test_two_runs_two_tasks_and_two_nonces_share_no_digest(tree: Path) -> None:
    keys = [
        KEY.attestation_key(b"n" * 32, "task", "run"),
        KEY.attestation_key(b"n" * 32, "task", "other run"),
        KEY.attestation_key(b"n" * 32, "other task", "run"),
        KEY.attestation_key(b"m" * 32, "task", "run"),
        AuditKey(b"other key" + bytes(23)).attestation_key(b"n" * 32, "task", "run"),
    ]
    source = Source("extra", (ANSWER,))
    seen = [_digests(_commit(source, key=key).document()) for key in keys]
    assert len(set.union(*seen)) == sum(map(len, seen))
    assert _digests(_commit(source, key=keys[0]).document()) == seen[0]


def test_an_unspaced_script_is_matched_by_its_characters() -> None:
    text = "\u6e2f\u306e\u706f\u53f0\u306f\u591c\u660e\u3051\u524d\u306b\u6d88\u3048\u308b"
    sealed = _commit(Source("extra", (text,)))
    assert _found(sealed, f"\u305d\u3057\u3066{text}\u3002") == {"contraband"}
    assert _found(sealed, text[:7]) == set()
    short = _commit(Source("completion_signal", (text[:4],)), Source("extra", (text,)))
    assert short.coverage.short == 1


def test_the_standard_library_holds_no_finding(tree: Path) -> None:
    sealed = commit(Seal(SCAN_KEY), subject(tree).sources, subject(tree).allowance)
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    assert len(files) > 100
    assert not any(_found(sealed, path.read_text("utf-8", "replace")) for path in files)


def test_power_finds_every_encoding_and_no_false_ones(tree: Path) -> None:
    power = measure_power(journal(read("nothing of note")), subject(tree, canary=CANARY), SCAN_KEY)
    assert power.share == 1.0
    assert {each.encoding for each in power.by_encoding} >= {
        "plain",
        "JSON",
        "base64",
        "hex",
        "URL",
        "split over reads",
    }
    assert all(each.planted >= 3 for each in power.by_encoding)
    assert power.null_windows > 100_000
    assert power.null_findings == 0


def test_front_matter_itself_is_answer(tree: Path) -> None:
    assert findings(tree, read(FRONT_MATTER)) == [(1, "contraband")]


def test_no_packaged_task_finds_its_answer_in_the_standard_library(tmp_path: Path) -> None:
    found = load_golden(None).tasks
    assert len(found) > 5
    texts = [
        words_of(path.read_text("utf-8", "replace"))
        for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    ]
    for task in found:
        assert task.workspace is not None
        whole = subject_of(task.as_task(), task, task.workspace)
        seal = Seal(SCAN_KEY)
        sealed = commit(seal, whole.sources, whole.allowance)
        assert sealed.coverage.covered
        matcher, kinds = Matcher(sealed, seal), kinds_of(sealed)
        assert not any(kinds.keys() & set(matcher.candidates(words)) for words in texts), task.id
