"""Several policies over one case set and one model: who is run when, and what came of it.

What belongs here: one attempt of a comparison, and repeating it. What does not: the call loop of one policy
(``calling``), files (``receipts``).
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic

from bench_pipeline.policies.calling import Tally, prompts_ahead, run_policy
from bench_pipeline.policies.cases import CaseSet
from bench_pipeline.policies.models import Clock, Deadline, Model, ModelConfig
from bench_pipeline.policies.policy import POLICIES, Policy

MAX_BUDGET = 10_000


@dataclass(frozen=True)
class Terms:
    """What every policy of a comparison gets: the same number of calls and the same time."""

    budget: int
    timeout_s: float
    policies: tuple[Policy, ...] = POLICIES


@dataclass(frozen=True)
class Begun:
    """What a policy already took of its time, in an attempt that was cut off and goes on."""

    started_at: datetime
    spent_s: float


@dataclass(frozen=True)
class PolicyResult:
    """What came of one policy."""

    policy: Policy
    tally: Tally
    started_at: datetime
    duration_s: float


@dataclass(frozen=True)
class Attempt:
    """One run of every policy, in the order of the policies; everything a receipt says."""

    number: int
    terms: Terms
    dataset_sha256: str
    scope: str
    model: ModelConfig
    results: tuple[PolicyResult, ...]

    @property
    def cancelled(self) -> bool:
        """Whether the time of a policy was over before it was done."""
        return any(result.tally.state == "cancelled" for result in self.results)


def run_attempt(
    cases: CaseSet,
    model: Model,
    terms: Terms,
    number: int,
    *,
    clock: Clock = monotonic,
    stop: threading.Event | None = None,
    begun: Mapping[str, Begun] | None = None,
) -> Attempt:
    """Run every policy once, one after the other; each attempt starts with the next one.

    What comes first meets a colder cache and a fresher rate limit; taking turns keeps that out of the comparison. When
    ``stop`` is set the policies end as if their time were over: what was answered is kept. A policy that is in
    ``begun`` gets the rest of its time.
    """
    first = (number - 1) % len(terms.policies)
    turns = terms.policies[first:] + terms.policies[:first]
    stop = stop or threading.Event()
    before = begun or {}
    done = {
        policy: _run(policy, cases, model, terms, number, clock, stop, before.get(policy.name))
        for policy in turns
    }
    results = tuple(done[policy] for policy in terms.policies)
    return Attempt(number, terms, cases.sha256, model.scope, model.config, results)


def _run(
    policy: Policy,
    cases: CaseSet,
    model: Model,
    terms: Terms,
    number: int,
    clock: Clock,
    stop: threading.Event,
    before: Begun | None,
) -> PolicyResult:
    before = before or Begun(datetime.now(UTC), 0.0)
    resumed = monotonic()
    ahead = prompts_ahead(policy, cases.cases, terms.budget)
    deadline = Deadline(clock() + terms.timeout_s - before.spent_s, clock, stop)
    with model.asking(policy.name, number, deadline, ahead) as ask:
        tally = run_policy(policy, cases.cases, terms.budget, ask)
    return PolicyResult(policy, tally, before.started_at, before.spent_s + monotonic() - resumed)
