"""Tournaments: published strengths, seeded intervals, cycles, and no order that matters."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_pipeline.judging import Folder, PairVerdict, Report, folder_of, judge_by_rubric
from bench_pipeline.judging.report import Verdict
from bench_pipeline.judging.tournament import Tournament, hold_tournament
from bench_pipeline_tests.scenarios.making import cell

CYCLE = {("A", "B"): (7, 3, 0), ("B", "C"): (6, 4, 0), ("A", "C"): (8, 2, 0)}
PAPER = {("A", "B"): (7, 3, 0), ("B", "C"): (6, 4, 0), ("A", "C"): (2, 8, 0)}


def _held(
    counts: dict[tuple[str, str], tuple[int, int, int]], *, seed: int = 0, resamples: int = 500
) -> Tournament:
    """A tournament with these wins, losses and ties of each pair, one scenario after another."""
    labels = sorted({label for pair in counts for label in pair})

    def judge(left: Folder, right: Folder) -> Report:
        won, lost, tied = counts[left.label, right.label]
        said: list[Verdict] = ["left"] * won + ["right"] * lost + ["tie"] * tied
        # Spread over the scenarios, so that resamples differ.
        verdicts = (PairVerdict(f"{number:03}", verdict, False, "x") for number, verdict in enumerate(said))
        return Report(left.label, right.label, "x", seed, tuple(verdicts))

    return hold_tournament([Folder(label, {}, {}) for label in labels], judge, seed=seed, resamples=resamples)


def test_strengths_are_the_published_ones() -> None:
    held = _held(CYCLE)
    assert [(one.cell, one.rank, round(one.strength or 0, 4)) for one in held.standings] == [
        ("A", 1, 0.7406),
        ("B", 2, -0.1491),
        ("C", 3, -0.5915),
    ]
    assert [(one.wins, one.losses, one.ties) for one in held.standings] == [
        (15, 5, 0),
        (9, 11, 0),
        (6, 14, 0),
    ]
    assert held.cycles == ()


def test_intervals_hold_the_strengths_and_name_their_method_and_seed() -> None:
    counts = {pair: (won * 4, lost * 4, tied) for pair, (won, lost, tied) in CYCLE.items()}
    held = _held(counts, seed=5)
    assert held.interval_method.startswith("bootstrap of 40 scenarios, 500 resamples, seed 5")
    for one in held.standings:
        assert one.low is not None
        assert one.high is not None
        assert one.strength is not None
        assert one.low < one.strength < one.high
    assert held == _held(counts, seed=5)
    assert held != _held(counts, seed=6)


def test_a_side_that_never_lost_is_not_identified_and_has_no_rank() -> None:
    held = _held({("A", "B"): (3, 0, 0), ("A", "C"): (3, 0, 0), ("B", "C"): (2, 1, 0)})
    assert held.method.startswith("not identified")
    assert all(one.strength is one.low is one.high is one.rank is None for one in held.standings)


def test_too_few_scenarios_give_no_interval_rather_than_a_narrow_one() -> None:
    held = _held({("A", "B"): (2, 1, 0), ("A", "C"): (2, 1, 0), ("B", "C"): (2, 1, 0)})
    assert held.standings[0].strength is not None
    assert held.standings[0].low is None
    assert "resamples do not identify" in held.interval_method


def test_a_cycle_is_told_once_from_its_first_side() -> None:
    assert _held(PAPER).cycles == (("A", "B", "C"),)


def test_equal_strengths_share_a_rank() -> None:
    held = _held({("A", "B"): (2, 2, 1), ("A", "C"): (3, 1, 0), ("B", "C"): (3, 1, 0)})
    assert [(one.cell, one.rank) for one in held.standings] == [("A", 1), ("B", 1), ("C", 3)]


FOLDERS = st.lists(
    st.lists(st.tuples(st.booleans(), st.integers(0, 2)), min_size=2, max_size=6), min_size=3, max_size=4
)


@settings(max_examples=25, deadline=None)
@given(FOLDERS, st.randoms())
def test_the_order_of_the_folders_changes_nothing(
    sides: list[list[tuple[bool, int]]], random: object
) -> None:
    folders = [
        folder_of(
            f"side {number}",
            [
                (f"{place}.json", cell(f"s{place}", passed, steps=steps))
                for place, (passed, steps) in enumerate(cells)
            ],
            "x",
        )
        for number, cells in enumerate(sides)
    ]
    one = hold_tournament(folders, judge_by_rubric, seed=0, resamples=50)
    random.shuffle(folders)  # type: ignore[attr-defined]
    assert hold_tournament(folders, judge_by_rubric, seed=0, resamples=50) == one
    assert one.document()["cells"]


@pytest.mark.parametrize("count", [3, 5])
def test_every_pair_is_judged_once(count: int) -> None:
    folders = [folder_of(str(number), [("a.json", cell(steps=number))], "x") for number in range(count)]
    held = hold_tournament(folders, judge_by_rubric, seed=0, resamples=10)
    assert len({(report.left, report.right) for report in held.reports}) == count * (count - 1) // 2
