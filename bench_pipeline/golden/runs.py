"""Run files: one score with everything that it is made of, for those who work with files.

What belongs here: the document, its name, writing and finding it. What does not: the table of scores (``scoring``) and
differences between two runs (``comparing``). Numbers are rounded to four places, durations to two.

A file that is not what was written here is named and skipped; it never hides an older one.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bench_pipeline.documents.jsonl import RejectedJsonError, decode_json
from bench_pipeline.errors import BenchError, NotFoundError, NothingToEvaluateError, StoreError
from bench_pipeline.golden.suite import Suite
from bench_pipeline.store import Store
from bench_pipeline.tasks import TIERS

FOLDER = "runs"
PARTS = ("task_success", "code_quality", "efficiency", "reliability", "safety")
# So many names stand in an error about a name that is none.
_TOLD = 5
_NAME = re.compile(r"eval_run_(\d{8}T\d{6}\.\d{6}Z)(?:-(\d{1,6}))?")


class _Document(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


class Failure(_Document):
    """One failed task."""

    task: str
    category: str
    severity: str
    details: str
    files: list[str]


class Result(_Document):
    """One task of the scope."""

    task: str
    tier: str
    digest: str | None
    source: str | None
    passed: bool | None
    signals_checked: int | None
    signals_passed: int | None
    tests_failed: int | None
    tests_regressed: int
    duration_s: float | None
    cost_usd: float | None
    judged: str
    judge_score: float | None
    crashes: int
    orphans: int
    attestation: str | None
    attestation_verdict: str | None
    warnings: list[str]


class Run(_Document):
    """A score, its parts, and what it is over."""

    version: Literal[1]
    run: str
    created: str
    setup: str
    setup_digest: str
    attempt: int
    scope: list[str]
    suite_digest: str
    score: float = Field(ge=0, le=1)
    components: dict[str, float | None]
    complete: bool
    tasks: int
    passed: int
    judged: int
    rates: dict[str, float | None]
    cost_usd: float | None
    cost_unknown: int
    duration_s: float | None
    crashes: int
    orphans: int
    regressions: int
    score_uncontaminated: float | None
    reasons: list[str]
    failures: list[Failure]
    results: list[Result]

    def counts(self) -> dict[str, int]:
        """How many failures there are of each category, most first, then by name."""
        found: dict[str, int] = {}
        for failure in self.failures:
            found[failure.category] = found.get(failure.category, 0) + 1
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


@dataclass(frozen=True)
class Skipped:
    """A file among the runs that is none, and why."""

    name: str
    why: str


def new_run(row: Mapping[str, Any], results: pa.Table, suite: Suite, now: datetime) -> Run:
    """The run of one row of composite_scores; ``results`` are the rows of task_results that it was made from."""
    own = sorted(results.to_pylist(), key=lambda item: (TIERS.index(item["tier"]), item["task_id"]))
    own = [item for item in own if item["task_id"] in suite.tier_of]
    return Run.model_validate(
        {
            "version": 1,
            "run": f"eval_run_{now.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}",
            "created": now.astimezone(UTC).isoformat(),
            "scope": list(suite.tiers),
            "score": _rounded(row["score"]),
            "components": {name: _rounded(row[name]) for name in PARTS},
            "rates": {tier: _rounded(row[f"rate_{tier}"]) for tier in TIERS},
            "cost_usd": _rounded(row["cost_usd"]),
            "duration_s": _rounded(row["duration_s"], 2),
            "score_uncontaminated": _rounded(row["score_uncontaminated"]),
            "failures": [failure_of(item) for item in own if item["failure_category"] is not None],
            "results": [_result(item) for item in own],
            **{name: row[name] for name in _AS_THEY_ARE},
        }
    )


_AS_THEY_ARE = (
    "setup",
    "setup_digest",
    "attempt",
    "suite_digest",
    "complete",
    "tasks",
    "passed",
    "judged",
    "cost_unknown",
    "crashes",
    "orphans",
    "regressions",
    "reasons",
)


def failure_of(row: Mapping[str, Any]) -> Failure:
    """The failure that a row of task_results tells of."""
    return Failure(
        task=row["task_id"],
        category=row["failure_category"],
        severity=row["failure_severity"],
        details=row["failure_details"] or "",
        files=row["failure_files"] or [],
    )


def _result(row: Mapping[str, Any]) -> Result:
    return Result.model_validate(
        {
            **{name: row[name] for name in Result.model_fields if name in row},
            "task": row["task_id"],
            "digest": row["task_digest"],
            "duration_s": _rounded(row["duration_s"], 2),
            "cost_usd": _rounded(row["cost_usd"]),
            "judge_score": _rounded(row["judge_score"]),
            "warnings": row["warnings"] or [],
        }
    )


def _rounded(value: float | None, places: int = 4) -> float | None:
    return None if value is None else round(value, places)


def write_run(store: Store, run: Run) -> Run:
    """Put a run into its file, under a name that no other has; returns the run by that name."""
    name, number = run.run, 1
    while True:
        named = run.model_copy(update={"run": name})
        text = json.dumps(named.model_dump(), ensure_ascii=True, allow_nan=False, indent=2) + "\n"
        if store.files.create(_path(name), text.encode()):
            return named
        number += 1
        name = f"{run.run}-{number}"


def read_run(store: Store, name: str) -> Run:
    """The run of that name, with or without ``.json``.

    Raises NotFoundError when there is none, BenchError when its file is not what was written.
    """
    wanted = name.removesuffix(".json")
    names = _names(store)
    if wanted not in names:
        newest = ", ".join(names[:_TOLD])
        remedy = f"the newest first: {newest}" if names else "there is none yet; bench golden run makes one"
        raise NotFoundError(f"opening the run {name}", "there is no run of that name", remedy)
    read = _read(store, wanted)
    if isinstance(read, Skipped):
        raise BenchError(
            f"opening the run {name}", read.why, "name another one; bench golden run makes a new one"
        )
    return read


def newest_run(
    store: Store, fits: Callable[[Run], bool] = lambda _: True
) -> tuple[Run | None, list[Skipped]]:
    """The newest readable run that fits, and the newer files that are no runs."""
    skipped: list[Skipped] = []
    for name in _names(store):
        read = _read(store, name)
        if isinstance(read, Skipped):
            skipped.append(read)
        elif fits(read):
            return read, skipped
    return None, skipped


def chosen_run(store: Store, name: str | None) -> tuple[Run, list[Skipped]]:
    """The run that is named, or the newest readable one; NothingToEvaluateError when there is none."""
    if name is not None:
        return read_run(store, name), []
    run, skipped = newest_run(store)
    if run is None:
        wrong = "there is none" if not skipped else f"none of {len(skipped)} files can be read"
        raise NothingToEvaluateError("looking for a run", wrong, "bench golden run makes one")
    return run, skipped


def _names(store: Store) -> list[str]:
    """The names of all run files, newest first; of one moment, the last that was written first."""
    names = [info.path.removeprefix(f"{FOLDER}/") for info in store.files.list(FOLDER)]
    matches = [match for name in names if (match := _NAME.fullmatch(name.removesuffix(".json")))]
    matches.sort(key=lambda match: (match[1], int(match[2] or 1)), reverse=True)
    return [match[0] for match in matches]


def _read(store: Store, name: str) -> Run | Skipped:
    try:
        value = decode_json(store.files.read(_path(name)).decode())
        run = Run.model_validate(value)
    except FileNotFoundError:
        return Skipped(name, "it is gone")
    except StoreError as error:
        return Skipped(name, f"it cannot be read: {error.wrong}")
    except (RejectedJsonError, UnicodeDecodeError) as error:
        return Skipped(name, f"it is not JSON: {error}")
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in wrong["loc"])
        return Skipped(name, f"it is not a run: {place}: {wrong['msg']}")
    return run if run.run == name else Skipped(name, f"it holds another run, {run.run}")


def _path(name: str) -> str:
    return f"{FOLDER}/{name}.json"
