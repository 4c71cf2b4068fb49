"""Recorded answers, and a model that replays them.

What belongs here: reading recordings of version 1 (one set of answers for every policy) and 2 (a set for each policy
and attempt), writing what a live run answered, replaying. What does not: receipts.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from bench_pipeline.documents import Int, StrictModel
from bench_pipeline.errors import DocumentError, RefusedError
from bench_pipeline.policies.answers import is_blank
from bench_pipeline.policies.calling import Call
from bench_pipeline.policies.comparing import Attempt
from bench_pipeline.policies.digests import sha256
from bench_pipeline.policies.inputs import InputError, JsonText, read_value
from bench_pipeline.policies.models import Ask, Deadline, ModelConfig, Reply, Settings
from bench_pipeline.policies.policy import PolicyName

# A thousand cases with a page of evidence each are a few MiB.
_MAX_BYTES = 64 << 20
ADAPTER = "recording"
# The answers to one prompt in version 1.
MAX_SHARED = 32

Kind = Literal["authored_fixture", "recorded_provider"]


class Recorded(StrictModel):
    """One recorded answer; with an error it is a call that failed."""

    answer: JsonText
    error: JsonText = ""

    def document(self) -> dict[str, str]:
        """Its members; an empty error is left out."""
        return {"answer": self.answer, "error": self.error} if self.error else {"answer": self.answer}


def _not_blank(text: str) -> str:
    if is_blank(text):
        raise ValueError("is blank; expected the name of a model")
    return text


Responses = dict[JsonText, Annotated[tuple[Recorded, ...], Field(min_length=1, max_length=MAX_SHARED)]]
# The same prompt may stand in as many cases as a budget has calls.
_RunResponses = dict[JsonText, Annotated[tuple[Recorded, ...], Field(min_length=1, max_length=10_000)]]


class _Head(StrictModel):
    kind: Kind
    model: Annotated[JsonText, AfterValidator(_not_blank)]
    settings: Settings


class _Shared(_Head):
    """Version 1."""

    responses: Responses


class _Run(StrictModel):
    policy: PolicyName
    attempt: Annotated[Int, Field(ge=1)]
    responses: _RunResponses


class _Separate(_Head):
    """Version 2."""

    version: Literal[2]
    runs: Annotated[tuple[_Run, ...], Field(min_length=1)]


Answers = Mapping[str, Sequence[Recorded]]


@dataclass(frozen=True)
class Recording:
    """A model's recorded answers: shared by every policy, or by policy and attempt."""

    kind: Kind
    model: str
    settings: Settings
    shared: Answers | None = None
    runs: Mapping[tuple[PolicyName, int], Answers] | None = None

    def document(self) -> Mapping[str, object]:
        """The recording as it is written and digested, prompts and runs sorted."""
        head = {"kind": self.kind, "model": self.model, "settings": self.settings.model_dump()}
        if self.runs is None:
            return {**head, "responses": _sorted(self.shared or {})}
        runs = [
            {"policy": policy, "attempt": attempt, "responses": _sorted(answers)}
            for (policy, attempt), answers in sorted(self.runs.items())
        ]
        return {"version": 2, **head, "runs": runs}

    def answers(self, policy: PolicyName, attempt: int) -> Answers:
        """What was recorded for a policy's attempt.

        Raises:
            RefusedError: the recording holds other policies or attempts only.
        """
        if self.runs is None:
            return self.shared or {}
        found = self.runs.get((policy, attempt))
        if found is None:
            held = ", ".join(f"{name} {number}" for name, number in sorted(self.runs))
            raise RefusedError(
                f"replaying attempt {attempt} of {policy}",
                f"the recording holds {held}",
                "record it too, or ask for what is there with --policy and --repeat",
            )
        return found


def _sorted(answers: Answers) -> dict[str, list[dict[str, str]]]:
    return {prompt: [one.document() for one in answers[prompt]] for prompt in sorted(answers)}


def read_recording(path: Path) -> Recording:
    """Read a recording of either version.

    Raises:
        InputError: names the first check that failed and every place where it did.
    """
    document = read_value(path, _MAX_BYTES)
    if not isinstance(document.value, dict):
        raise InputError(
            "decode", [document.problem((), "expected a recording: an object with its responses")]
        )
    try:
        if "version" not in document.value:
            one = document.model(_Shared).model
            return Recording(one.kind, one.model, one.settings, shared=one.responses)
        several = document.model(_Separate).model
    except DocumentError as error:
        raise InputError("decode", error.problems) from None
    runs = {(run.policy, run.attempt): run.responses for run in several.runs}
    if len(runs) < len(several.runs):
        wrong = "two runs are of one policy and attempt"
        raise InputError("conflict", [document.problem(("runs",), wrong)])
    return Recording(several.kind, several.model, several.settings, runs=runs)


def recorded(attempts: Sequence[Attempt], version: int = 2) -> Recording:
    """What a live model answered, so that a replay of the same comparison gives the same traces.

    Version 1, which all policies share, holds a single run.

    Raises:
        RefusedError: version 1 has no room for so many answers to one prompt.
    """
    first = attempts[0]
    runs: dict[tuple[PolicyName, int], Answers] = {
        (result.policy.name, attempt.number): _answers(result.tally.calls)
        for attempt in attempts
        for result in attempt.results
    }
    kind: Kind = "recorded_provider"
    head = (kind, first.model.model, first.model.settings)
    if version == 2:
        return Recording(*head, runs=runs)
    (shared,) = runs.values()
    if any(len(answers) > MAX_SHARED for answers in shared.values()):
        wrong = f"version 1 holds at most {MAX_SHARED} answers to a prompt"
        raise RefusedError("recording", wrong, "write version 2")
    return Recording(*head, shared=shared)


def _answers(calls: Sequence[Call]) -> Answers:
    answers: dict[str, list[Recorded]] = defaultdict(list)
    for call in calls:
        answers[call.prompt].append(Recorded(answer=call.answer, error=call.failure or ""))
    return answers


class Replay:
    """A recording as a model: each policy of each attempt reads it from the start."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.scope: str = recording.kind
        self.config = ModelConfig(
            ADAPTER, recording.model, recording.settings, recording_sha256=sha256(recording.document())
        )

    @contextmanager
    def asking(
        self,
        policy: PolicyName,
        attempt: int,
        deadline: Deadline,
        ahead: Sequence[str],  # noqa: ARG002
    ) -> Iterator[Ask]:
        """The next recorded answer for each exact prompt; nothing is asked twice and nothing wraps around."""
        answers = self._recording.answers(policy, attempt)
        used: dict[str, int] = defaultdict(int)

        def ask(prompt: str) -> Reply:
            recorded = answers.get(prompt, ())
            position = used[prompt]
            if position >= len(recorded):
                return Reply("", failure="not_recorded: " + (_PAST_END if recorded else _NO_PROMPT))
            used[prompt] = position + 1
            one = recorded[position]
            return Reply(one.answer, failure=one.error or None)

        yield deadline.keep(ask)


_NO_PROMPT = "the recording has no such prompt"
_PAST_END = "the recording has no more answers to this prompt"
