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
    for rule, one, other in (
        ("passed", a.passed, b.passed),
        ("missing_evidence", -len(a.missing_evidence), -len(b.missing_evidence)),
        ("artifact_length", len(a.winning_artifact or ""), len(b.winning_artifact or "")),
        ("steps", -a.steps, -b.steps),
    ):
        if one != other:
            return ("A" if one > other else "B"), rule
    return "tie", "tie"
