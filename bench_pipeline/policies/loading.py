"""Reading receipts back, and distrusting them: their counters must follow from their traces.

What belongs here: the members of a receipt file, both versions, and rows made by hand. What does not: whether several
may be compared (``leaderboard``).
"""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from bench_pipeline.documents import Bool, FieldPath, Float, Int, JsonValue, StrictModel
from bench_pipeline.errors import DocumentError, Problem
from bench_pipeline.policies.digests import sha256
from bench_pipeline.policies.entries import Entry, impossible
from bench_pipeline.policies.inputs import InputError, JsonText, read_value
from bench_pipeline.policies.models import ModelConfig, Settings

# Ten thousand calls with prompts of 25 KiB each.
_MAX_BYTES = 256 << 20


class _Call(StrictModel):
    case_id: JsonText = Field(alias="CaseID")
    number: Int = Field(alias="Attempt")
    prompt: JsonText = Field(alias="Prompt")
    answer: JsonText = Field(alias="Answer")
    failed: Bool = Field(alias="Failed")
    correct: Bool = Field(alias="Correct")
    failure: JsonText | None = Field(None, alias="Failure")
    started_at: JsonText | None = Field(None, alias="StartedAt")
    latency_s: Float | None = Field(None, alias="LatencySeconds")
    tokens_input: Int | None = Field(None, alias="TokensInput")
    tokens_output: Int | None = Field(None, alias="TokensOutput")


class _Result(StrictModel):
    """A receipt's result, or a row that somebody wrote down: then it has counters only."""

    harness: JsonText = Field(alias="Harness", min_length=1)
    correct: Int = Field(alias="Correct")
    attempted: Int = Field(alias="Attempted")
    errors: Int = Field(alias="Errors")
    total: Int = Field(alias="Total")
    state: Literal["", "completed", "budget-exhausted", "cancelled"] = Field("", alias="State")
    calls: Int | None = Field(None, alias="Calls")
    call_budget: Int | None = Field(None, alias="CallBudget")
    dataset_sha256: JsonText = Field("", alias="DatasetSHA256")
    model_config_sha256: JsonText = Field("", alias="ModelConfigSHA256")
    policy: JsonText | None = Field(None, alias="Policy")
    started_at: JsonText | None = Field(None, alias="StartedAt")
    duration_s: Float | None = Field(None, alias="DurationSeconds")
    trace: tuple[_Call, ...] | None = Field(None, alias="Trace")


class _Model(StrictModel):
    adapter: JsonText
    model: JsonText
    endpoint: JsonText | None = None
    settings: Settings
    recording_sha256: JsonText | None = None


class _Receipt(StrictModel):
    schema_version: Literal[1, 2]
    scope: JsonText
    model: _Model
    attempt: Annotated[Int, Field(ge=1)] | None = None
    timeout_s: Float | None = None
    results: Annotated[tuple[_Result, ...], Field(min_length=1)]


def read_entries(path: Path) -> list[Entry]:
    """The results of a receipt file, or the rows of a JSON array of results made by hand.

    Raises:
        InputError: it does not parse, or its counters are impossible or do not follow from its trace.
    """
    document = read_value(path, _MAX_BYTES)
    try:
        if isinstance(document.value, list):
            rows = document.items(_Result)
            entries = [_entry(row, {}) for row in rows]
            return _checked(document, rows, entries, (), None)
        receipt = document.model(_Receipt).model
    except InputError:
        raise
    except DocumentError as error:
        raise InputError("decode", error.problems) from None
    told = {"scope": receipt.scope, "model": receipt.model.model, "attempt": receipt.attempt}
    entries = [_entry(row, told) for row in receipt.results]
    config = sha256(_config(receipt.model).document())
    return _checked(document, receipt.results, entries, ("results",), config)


