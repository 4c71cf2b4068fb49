"""The public Orchard fixture, and small case sets and recordings made by tests."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench_pipeline.policies.cases import Case, CaseSet, dataset_digest, read_cases
from bench_pipeline.policies.comparing import Attempt, Terms, run_attempt
from bench_pipeline.policies.models import Settings
from bench_pipeline.policies.policy import POLICIES
from bench_pipeline.policies.recordings import Recorded, Recording, Replay, read_recording

ORCHARD = Path(__file__).parents[1] / "fixtures" / "orchard"
BASELINE, RETRY, EVIDENCE = POLICIES


def orchard(budget: int, **options: float) -> Attempt:
    """An attempt over the fixture."""
    cases, recording = read_cases(ORCHARD / "cases.json"), read_recording(ORCHARD / "recording.json")
    return run_attempt(cases, Replay(recording), Terms(budget, options.get("timeout_s", 30.0)), 1)


def case_set(*cases: tuple[str, str, str] | tuple[str, str, str, Sequence[str]]) -> CaseSet:
    """Cases of an ID, a prompt, an expected answer and perhaps evidence."""
    names = ("ID", "Prompt", "Expected", "Evidence")
    made = tuple(Case.model_validate(dict(zip(names, case, strict=False))) for case in cases)
    return CaseSet(made, dataset_digest(made))


def recording(responses: Mapping[str, Sequence[tuple[str, str]]]) -> Recording:
    """A recording of answers and errors by prompt."""
    shared = {
        prompt: [Recorded(answer=answer, error=error) for answer, error in given]
        for prompt, given in responses.items()
    }
    return Recording("authored_fixture", "authored", Settings(temperature=0, max_tokens=128), shared=shared)


def written(path: Path, value: object) -> Path:
    """A JSON file."""
    path.write_text(json.dumps(value), encoding="utf-8")
    return path
