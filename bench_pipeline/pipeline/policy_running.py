"""Running a comparison of policies over files: its terms checked, attempts run, receipts and recordings written.

What belongs here: what ``bench policy run`` and ``record`` do. What does not: a project's comparisons and their tables
(``policy_receipts``).
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_pipeline.errors import UsageError
from bench_pipeline.policies.comparing import MAX_BUDGET, Attempt, Terms, run_attempt
from bench_pipeline.policies.policy import POLICIES, Policy, PolicyName
from bench_pipeline.policies.receipts import receipt_text, write_private

if TYPE_CHECKING:
    from bench_pipeline.policies.cases import CaseSet
    from bench_pipeline.policies.live import LiveModel
    from bench_pipeline.policies.models import Ask, Deadline, Model, Reply


def terms(budget: int, timeout_s: float, max_timeout_s: float, names: Sequence[str] = ()) -> Terms:
    """The terms of a comparison; without ``names`` all policies.

    Raises:
        UsageError: a budget or a time out of its bounds.
    """
    if not 0 <= budget <= MAX_BUDGET:
        raise UsageError("comparing policies", f"a budget of {budget} calls", f"give it 0 to {MAX_BUDGET}")
    if not 0 < timeout_s <= max_timeout_s:
        wrong = f"a time of {timeout_s:g}s, which is not above 0 and at most {max_timeout_s:g}s"
        raise UsageError(
            "comparing policies", wrong, "shorten it, or raise policies.max_timeout in a project"
        )
    return Terms(budget, timeout_s, _chosen(names))


def _chosen(names: Sequence[str]) -> tuple[Policy, ...]:
    return tuple(policy for policy in POLICIES if not names or policy.name in names)


def live_model(
    url: str,
    name: str,
    *,
    key_env: str | None,
    temperature: float | None = None,
    max_tokens: int | None = None,
    concurrency: int = 1,
) -> "LiveModel":
    """A live model, checked before its first call.

    Raises:
        UsageError: the URL, the name or the settings are off.
        RefusedError: the key is not there.
    """
    from bench_pipeline.policies.answers import is_blank
    from bench_pipeline.policies.live import LiveModel
    from bench_pipeline.policies.models import Settings
    from bench_pipeline.providers.endpoint import read_endpoint, read_key

    endpoint = read_endpoint(url)
    if is_blank(name):
        raise UsageError("naming the model", "its name is blank", "give it with --model")
    heat = 0.0 if temperature is None else temperature
    if not 0 <= heat <= 2:
        raise UsageError("setting the temperature", f"it is {heat:g}", "give it 0 to 2")
    settings = Settings(temperature=heat, max_tokens=128 if max_tokens is None else max_tokens)
    return LiveModel(endpoint, name, settings, read_key(key_env), concurrency)


def run_attempts(
    cases: "CaseSet",
    model: "Model",
    agreed: Terms,
    attempts: Iterable[int],
    on_call: Callable[[PolicyName], None] | None = None,
    stop: threading.Event | None = None,
) -> Iterator[Attempt]:
    """Run the attempts one after the other; each is handed out as soon as it is done.

    ``on_call`` is told after every call which policy made it. When ``stop`` is set, the attempt that is running ends
    with what it has, and no other is begun.
    """
    watched = model if on_call is None else _Watched(model, on_call)
    for number in attempts:
        if stop is None or not stop.is_set():
            yield run_attempt(cases, watched, agreed, number, stop=stop)


def most_calls(cases: "CaseSet", agreed: Terms) -> int:
    """The most calls that an attempt can make."""
    return sum(min(agreed.budget, policy.tries * len(cases.cases)) for policy in agreed.policies)


class _Watched:
    """A model whose calls are told to somebody who waits for them."""

    def __init__(self, model: "Model", on_call: Callable[[PolicyName], None]) -> None:
        self._model = model
        self._on_call = on_call
        self.config = model.config
        self.scope = model.scope

    @contextmanager
    def asking(
        self, policy: PolicyName, attempt: int, deadline: "Deadline", ahead: Sequence[str]
    ) -> "Iterator[Ask]":
        with self._model.asking(policy, attempt, deadline, ahead) as ask:

            def told(prompt: str) -> "Reply | None":
                reply = ask(prompt)
                self._on_call(policy)
                return reply

            yield told


def receipt_path(path: Path, attempt: int, attempts: int) -> Path:
    """Where the receipt of an attempt goes: ``receipt.json``, or ``receipt-2.json`` where there are several."""
    return path if attempts == 1 else path.with_name(f"{path.stem}-{attempt}{path.suffix}")


def write_receipt(path: Path, attempt: Attempt, version: int) -> None:
    """Write one attempt's receipt."""
    write_private(path, receipt_text(attempt, version))


def recordable(agreed: Terms, attempts: int, version: int) -> None:
    """Refuse, before any call, what a version of recordings cannot hold."""
    runs = attempts * len(agreed.policies)
    if version == 1 and runs > 1:
        wrong = f"version 1 has one set of answers for all, and there would be {runs} runs"
        raise UsageError("recording", wrong, "name one --policy without --repeat, or write version 2")


def write_recording(path: Path, attempts: Sequence[Attempt], version: int) -> None:
    """Write what a live model answered."""
    from bench_pipeline.policies.digests import indented_json
    from bench_pipeline.policies.recordings import recorded

    write_private(path, indented_json(recorded(attempts, version).document()))


def receipt_rows(attempt: Attempt, comparison: str | None = None) -> list[dict[str, Any]]:
    """An attempt as rows of the table policy_receipts."""
    return [
        {
            "comparison": comparison,
            "attempt": attempt.number,
            "harness": result.policy.name,
            "policy": result.policy.name,
            "correct": result.tally.correct,
            "attempted": result.tally.attempted,
            "errors": result.tally.errors,
            "total": result.tally.total,
            "state": result.tally.state,
            "calls": len(result.tally.calls),
            "call_budget": attempt.terms.budget,
            "dataset_sha256": attempt.dataset_sha256,
            "model_config_sha256": attempt.model.sha256,
            "scope": attempt.scope,
            "model": attempt.model.model,
            "timeout_s": attempt.terms.timeout_s,
            "started_at": result.started_at,
            "duration_s": result.duration_s,
        }
        for result in attempt.results
    ]
