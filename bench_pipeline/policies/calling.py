"""The call loop: one policy over the cases in their order, under a call budget and a deadline.

What belongs here: what is called, in which order, and how it is counted. What does not: where answers come from
(``models``), several policies (``comparing``). A call is counted when it is made, and a failed one counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from bench_pipeline.policies.answers import is_correct
from bench_pipeline.policies.cases import Case
from bench_pipeline.policies.models import Ask, Reply
from bench_pipeline.policies.policy import Policy

State = Literal["completed", "budget-exhausted", "cancelled"]


class Call(NamedTuple):
    """One call of a case: what was sent, what came back, and what it was worth."""

    case_id: str
    number: int
    prompt: str
    answer: str
    failure: str | None
    correct: bool
    started_at: datetime | None = None
    latency_s: float | None = None
    tokens_input: int | None = None
    tokens_output: int | None = None


@dataclass
class Tally:
    """One policy's counters and calls. Cases that were not attempted stay in the total."""

    total: int
    correct: int = 0
    attempted: int = 0
    errors: int = 0
    state: State = "completed"
    calls: list[Call] = field(default_factory=list)


def prompts_ahead(policy: Policy, cases: Sequence[Case], budget: int) -> list[str]:
    """The prompts that a policy will send, in order, as far as no answer can change them."""
    return [policy.prompt(case) for case in cases[:budget]] if policy.tries == 1 else []


def run_policy(policy: Policy, cases: Sequence[Case], budget: int, ask: Ask) -> Tally:
    """Ask every case until the budget is spent or ``ask`` says that the time is over.

    A late reply ends the run too; when calls overlap, those that were begun in time are counted all the same.
    """
    tally = Tally(len(cases))
    for case in cases:
        if len(tally.calls) >= budget:
            if tally.state == "completed":
                tally.state = "budget-exhausted"
            break
        last = _ask_case(policy, case, budget, ask, tally)
        if last is None:
            break
        tally.attempted += 1
        tally.errors += last.failure is not None
        tally.correct += last.correct
    return tally


def _ask_case(policy: Policy, case: Case, budget: int, ask: Ask, tally: Tally) -> Call | None:
    """The last call of a case; None when the time was over before the first."""
    prompt = policy.prompt(case)
    last = None
    for number in range(1, policy.tries + 1):
        if len(tally.calls) >= budget:
            tally.state = "budget-exhausted"
            break
        reply = ask(prompt)
        if reply is None:
            tally.state = "cancelled"
            break
        last = _call(case, number, prompt, reply)
        tally.calls.append(last)
        if reply.late:
            tally.state = "cancelled"
            break
        if reply.failure is None:
            break
    return last


def _call(case: Case, number: int, prompt: str, reply: Reply) -> Call:
    correct = reply.failure is None and is_correct(case.expected, reply.answer)
    return Call(
        case.id,
        number,
        prompt,
        reply.answer,
        reply.failure,
        correct,
        reply.started_at,
        reply.latency_s,
        reply.tokens_input,
        reply.tokens_output,
    )
