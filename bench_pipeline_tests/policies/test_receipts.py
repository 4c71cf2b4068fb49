"""Receipts come out byte for byte, are private and whole, and are distrusted when they are read back."""

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench_pipeline.errors import BenchError
from bench_pipeline.policies.entries import entries_of
from bench_pipeline.policies.inputs import InputError
from bench_pipeline.policies.loading import read_entries
from bench_pipeline.policies.receipts import receipt_text, write_private
from bench_pipeline_tests.policies.orchard import ORCHARD, orchard, written

EXPECTED = (ORCHARD / "expected-receipt.json").read_text(encoding="utf-8")


def test_the_fixture_has_its_published_receipt_byte_for_byte() -> None:
    assert receipt_text(orchard(4)) == EXPECTED


def test_version_2_adds_members_and_changes_none() -> None:
    one, two = json.loads(EXPECTED), json.loads(receipt_text(orchard(4), 2))
    assert (two["schema_version"], two["attempt"], two["timeout_s"]) == (2, 1, 30)
    for before, after in zip(one["results"], two["results"], strict=True):
        traces = zip(before.pop("Trace"), after.pop("Trace"), strict=True)
        assert before.items() <= after.items()
        assert set(after) - set(before) == {"Policy", "StartedAt", "DurationSeconds"}
        for call, fuller in traces:
            assert call.items() <= fuller.items()


def test_version_2_says_why_a_call_failed_and_leaves_unknown_what_nobody_measured() -> None:
    failed = json.loads(receipt_text(orchard(4), 2))["results"][0]["Trace"][1]
    assert (failed["Failure"], failed["LatencySeconds"], failed["TokensInput"]) == ("transient", None, None)


def test_a_file_is_readable_by_its_owner_only_and_replaces_an_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "receipt.json"
    path.write_text("earlier")
    path.chmod(0o644)
    write_private(path, "later")
    assert path.read_text() == "later"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_is_replaced_and_what_it_points_to_is_left_alone(tmp_path: Path) -> None:
    target, path = tmp_path / "target", tmp_path / "receipt.json"
    target.write_text("mine")
    path.symlink_to(target)
    write_private(path, "receipt")
    assert target.read_text() == "mine"
    assert not path.is_symlink()


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="No such file or directory"):
        write_private(tmp_path / "absent" / "receipt.json", "x")
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(BenchError, match="Is a directory"):
        write_private(folder, "x")
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("budget", range(6))
def test_what_was_written_is_read_back(tmp_path: Path, budget: int, version: int) -> None:
    path = tmp_path / "receipt.json"
    path.write_text(receipt_text(orchard(budget), version), encoding="utf-8")
    read, own = read_entries(path), entries_of(orchard(budget))
    if version == 1:
        assert [entry.attempt for entry in read] == [None] * 3
    assert [{**vars(entry), "attempt": 1} for entry in read] == [vars(entry) for entry in own]


Change = Callable[[dict[str, Any]], object]


def changed(path: Path, change: Change) -> InputError:
    receipt = json.loads(EXPECTED)
    change(receipt)
    with pytest.raises(InputError) as error:
        read_entries(written(path, receipt))
    return error.value


def counter(name: str, value: object, result: int = 0) -> Change:
    return lambda receipt: receipt["results"][result].__setitem__(name, value)


def in_trace(name: str, value: object, result: int = 0, call: int = 0) -> Change:
    return lambda receipt: receipt["results"][result]["Trace"][call].__setitem__(name, value)


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        (counter("Correct", 2), "Correct", "is 2, and the trace has 1"),
        (counter("Errors", 0), "Errors", "is 0, and the trace has 1"),
        (counter("Calls", 4), "Calls", "is 4, and the trace has 3"),
        (counter("Attempted", 2), "State", "is completed, with 2 of 3"),
        (counter("Attempted", 4), "Attempted", "more than the 3 cases"),
        (counter("Correct", -1), "Correct", "below 0"),
        (counter("Correct", 3), "Correct", "are more than the 3 attempted"),
        (counter("Calls", 2), "Calls", "fewer than the 3 attempted"),
        (counter("CallBudget", 2), "Calls", "more than the budget of 2"),
        (counter("State", "budget-exhausted"), "State", "3 of 4 calls made"),
        (counter("State", ""), "Harness", "one of them is missing"),
        (counter("Trace", None), "Harness", "one of them is missing"),
        (counter("Trace", []), "Calls", "the trace has 0"),
        (
            counter("ModelConfigSHA256", "0" * 64),
            "ModelConfigSHA256",
            "is not the digest of the receipt's model",
        ),
        (in_trace("Correct", True), "Correct", "the trace has 2"),
        (in_trace("Correct", True, call=1), "Trace", "failed and is correct"),
        (in_trace("Attempt", 2), "Trace", "from 1 upwards"),
        (in_trace("CaseID", "orchard-price"), "Trace", "comes back to a case"),
        (in_trace("Failed", False, result=1, call=1), "Trace", "after a call that did not fail"),
    ],
)
def test_counters_that_do_not_follow_from_the_trace_are_refused(
    tmp_path: Path, change: Change, field: str, said: str
) -> None:
    error = changed(tmp_path / "receipt.json", change)
    assert error.reason == "invalid"
    assert any(said in problem.message and problem.field.endswith(field) for problem in error.problems), str(
        error
    )


@pytest.mark.parametrize(
    "change",
    [
        counter("Correct", "1"),
        counter("Correct", 1.0),
        counter("State", "done"),
        counter("More", 1),
        counter("Harness", ""),
        lambda receipt: receipt.__setitem__("schema_version", 3),
        lambda receipt: receipt.__setitem__("results", []),
        lambda receipt: receipt.pop("model"),
    ],
)
def test_what_is_no_receipt_does_not_decode(tmp_path: Path, change: Change) -> None:
    assert changed(tmp_path / "receipt.json", change).reason == "decode"


def test_a_late_answer_that_was_counted_as_an_error_is_accepted_in_a_cancelled_receipt(
    tmp_path: Path,
) -> None:
    receipt = json.loads(EXPECTED)
    row = receipt["results"][2]
    row.update(State="cancelled", Errors=1, Correct=2)
    assert read_entries(written(tmp_path / "receipt.json", receipt))[2].errors == 1
    row.update(State="completed")
    with pytest.raises(InputError):
        read_entries(written(tmp_path / "receipt.json", receipt))
