"""The three policies: what each sends for a case, and how often it may call."""

from dataclasses import dataclass
from typing import Literal

from bench_pipeline.policies.cases import Case

PolicyName = Literal["baseline", "retry-errors", "evidence"]


@dataclass(frozen=True)
class Policy:
    """One way to ask: how many calls a case may take, and whether its evidence is shown.

    A policy never sees the expected answer; a second call follows a failed one only.
    """

    name: PolicyName
    tries: int = 1
    shows_evidence: bool = False

    def prompt(self, case: Case) -> str:
        """What is sent for a case."""
        if self.shows_evidence and case.evidence:
            return f"{case.prompt}\n\nEvidence:\n" + "\n".join(case.evidence)
        return case.prompt


POLICIES = (Policy("baseline"), Policy("retry-errors", tries=2), Policy("evidence", shows_evidence=True))
