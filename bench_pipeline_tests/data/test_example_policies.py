"""The example's comparison of policies: large enough, and with the leaderboard that its tour tells."""

from pathlib import Path

from bench_pipeline.policies.certainty import leads
from bench_pipeline.policies.comparing import run_attempt
from bench_pipeline.policies.comparison import load_comparisons
from bench_pipeline.policies.entries import entries_of
from bench_pipeline.policies.leaderboard import leaderboards
from bench_pipeline.policies.recordings import read_recording
from bench_pipeline.project import find_project

DATA = Path(__file__).resolve().parents[2] / "data"


def test_the_comparison_has_the_leaderboard_that_the_tour_tells() -> None:
    comparisons, problems = load_comparisons(find_project(DATA))
    assert problems == []
    (comparison,) = comparisons
    assert len(comparison.cases.cases) == 50
    attempt = run_attempt(comparison.cases, comparison.open_model(None), comparison.terms, 1)
    (board,) = leaderboards(entries_of(attempt))
    assert [(entry.harness, entry.correct, entry.attempted, entry.state) for entry in board.entries] == [
        ("evidence", 36, 50, "completed"),
        ("retry-errors", 16, 49, "budget-exhausted"),
        ("baseline", 15, 50, "completed"),
    ]
    told_apart = {(lead.above.harness, lead.below.harness): lead.distinguishable for lead in leads(board)}
    assert told_apart == {
        ("evidence", "retry-errors"): True,
        ("evidence", "baseline"): True,
        ("retry-errors", "baseline"): False,
    }


def test_every_recorded_answer_is_to_a_prompt_that_some_policy_sends() -> None:
    (comparison,), _ = load_comparisons(find_project(DATA))
    sent = {policy.prompt(case) for policy in comparison.terms.policies for case in comparison.cases.cases}
    recording = read_recording(DATA / "policies" / "archive-desk.recording.json")
    assert set(recording.shared or {}) == sent
