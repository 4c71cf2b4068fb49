"""Blinding, the rubric and the report: the coin of the rule, mirrored verdicts, exact counts."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.errors import DocumentError, RefusedError
from bench_pipeline.judging import Folder, PairVerdict, Report, folder_of, judge_by_rubric, load_folder
from bench_pipeline.judging.blinding import side_of, swapped
from bench_pipeline.judging.rubric import RULES, by_rubric
from bench_pipeline.scenarios import CellResult, write_cell
from bench_pipeline_tests.scenarios.making import cell

MIRROR = {"left": "right", "right": "left", "tie": "tie"}
CELLS = st.builds(
    cell,
    scenario=st.sampled_from("abcdefgh"),
    passed=st.booleans(),
    missing_evidence=st.lists(st.just("x"), max_size=2).map(tuple),
    winning_artifact=st.none() | st.text(max_size=3),
    steps=st.integers(0, 3),
)


def _folder(label: str, *cells: CellResult) -> Folder:
    return folder_of(label, [(f"{number}.json", one) for number, one in enumerate(cells)], label)


FOLDERS = st.lists(CELLS, unique_by=lambda one: one.scenario, max_size=8).map(
    lambda cells: _folder("f", *cells)
)


@given(st.integers(0, 2**40), st.text(max_size=20))
def test_the_coin_is_the_lowest_bit_of_the_digest_of_seed_nul_scenario(seed: int, scenario: str) -> None:
    digest = hashlib.sha256(str(seed).encode() + b"\0" + scenario.encode()).hexdigest()
    assert swapped(seed, scenario) == bool(int(digest, 16) & 1)


def test_both_faces_of_the_coin_come_up() -> None:
    assert {swapped(0, str(number)) for number in range(20)} == {True, False}


def test_a_verdict_on_slots_is_mapped_back() -> None:
    assert [side_of(slot, swapped=flip) for slot in ("A", "B", "tie") for flip in (False, True)] == [
        "left", "right", "right", "left", "tie", "tie",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("better", "worse", "rule"),
    [
        (cell(passed=True, steps=9), cell(passed=False, winning_artifact="long"), "passed"),
        (
            cell(missing_evidence=("a",)),
            cell(missing_evidence=("a", "b"), winning_artifact="xx"),
            "missing_evidence",
        ),
        (cell(winning_artifact="ab", steps=9), cell(winning_artifact="a", steps=1), "artifact_length"),
        (cell(winning_artifact="a"), cell(winning_artifact=None), "artifact_length"),
        (cell(winning_artifact="éé"), cell(winning_artifact="\U0001f600"), "artifact_length"),
        (cell(steps=1), cell(steps=2), "steps"),
    ],
)
def test_the_first_difference_decides(better: CellResult, worse: CellResult, rule: str) -> None:
    assert by_rubric(better, worse) == ("A", rule)
    assert by_rubric(worse, better) == ("B", rule)


def test_no_artifact_and_an_empty_one_are_alike_and_nothing_else_counts() -> None:
    one, other = cell(winning_artifact=None, seconds=1), cell(winning_artifact="", seconds=9, total_tokens=5)
    assert by_rubric(one, other) == ("tie", "tie")


@given(FOLDERS, FOLDERS, st.integers(0, 999), st.integers(0, 999))
def test_no_seed_changes_an_outcome(left: Folder, right: Folder, seed: int, other: int) -> None:
    one, two = judge_by_rubric(left, right, seed), judge_by_rubric(left, right, other)
    assert [(item.verdict, item.rule) for item in one.verdicts] == [
        (item.verdict, item.rule) for item in two.verdicts
    ]
    assert one.left_winrate == two.left_winrate


@given(FOLDERS, FOLDERS, st.integers(0, 999))
def test_swapping_the_folders_mirrors_every_verdict(left: Folder, right: Folder, seed: int) -> None:
    one, two = judge_by_rubric(left, right, seed), judge_by_rubric(right, left, seed)
    assert [MIRROR[item.verdict] for item in one.verdicts] == [item.verdict for item in two.verdicts]
    assert [item.rule for item in one.verdicts] == [item.rule for item in two.verdicts]
    assert one.left_winrate is not None
    assert two.left_winrate is not None
    assert one.left_winrate + two.left_winrate == pytest.approx(1)
    assert {item.rule for item in one.verdicts} <= set(RULES)


@given(FOLDERS, FOLDERS)
def test_counts_add_up_and_every_scenario_is_paired_or_listed(left: Folder, right: Folder) -> None:
    report = judge_by_rubric(left, right)
    assert report.left_wins + report.right_wins + report.ties == report.pairs
    assert [item.scenario for item in report.verdicts] == sorted(left.cells.keys() & right.cells.keys())
    assert set(report.left_only) == left.cells.keys() - right.cells.keys()
    assert set(report.right_only) == right.cells.keys() - left.cells.keys()


def _report(*verdicts: str) -> Report:
    pairs = tuple(PairVerdict(str(number), verdict, False, "x") for number, verdict in enumerate(verdicts))  # type: ignore[arg-type]
    return Report("l", "r", "rubric", 0, pairs)


def test_one_win_three_losses_and_a_tie_are_a_win_rate_of_three_tenths() -> None:
    assert _report("left", "right", "right", "right", "tie").left_winrate == 0.3


def test_no_pairs_are_exactly_a_half_and_no_votes_are_unknown() -> None:
    assert _report().left_winrate == 0.5
    assert _report("no_vote").left_winrate is None
    assert _report("no_vote").interval is None
    assert _report("left", "no_vote").left_winrate == 1.0


@given(st.lists(st.sampled_from(["left", "right", "tie"]), min_size=1, max_size=12))
def test_the_interval_holds_the_rate_and_mirrors(verdicts: list[str]) -> None:
    report, mirrored = _report(*verdicts), _report(*(MIRROR[verdict] for verdict in verdicts))
    assert report.interval is not None
    assert mirrored.interval is not None
    assert report.left_winrate is not None
    assert 0 <= report.interval.low <= report.left_winrate <= report.interval.high <= 1
    assert report.interval.low == pytest.approx(1 - mirrored.interval.high)


def test_two_cells_of_one_scenario_are_refused_by_name(tmp_path: Path) -> None:
    for label in ("a", "b"):
        write_cell(tmp_path, cell(cell=label))
    with pytest.raises(RefusedError, match=r"fix-the-sum.a.json and fix-the-sum.b.json"):
        load_folder(tmp_path)


def test_one_attempt_of_several_can_be_chosen(tmp_path: Path) -> None:
    for attempt in (1, 2):
        write_cell(tmp_path, cell(cell="a", attempt=attempt, steps=attempt))
    with pytest.raises(RefusedError, match="--attempt"):
        load_folder(tmp_path)
    assert load_folder(tmp_path, 2).cells["fix the sum"].steps == 2


@pytest.mark.parametrize(
    ("field", "one", "other"), [("scenario_sha256", "a", "b"), ("max_steps", 1, 2), ("max_seconds", 1, 2)]
)
def test_cells_under_different_terms_are_refused_by_name(field: str, one: object, other: object) -> None:
    with pytest.raises(RefusedError, match=rf'"fix the sum" \(0.json, 0.json\): {field}'):
        judge_by_rubric(_folder("l", cell(**{field: one})), _folder("r", cell(**{field: other})))
    # An older file does not say.
    judge_by_rubric(_folder("l", cell(**{field: one})), _folder("r", cell(**{field: None})))


def test_unreadable_files_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_text("{")
    with pytest.raises(DocumentError, match=r"cut\.json"):
        load_folder(tmp_path)
