"""When a row is valid, and why not."""

import json
from typing import Any

import pytest

from bench_pipeline.ledgers.parsing import Parser
from bench_pipeline.ledgers.routes import Routes
from bench_pipeline.ledgers.validity import judge
from bench_pipeline_tests.ledgers.scanners import plain_scanning
from bench_pipeline_tests.ledgers.writing import line

COUNTS = {"f2p_passed": 2, "f2p_total": 2, "p2p_passed": 6, "p2p_total": 6}


def judged(text: str) -> dict[str, Any]:
    """The same row read in two ways: exactly, and by the pass over the bytes."""
    block = (text + "\n").encode()
    parsed = [Parser(keep=True, scanning=way).parse(block, 1) for way in (None, plain_scanning())]
    exact, scanned = (judge(one.rows[0], Routes()).table().to_pylist() for one in parsed)
    assert scanned == exact
    row: dict[str, Any]
    (row,) = scanned
    return row


def reason(**fields: Any) -> str | None:
    row = judged(line(**fields))
    assert row["valid"] is (row["invalid_reason"] is None)
    text: str | None = row["invalid_reason"]
    return text


def test_a_row_is_valid_when_it_says_so_or_says_nothing_and_has_a_result() -> None:
    assert reason() is None
    assert reason(valid=None) is None
    assert reason(valid=None, passed=None, f2p=None) is None
    assert reason(**COUNTS) is None


@pytest.mark.parametrize("spelling", ["valid", "valid_for_score", "included_in_score"])
def test_a_row_that_says_that_it_is_not_valid_is_not(spelling: str) -> None:
    assert reason(**{"valid": None, spelling: False}) == "says that it is not valid"
    assert reason(**{"valid": None, spelling: 0}) == "says that it is not valid"


@pytest.mark.parametrize("spelling", ["passed", "resolved", "reward", "reward_binary"])
@pytest.mark.parametrize("value", [True, False, 1, 0, 1.0])
def test_every_spelling_of_the_result_is_read(spelling: str, value: Any) -> None:
    row = judged(line(**{"passed": None, spelling: value}))
    assert row["passed"] is bool(value)
    assert row["valid"]


@pytest.mark.parametrize(
    ("spelling", "field"),
    [
        ("n_input_tokens", "input_tokens"),
        ("n_output_tokens", "output_tokens"),
        ("n_agent_steps", "steps"),
        ("peak_context_tokens", "peak_context"),
    ],
)
def test_every_spelling_of_a_count_is_read(spelling: str, field: str) -> None:
    assert judged(line(**{"input_tokens": None, spelling: 7}))[field] == 7
    assert judged(line(reward_partial=0.25, partial=None))["partial"] == 0.25


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"f2p": 1.01}, "f2p is outside 0..1"),
        ({"partial": -0.1}, "partial is outside 0..1"),
        ({"input_tokens": -1}, "input_tokens is negative"),
        ({"steps": 2.5}, "steps is not a whole number"),
        ({"output_tokens": 10**30}, "output_tokens is out of range"),
        ({"output_tokens": 2**53}, "output_tokens is out of range"),
        ({"peak_context": "12"}, "peak_context is not a number"),
        ({"peak_context": True}, "peak_context is not a number"),
        ({"passed": None, "reward": 0.5}, "passed is neither 0 nor 1"),
        ({"passed": "yes"}, "passed is neither true nor false"),
        ({"valid": "false"}, "valid is neither true nor false"),
        ({"route": 5}, "route is not text"),
        ({"passed": None, "partial": None, "f2p": None}, "has no result"),
        ({"resolved": False}, "two spellings of passed differ"),
        ({"n_input_tokens": 101}, "two spellings of input_tokens differ"),
        ({"valid_for_score": False}, "two spellings of valid differ"),
    ],
)
def test_a_row_is_invalid_for_what_it_says_of_itself(fields: dict[str, Any], expected: str) -> None:
    assert reason(**fields) == expected


def test_two_spellings_that_agree_are_one() -> None:
    assert reason(reward=1, resolved=True, n_input_tokens=100.0, valid_for_score=1) is None


@pytest.mark.parametrize(
    ("counts", "fields", "expected"),
    [
        ({"f2p_total": 0, "f2p_passed": 0}, {}, "passed without a test that had to pass (f2p_total is 0)"),
        ({"f2p_passed": 1}, {"partial": 0.875}, "passed although f2p tests fail"),
        ({"p2p_passed": 5}, {"partial": 0.875}, "passed although p2p tests fail"),
        ({"f2p_passed": 3}, {}, "f2p_passed is more than f2p_total"),
        ({}, {"partial": 0.9}, "partial is not the share of tests that passed"),
        (
            {"p2p_passed": 5},
            {"partial": 0.5, "passed": False},
            "partial is not the share of tests that passed",
        ),
    ],
)
def test_reward_and_counts_that_contradict_each_other_make_a_row_invalid(
    counts: dict[str, int], fields: dict[str, Any], expected: str
) -> None:
    assert reason(**{**COUNTS, **counts, **fields}) == expected


def test_a_failed_trial_whose_counts_say_so_is_valid_with_partial_rounded_as_ledgers_do() -> None:
    assert reason(**{**COUNTS, "f2p_passed": 1, "f2p_total": 3, "passed": False, "partial": 0.7778}) is None


def test_an_invalid_row_keeps_its_route_and_kind() -> None:
    row = judged(line(valid=False))
    assert (row["route"], row["kind"]) == ("npc-agent-local", "FairLocalNpcAgent")


def test_nulls_are_as_if_left_out() -> None:
    text = json.dumps({"route": None, "passed": None, "resolved": True, "steps": None, "valid": None})
    row = judged(text)
    assert (row["kind"], row["passed"], row["steps"], row["valid"]) == ("Other", True, None, True)
