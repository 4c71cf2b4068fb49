"""The rubric: a judge without a model, that sees two slots and decides by the first difference.

Antisymmetric by construction: each rule compares one number of either slot, so no seed changes an outcome and swapping
the slots mirrors it.
"""

from bench_pipeline.judging.blinding import Slot
from bench_pipeline.scenarios.cell_result import CellResult

RULES = ("passed", "missing_evidence", "artifact_length", "steps", "tie")


def by_rubric(a: CellResult, b: CellResult) -> tuple[Slot, str]:
    """The better slot and the rule that decided.

    Passed beats failed; then fewer missing items; then the longer artifact, in code points, none being 0; then fewer
    steps; else a tie.
    """
    ours, theirs = _merits(a), _merits(b)
    for rule, one, other in zip(RULES, ours, theirs, strict=False):
        if one != other:
            return ("A" if one > other else "B"), rule
    return "tie", "tie"


def _merits(cell: CellResult) -> tuple[int, int, int, int]:
    """What counts of a cell, in the order of the rules; more is better."""
    return cell.passed, -len(cell.missing_evidence), len(cell.winning_artifact or ""), -cell.steps
