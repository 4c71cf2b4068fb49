"""Which row of an identity counts, whatever came in between and however rows are spread over parts."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench_pipeline.errors import StoreError
from bench_pipeline.store import Store
from bench_pipeline.store import parts as part_files
from bench_pipeline.store.schemas import VERDICT_PARTS

START = datetime(2026, 1, 1, tzinfo=UTC)


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def row(identity: int = 1, *, minutes: int = 0, passed: bool | None = True, **changes: Any) -> dict[str, Any]:
    """A verdict, or with ``passed`` None an execution failure, measured ``minutes`` after the start."""
    failure = passed is None
    return {
        "identity": key(identity),
        "run_key": key(identity + 1000),
        "verify_key": key(7),
        "outcome": "timeout" if failure else "passed" if passed else "failed",
        "outcome_class": "execution_failure" if failure else "verdict",
        "passed": passed,
        "tool_ran": True,
        "measured_at": START + timedelta(minutes=minutes),
        **changes,
    }


def append(store: Store, *rows: dict[str, Any]) -> None:
    store.verdicts.append(VERDICT_PARTS.from_rows(rows))


def only(table: pa.Table) -> dict[str, Any]:
    assert table.num_rows == 1
    result: dict[str, Any] = table.to_pylist()[0]
    return result


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store" if request.param == "local" else f"memory://{tmp_path.name}")


def test_an_identity_without_rows_is_absent_from_the_answer(store: Store) -> None:
    assert store.verdicts.newest([key(1)]).num_rows == 0
    append(store, row(2))
    assert store.verdicts.newest([key(1)]).num_rows == 0
    assert store.verdicts.newest([]).num_rows == 0


def test_a_newer_failure_never_erases_a_success(store: Store) -> None:
    append(store, row(minutes=0, passed=True))
    append(store, row(minutes=5, passed=None))
    found = only(store.verdicts.newest([key(1)]))
    assert (found["outcome"], found["tries"], found["verdict_count"]) == ("passed", 2, 1)
    assert found["failures_since_verdict"] == 1


def test_an_old_failure_never_shadows_a_newer_success(store: Store) -> None:
    append(store, row(minutes=0, passed=None))
    append(store, row(minutes=5, passed=True))
    found = only(store.verdicts.newest([key(1)]))
    assert (found["outcome"], found["tries"], found["failures_since_verdict"]) == ("passed", 2, 0)


def test_the_last_stored_verdict_counts_also_when_the_clock_was_set_back_before_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(store, row(minutes=9, passed=False), row(minutes=9, passed=None))
    # Another process, an hour earlier by its clock.
    clock = part_files._Clock(lambda: time.time_ns() - 3600 * 10**9)
    monkeypatch.setattr(part_files, "_clock", clock)
    append(store, row(minutes=1, passed=True))
    found = only(store.verdicts.newest([key(1)]))
    assert (found["outcome"], found["tries"], found["failures_since_verdict"]) == ("passed", 3, 0)
    with store.lock(store.verdicts.log.lock_name):
        store.verdicts.log.compact()
    assert store.verdicts.history(key(1))["outcome"].to_pylist() == ["failed", "timeout", "passed"]
    assert only(store.verdicts.newest([key(1)]))["outcome"] == "passed"


def test_a_verdict_is_stored_also_when_those_before_it_cannot_be_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(store, row(passed=False))
    with monkeypatch.context() as broken:
        broken.setattr(store.verdicts.log, "find", _unreadable)
        append(store, row(passed=True))
    assert only(store.verdicts.newest([key(1)]))["outcome"] == "passed"


def _unreadable(*_: object) -> pa.Table:
    raise StoreError("reading verdicts", "Input/output error")


def test_of_many_verdicts_the_last_stored_counts_also_after_compaction(
    store: Store,
) -> None:
    for number in range(40):
        append(store, row(passed=number % 2 == 0, run_id=f"run-{number}"))
    assert only(store.verdicts.newest([key(1)]))["run_id"] == "run-39"
    with store.lock(store.verdicts.log.lock_name):
        store.verdicts.log.compact()
    assert only(store.verdicts.newest([key(1)]))["run_id"] == "run-39"


def test_failures_alone_are_counted_and_the_newest_is_shown(store: Store) -> None:
    for minute, reason in enumerate(["first", "second", "third"]):
        append(store, row(minutes=minute, passed=None, reason=reason))
    found = only(store.verdicts.newest([key(1)]))
    assert (found["reason"], found["tries"], found["failures_since_verdict"]) == ("third", 3, 3)
    assert found["verdict_count"] == 0


def test_the_answer_follows_the_order_of_the_question_and_repeats_nothing(store: Store) -> None:
    append(store, *(row(number) for number in range(10)))
    answer = store.verdicts.newest([key(7), key(3), key(7), key(99), key(0)])
    assert answer["identity"].to_pylist() == [key(7), key(3), key(0)]


def test_columns_can_be_narrowed_and_a_misspelt_one_is_an_error(store: Store) -> None:
    append(store, row())
    names = store.verdicts.newest([key(1)], columns=["outcome"]).schema.names
    assert names == ["outcome", "tries", "verdict_count", "failures_since_verdict"]
    with pytest.raises(KeyError, match="outcme"):
        store.verdicts.newest([key(1)], columns=["outcme"])


def test_history_keeps_every_try_oldest_first(store: Store) -> None:
    append(store, row(minutes=3, passed=None), row(identity=2))
    append(store, row(minutes=1, passed=True))
    assert store.verdicts.history(key(1).hex())["outcome"].to_pylist() == ["timeout", "passed"]
    assert store.verdicts.history(key(1)).schema.names == VERDICT_PARTS.schema.names


@pytest.mark.parametrize("identity", ["AB" * 32, "ab" * 31, "zz" * 32, b"short", ""])
def test_an_identity_that_is_no_digest_is_refused(store: Store, identity: str | bytes) -> None:
    with pytest.raises(ValueError, match="hex"):
        store.verdicts.history(identity)


def test_what_it_takes_to_price_failed_tries_comes_back_by_identity_then_as_it_was_stored(
    store: Store,
) -> None:
    append(store, row(2, minutes=4, tokens_input=40), row(1, minutes=2, passed=None, tokens_input=20))
    append(store, row(1, minutes=1, passed=None, tokens_input=10, cost_reported_usd=0.5, cost_is_real=False))
    append(store, row(1, minutes=3, tokens_input=30, tool_ran=False))
    priced = store.verdicts.priced_rows([key(2), key(1)])
    assert priced["tokens_input"].to_pylist() == [40, 20, 10, 30]
    assert priced["tool_ran"].to_pylist() == [True, True, True, False]
    assert priced["cost_reported_usd"].to_pylist() == [None, None, 0.5, None]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"duration_s": float("nan")}, "duration_s.*NaN"),
        ({"cost_reported_usd": float("inf")}, "cost_reported_usd.*infinity"),
        ({"phases": {"tool": float("nan")}}, "phases.*NaN"),
        ({"outcome_class": "not_attempted"}, "neither verdict nor execution_failure"),
        ({"outcome_class": None}, "neither verdict nor execution_failure"),
        ({"passed": None}, "whether it passed"),
        ({"measured_at": None}, "measured_at"),
        ({"tool_ran": None}, "tool_ran"),
        ({"run_key": None}, "run_key"),
    ],
)
def test_rows_that_break_a_rule_are_refused_and_none_is_stored(store: Store, changes: Any, says: str) -> None:
    with pytest.raises(StoreError, match=says):
        append(store, row(2), row(1) | changes)
    assert store.verdicts.newest([key(1), key(2)]).num_rows == 0


def test_a_column_that_is_none_is_refused() -> None:
    with pytest.raises(KeyError, match="cost_usd"):
        VERDICT_PARTS.from_rows([row(cost_usd=1.0)])


def test_hostile_text_is_stored_and_null_differs_from_an_empty_string(store: Store) -> None:
    hostile = "<script>\x1b[31m\u202e\x00\ud800\u2028'\""
    append(
        store, row(1, reason=hostile, artifacts={"a\ud800": "b\x00"}), row(2, reason=""), row(3, reason=None)
    )
    reasons = store.verdicts.newest([key(1), key(2), key(3)])["reason"].to_pylist()
    assert reasons == ["<script>\x1b[31m\u202e\u2400\ufffd\u2028'\"", "", None]
    assert store.verdicts.history(key(1))["artifacts"].to_pylist() == [[("a\ufffd", "b\u2400")]]


def naive(rows: list[dict[str, Any]]) -> dict[bytes, tuple[str, int, int, int]]:
    """Identity -> run that counts, tries, verdicts, failures since: by the rules, one row at a time."""
    answer = {}
    for identity in {row["identity"] for row in rows}:
        mine = [(at, row) for at, row in enumerate(rows) if row["identity"] == identity]
        verdicts = [entry for entry in mine if entry[1]["outcome_class"] == "verdict"]
        failures = [entry for entry in mine if entry[1]["outcome_class"] != "verdict"]
        best = (verdicts or failures)[-1]
        since = [entry for entry in failures if not verdicts or entry[0] > best[0]]
        answer[identity] = (best[1]["run_id"], len(mine), len(verdicts), len(since))
    return answer


tries = st.tuples(st.integers(0, 4), st.integers(0, 3), st.sampled_from([True, False, None]))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.lists(tries, min_size=1, max_size=4), max_size=20), st.booleans())
def test_any_rows_in_any_parts_give_what_the_rules_say(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[tuple[int, int, bool | None]]], compacted: bool
) -> None:
    store = Store.open(f"memory://{tmp_path_factory.mktemp('any').name}")
    stored = []
    for number, part in enumerate(parts):
        rows = [
            row(identity, minutes=minutes, passed=passed, run_id=f"{number}-{at}")
            for at, (identity, minutes, passed) in enumerate(part)
        ]
        append(store, *rows)
        stored += rows
    if compacted:
        store.verdicts.log.compact()
    found = store.verdicts.newest([key(identity) for identity in range(5)])
    names = ["run_id", "tries", "verdict_count", "failures_since_verdict"]
    answer = {entry["identity"]: tuple(entry[name] for name in names) for entry in found.to_pylist()}
    assert answer == naive(stored)