def _entry(row: _Result, told: dict[str, Any]) -> Entry:
    fields = row.model_dump(
        include={"harness", "correct", "attempted", "errors", "total", "calls", "call_budget"}
    )
    bare = not row.dataset_sha256 and not row.model_config_sha256
    if bare and not row.calls and not row.call_budget:
        # Nothing was written down of calls; zeros say no more.
        fields |= {"calls": None, "call_budget": None}
    return Entry(
        **fields,
        **told,
        state=row.state or None,
        dataset_sha256=row.dataset_sha256 or None,
        model_config_sha256=row.model_config_sha256 or None,
        outcomes=None if row.trace is None else {call.case_id: float(call.correct) for call in row.trace},
    )


def _config(model: _Model) -> ModelConfig:
    return ModelConfig(model.adapter, model.model, model.settings, model.endpoint, model.recording_sha256)


_MEMBERS = {
    "correct": "Correct",
    "attempted": "Attempted",
    "errors": "Errors",
    "total": "Total",
    "calls": "Calls",
    "call_budget": "CallBudget",
}


def _checked(
    document: JsonValue, rows: Any, entries: list[Entry], above: FieldPath, config: str | None
) -> list[Entry]:
    problems: list[Problem] = []
    for number, (row, entry) in enumerate(zip(rows, entries, strict=True)):
        found = [(_MEMBERS[name], text) for name, text in impossible(entry)]
        if entry.has_receipt:
            found = found or list(_faults(row, config))
        problems += [document.problem((*above, number, name), text) for name, text in found]
    if problems:
        raise InputError("invalid", problems)
    return entries


def _faults(row: _Result, config: str | None) -> Iterator[tuple[str, str]]:
    """What of a receipt contradicts itself."""
    if row.calls is None or row.call_budget is None or not row.state or row.trace is None:
        yield "Harness", "a receipt has Calls, CallBudget, State and a Trace; one of them is missing"
        return
    if config is not None and row.model_config_sha256 != config:
        yield "ModelConfigSHA256", f"is not the digest of the receipt's model, which is {config}"
    if row.state == "completed" and row.attempted != row.total:
        yield "State", f"is completed, with {row.attempted} of {row.total} cases attempted"
    if row.state == "budget-exhausted" and row.calls != row.call_budget:
        yield "State", f"is budget-exhausted, with {row.calls} of {row.call_budget} calls made"
    yield from _trace_faults(row, row.trace)


def _trace_faults(row: _Result, trace: tuple[_Call, ...]) -> Iterator[tuple[str, str]]:
    cases = [list(calls) for _, calls in groupby(trace, key=lambda call: call.case_id)]
    if len({calls[0].case_id for calls in cases}) < len(cases):
        yield "Trace", "comes back to a case that it had left"
    for calls in cases:
        if [call.number for call in calls] != list(range(1, len(calls) + 1)):
            yield "Trace", f"does not number the calls of {calls[0].case_id!r} from 1 upwards"
        if any(call.failed and call.correct for call in calls):
            yield "Trace", f"has a call of {calls[0].case_id!r} that failed and is correct"
        if not all(call.failed for call in calls[:-1]):
            yield "Trace", f"calls {calls[0].case_id!r} again after a call that did not fail"
    last = [calls[-1] for calls in cases]
    errors, correct = sum(call.failed for call in last), sum(call.correct for call in last)
    counted = {"Calls": (row.calls, len(trace)), "Attempted": (row.attempted, len(cases))}
    if not _ended_late(row, last, errors, correct):
        counted |= {"Errors": (row.errors, errors), "Correct": (row.correct, correct)}
    for name, (told, found) in counted.items():
        if told != found:
            yield name, f"is {told}, and the trace has {found}"


def _ended_late(row: _Result, last: list[_Call], errors: int, correct: int) -> bool:
    """Whether the last call was answered after the deadline, and rightly counted as an error."""
    if row.state != "cancelled" or not last or last[-1].failed:
        return False
    return (row.errors, row.correct) == (errors + 1, correct - last[-1].correct)
