"""A leaderboard orders what can be compared, refuses the rest by name, and says how sure it is."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.errors import RefusedError
from bench_pipeline.policies.certainty import leads, rows
from bench_pipeline.policies.entries import Entry, entries_of
from bench_pipeline.policies.leaderboard import leaderboards
from bench_pipeline.reports.leaderboards import leaderboard_notes, plain_lines
from bench_pipeline_tests.policies.orchard import ORCHARD, orchard


def row(harness: str = "a", correct: int = 1, errors: int = 0, **more: object) -> Entry:
    return Entry(**{"attempted": 3, "total": 3, **more}, harness=harness, correct=correct, errors=errors)  # type: ignore[arg-type]


def receipt(harness: str = "a", **more: object) -> Entry:
    known = {
        "calls": 3,
        "call_budget": 3,
        "dataset_sha256": "d",
        "model_config_sha256": "m",
        "state": "completed",
    }
    return row(harness, **{**known, **more})  # type: ignore[arg-type]


def names(*entries: Entry) -> list[str]:
    return [entry.harness for entry in leaderboards(entries)[0].entries]


def test_the_fixture_has_its_published_output() -> None:
    (board,) = leaderboards(entries_of(orchard(4)))
    assert (
        "".join(f"{line}\n" for line in plain_lines(board)) == (ORCHARD / "expected-stdout.txt").read_text()
    )


def test_more_correct_comes_first_then_fewer_errors_then_the_name() -> None:
    ordered = [row("z", 3), row("y", 2, 0), row("b", 2, 1), row("c", 2, 1), row("a", 0, 3)]
    mixed = ordered.copy()
    random.Random(7).shuffle(mixed)
    (board,) = leaderboards(mixed)
    assert list(board.entries) == ordered
    assert board.ranks == (1, 2, 3, 3, 5)


@pytest.mark.parametrize(
    ("other", "field"),
    [
        (receipt("b", dataset_sha256="other"), "dataset_sha256 differs: a d, b other"),
        (receipt("b", model_config_sha256="other"), "model_config_sha256 differs"),
        (receipt("b", call_budget=4), "call_budget differs: a 3, b 4"),
        (receipt("b", total=4), "total differs: a 3, b 4"),
        (row("b"), "receipt differs: a present, b absent"),
        (receipt("a"), "a stands there 2 times"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_field_that_differs(other: Entry, field: str) -> None:
    for entries in ([receipt(), other], [other, receipt()]):
        with pytest.raises(RefusedError) as error:
            leaderboards(entries)
        assert field.split(" ", maxsplit=1)[0] in str(error.value)
    with pytest.raises(RefusedError, match=field):
        leaderboards([receipt(), other])


def test_all_fields_that_differ_are_named_at_once() -> None:
    with pytest.raises(RefusedError, match=r"dataset_sha256 differs.*call_budget differs"):
        leaderboards([receipt(), receipt("b", dataset_sha256="x", call_budget=9)])


@pytest.mark.parametrize(
    "wrong",
    [
        {"attempted": 4},
        {"correct": 2, "errors": 2},
        {"calls": 2},
        {"calls": 4},
        {"correct": -1},
        {"errors": -1},
        {"attempted": -1},
        {"total": 0, "attempted": 0, "correct": 0},
    ],
)
def test_impossible_counters_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(RefusedError):
        leaderboards([receipt(**wrong)])


def test_rows_made_by_hand_rank_by_their_counters() -> None:
    assert names(row("a", 1), row("b", 2)) == ["b", "a"]
    (board,) = leaderboards([row("a", 1)])
    assert list(plain_lines(board)) == [
        "SCOPE -",
        "MODEL -",
        "DATASET -",
        "SCOPED HARNESS COMPARISON",
        "a correct=1/3 attempted=3 errors=0 calls=-/- state=-",
    ]


def test_a_name_cannot_start_a_line_of_its_own_or_act_on_a_terminal() -> None:
    (board,) = leaderboards([row("x\nfake correct=9/9\x1b[2J")])
    assert len(list(plain_lines(board))) == 5
    assert not any("\x1b" in line for line in plain_lines(board))


def test_attempts_are_ranked_each_and_pooled_with_cases_as_the_units() -> None:
    outcomes = [{"a": 1.0, "b": 0.0, "c": 1.0}, {"a": 1.0, "b": 1.0, "c": 0.0}]
    entries = [
        receipt(name, correct=2, attempt=number, outcomes=own)
        for name in ("x", "y")
        for number, own in enumerate(outcomes, 1)
    ]
    boards = leaderboards(entries)
    assert [board.attempt for board in boards] == [1, 2, None]
    pooled = rows(boards[2])[0]
    assert (pooled["correct"], pooled["total"], pooled["calls"], pooled["call_budget"]) == (4, 6, 6, 6)
    assert pooled["rate"] == pytest.approx(2 / 3)
    assert pooled["method"] == "clustered t over tasks n=3"


def test_a_harness_that_is_missing_from_an_attempt_is_named() -> None:
    entries = [receipt("x", attempt=1), receipt("y", attempt=1), receipt("x", attempt=2)]
    with pytest.raises(RefusedError, match="y is missing from attempt 2"):
        leaderboards(entries)


def test_a_pooled_state_is_the_worst_of_its_attempts() -> None:
    entries = [
        receipt(attempt=1),
        receipt(attempt=2, state="cancelled"),
        receipt(attempt=3, state="budget-exhausted"),
    ]
    assert leaderboards(entries)[-1].entries[0].state == "cancelled"


def test_the_rate_is_of_attempted_cases_and_unknown_without_any() -> None:
    (first,) = rows(leaderboards([receipt(attempted=2, correct=1)])[0])
    assert first["rate"] == 0.5
    (none,) = rows(leaderboards([receipt(attempted=0, correct=0, calls=0)])[0])
    assert (none["rate"], none["rate_low"], none["rate_high"], none["method"]) == (None, None, None, None)


@pytest.mark.parametrize(
    ("correct", "low", "high"), [(0, 0.0, 0.277533), (3, 0.107791, 0.603222), (10, 0.722467, 1.0)]
)
def test_the_interval_is_wilsons(correct: int, low: float, high: float) -> None:
    (own,) = rows(leaderboards([row(correct=correct, attempted=10, total=10)])[0])
    assert (own["rate_low"], own["rate_high"]) == (
        pytest.approx(low, abs=1e-6),
        pytest.approx(high, abs=1e-6),
    )


def cases(*correct: int) -> dict[str, float]:
    return {str(number): float(value) for number, value in enumerate(correct)}


def test_a_lead_is_tested_over_the_cases_that_both_attempted() -> None:
    ahead = receipt(
        "x", correct=6, total=8, attempted=8, calls=8, call_budget=8, outcomes=cases(*[1] * 6, 0, 0)
    )
    behind = receipt("y", correct=0, total=8, attempted=7, calls=8, call_budget=8, outcomes=cases(*[0] * 7))
    (lead,) = leads(leaderboards([ahead, behind])[0])
    assert (lead.shared, lead.p_holm) == (7, pytest.approx(0.03125))
    assert lead.distinguishable
    assert lead.uneven


def test_what_a_lead_rests_on_is_said_beside_the_table() -> None:
    (board,) = leaderboards(entries_of(orchard(3)))
    texts = [note.text for note in leaderboard_notes(board, leads(board))]
    assert any(
        "evidence over retry-errors" in text and "3 cases attempted against 2" in text for text in texts
    )
    assert any("not distinguishable" in text for text in texts)


def test_equal_counters_are_no_lead() -> None:
    same = cases(1, 0, 0)
    assert leads(leaderboards([receipt("x", outcomes=same), receipt("y", outcomes=same)])[0]) == []


@given(st.permutations([row("a", 1), row("b", 1), row("c", 2), row("d", 0, 2)]))
def test_the_order_of_the_input_changes_nothing(entries: list[Entry]) -> None:
    assert names(*entries) == ["c", "a", "b", "d"]


def test_entries_without_traces_have_no_test() -> None:
    (board,) = leaderboards([replace(row("a", 1)), row("b", 2)])
    assert [lead.p_holm for lead in leads(board)] == [None]
    assert not [note for note in leaderboard_notes(board, leads(board)) if "distinguishable" in note.text]
