"""A report's document put into sections, one module for each part of it.

What belongs here: wording, order, and what is left out of a page that has to stay readable. What does not: the numbers
(``pipeline.reporting``), and how sections are printed (``reports.page``).
"""

from collections.abc import Mapping
from typing import Any

from bench_pipeline.reports.blocks import Notes, Section
from bench_pipeline.reports.sections.changes import change_section, facts
from bench_pipeline.reports.sections.evaluations import outcome_section, ranking_section
from bench_pipeline.reports.sections.gaps import gap_section
from bench_pipeline.reports.sections.golden import failure_section, score_section
from bench_pipeline.reports.sections.judges import judge_section
from bench_pipeline.reports.sections.ledgers import ledger_section
from bench_pipeline.reports.sections.policies import policy_section

_HOW = (
    "Unknown is never 0: where nobody measured a number, it says so.",
    "A rate stands with its 95 % interval and with what it is out of.",
    "An execution failure (an API was down, a sandbox broke) measured nothing, so it is no failed task.",
    "A rank band is where a setup's rank lies when the tasks are drawn anew, without correction.",
    "Claim that two setups differ by the test that is named, after Holm's correction, not by their bands.",
    "A setup is on the front when no other costs no more and passes no less, one of the two strictly.",
    "Rows of ledgers were measured by others; nothing is summed, averaged or ranked over several kinds of routes.",
)


def sections(document: Mapping[str, Any]) -> list[Section]:
    """All sections of a report, in order; a lane that the project does not use has none."""
    found = (
        change_section(document),
        ranking_section(document),
        outcome_section(document),
        score_section(document),
        failure_section(document),
        policy_section(document),
        judge_section(document),
        ledger_section(document),
        gap_section(document),
        Section("How to read this", "how", [Notes(_HOW)]),
    )
    return [section for section in found if section is not None]


__all__ = ["facts", "sections"]
