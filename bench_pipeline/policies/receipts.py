"""Receipts: what one attempt of a comparison was and what came of it, as a file that others can check.

What belongs here: writing versions 1 and 2, and putting a file in place so that only its owner reads it. What does
not: reading receipts back (``loading``). Version 1 is fixed to the byte; version 2 adds members and changes none.
"""

import contextlib
import os
import secrets
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from bench_pipeline.errors import BenchError
from bench_pipeline.policies.calling import Call
from bench_pipeline.policies.comparing import Attempt, PolicyResult
from bench_pipeline.policies.digests import indented_json


def receipt_text(attempt: Attempt, version: int = 1) -> str:
    """The receipt of an attempt."""
    head: dict[str, object] = {
        "schema_version": version,
        "scope": attempt.scope,
        "model": attempt.model.document(),
    }
    if version > 1:
        head |= {"attempt": attempt.number, "timeout_s": attempt.terms.timeout_s}
    results = [_result(attempt, result, version) for result in attempt.results]
    return indented_json({**head, "results": results})


def _result(attempt: Attempt, result: PolicyResult, version: int) -> Mapping[str, object]:
    tally = result.tally
    members: dict[str, object] = {
        "Harness": result.policy.name,
        "Correct": tally.correct,
        "Attempted": tally.attempted,
        "Errors": tally.errors,
        "Total": tally.total,
        "State": tally.state,
        "Calls": len(tally.calls),
        "CallBudget": attempt.terms.budget,
        "DatasetSHA256": attempt.dataset_sha256,
        "ModelConfigSHA256": attempt.model.sha256,
    }
    if version > 1:
        members |= {
            "Policy": result.policy.name,
            "StartedAt": _time(result.started_at),
            "DurationSeconds": result.duration_s,
        }
    return members | {"Trace": [_call(call, version) for call in tally.calls]}


def _call(call: Call, version: int) -> Mapping[str, object]:
    members: dict[str, object] = {
        "CaseID": call.case_id,
        "Attempt": call.number,
        "Prompt": call.prompt,
        "Answer": call.answer,
        "Failed": call.failure is not None,
        "Correct": call.correct,
    }
    if version > 1:
        members |= {
            "Failure": call.failure,
            "StartedAt": None if call.started_at is None else _time(call.started_at),
            "LatencySeconds": call.latency_s,
            "TokensInput": call.tokens_input,
            "TokensOutput": call.tokens_output,
        }
    return members


def _time(moment: datetime) -> str:
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def write_private(path: Path, text: str) -> None:
    """Put a file in place whole, readable by its owner only; an earlier one is replaced.

    Raises:
        BenchError: it cannot be written; nothing of it is left.
    """
    temporary = path.with_name(f".{path.name[:64]}.{secrets.token_hex(8)}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as out:
                out.write(text)
                out.flush()
                os.fsync(out.fileno())
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        remedy = "nothing was written; name a file in a folder that is there and may be written to"
        raise BenchError(f"writing {path}", error.strerror or str(error), remedy) from None
