"""Leaderboards of policies as lines, rows of a table for people, and the sentences beside it.

What belongs here: wording. What does not: the order and the statistics (``policies``), printing.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from bench_pipeline.reports.escaping import one_line
from bench_pipeline.reports.text import UNKNOWN, Note, percent, rate_text

if TYPE_CHECKING:
    from bench_pipeline.policies.certainty import Lead
    from bench_pipeline.policies.leaderboard import Leaderboard


def plain_lines(board: "Leaderboard") -> Iterator[str]:
    """The plain form, a line each."""
    first = board.entries[0]
    yield f"SCOPE {_text(first.scope)}"
    yield f"MODEL {_text(first.model)}"
    yield f"DATASET {_text(first.dataset_sha256)}"
    yield "SCOPED HARNESS COMPARISON"
    for entry in board.entries:
        yield (
            f"{one_line(entry.harness)} correct={entry.correct}/{entry.total} attempted={entry.attempted} "
            f"errors={entry.errors} calls={_text(entry.calls)}/{_text(entry.call_budget)} state={_text(entry.state)}"
        )


def _text(value: object) -> str:
    return UNKNOWN if value is None else one_line(str(value))


def leaderboard_display(row: Mapping[str, Any]) -> dict[str, str]:
    """A row of policy_leaderboard as the columns of a table for people."""
    return {
        "rank": str(row["rank"]),
        "harness": row["harness"],
        "correct": f"{row['correct']}/{row['total']}",
        "coverage": f"{percent(row['attempted'] / row['total'])} ({row['attempted']}/{row['total']})",
        "rate of attempted": rate_text(row["rate"], row["rate_low"], row["rate_high"]),
        "errors": str(row["errors"]),
        "calls": f"{_text(row['calls'])}/{_text(row['call_budget'])}",
        "state": _text(row["state"]),
    }


def leaderboard_notes(board: "Leaderboard", leads: "list[Lead]") -> Iterator[Note]:
    """What has to be said beside a leaderboard: leads on fewer cases, and leads that the cases do not bear out."""
    if board.pooled:
        attempts = board.entries[0].attempts
        text = f"{attempts} attempts: a case counts as the mean of its attempts, and the cases are the units"
        yield Note("over", text)
    for lead in leads:
        above, below = lead.above, lead.below
        if lead.uneven:
            attempted = f"{above.attempted} cases attempted against {below.attempted}"
            yield Note("warning", f"the lead of {above.harness} over {below.harness} rests on {attempted}")
        if lead.p_holm is not None and not lead.distinguishable:
            pair = f"{above.harness} and {below.harness} are not distinguishable"
            test = f"{lead.method}, p={lead.p_holm:.3g} after Holm"
            yield Note("warning", f"{pair} over {lead.shared} shared cases ({test})")
