"""What judges said of changes: ``judgements/<setup>/<attempt>.jsonl``, one record a task.

What belongs here: the record, reading files of them, and which of three states a task is in: judged, not judged, or
the judge failed. What does not: asking a judge (``judge``). A record that is invalid is a judge that failed: it is
neither a low mark nor no mark.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from bench_pipeline.documents import Int, StrictModel, Text, describe, dotted, read_jsonl
from bench_pipeline.documents.messages import explain
from bench_pipeline.errors import DocumentError, Problem
from bench_pipeline.golden.suite import no_such_task

FOLDER = "judgements"
MARKS = ("correctness", "style", "test_coverage", "safety")
BEST = 5

Mark = Annotated[Int, Field(ge=0, le=BEST)]


class Marks(StrictModel):
    """What a judge says of one change."""

    task_id: Text = Field(description="The golden task.")
    correctness: Mark = Field(description="Whether it does what was asked, 0 to 5.")
    style: Mark = Field(description="Whether it reads like the code around it, 0 to 5.")
    test_coverage: Mark = Field(description="Whether what changed is tested, 0 to 5.")
    safety: Mark = Field(description="Whether it does no harm, 0 to 5.")
    verdict: Text = Field("", description="The judgement in words.")
    issues: tuple[Text, ...] = Field((), description="What is wrong with it.")
    signals_passed: tuple[Text, ...] = Field(
        (), description="The completion signals in free text that hold, each as the task has it."
    )

    @property
    def score(self) -> float:
        """The mean mark as a share of the best."""
        return sum(int(getattr(self, name)) for name in MARKS) / (BEST * len(MARKS))


class JudgementRecord(Marks):
    """A line of a judgements file that holds marks."""

    judge: Text | None = Field(None, description="Which model judged.")
    candidate: Text | None = Field(None, description="SHA-256 of the change that was judged; left out: any.")


class FailedRecord(StrictModel):
    """A line of a judgements file that says why there are no marks."""

    task_id: Text = Field(description="The golden task.")
    failed: Text = Field(description="Why.")
    judge: Text | None = Field(None, description="Which model was asked.")
    candidate: Text | None = Field(None, description="SHA-256 of the change; left out: any.")


@dataclass(frozen=True)
class Judgement:
    """The state of one task: ``marks`` when it is judged, ``problem`` when the judge failed."""

    marks: Marks | None = None
    candidate: str | None = None
    problem: str = ""

    def columns(self, candidate: str | None) -> dict[str, Any]:
        """The judge's columns of task_results, for a result whose change has this digest."""
        if self.candidate is not None and self.candidate != candidate:
            return {**UNJUDGED, "judge_problem": "the judgement is of another change; judge this one again"}
        if self.marks is None:
            return {"judged": "judge_failed", "judge_score": None, "judge_problem": self.problem}
        return {"judged": "judged", "judge_score": self.marks.score, "judge_problem": None}


UNJUDGED: Mapping[str, Any] = {"judged": "not_judged", "judge_score": None, "judge_problem": None}


@dataclass
class Judgements:
    """The judgements of one file by task, and its problems."""

    by_task: dict[str, Judgement] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def columns(self, task_id: str, candidate: str | None) -> dict[str, Any]:
        """The judge's columns of a task's row."""
        found = self.by_task.get(task_id)
        return dict(UNJUDGED) if found is None else found.columns(candidate)

    def holds(self, task_id: str, signal: str, candidate: str | None) -> bool:
        """Whether a judge of this very change says that a signal in free text holds."""
        found = self.by_task.get(task_id)
        if found is None or found.marks is None or found.candidate not in {None, candidate}:
            return False
        return signal in found.marks.signals_passed


def read_judgements(path: Path, tasks: Collection[str]) -> Judgements:
    """The judgements of one file; ``tasks`` are the ids of all golden tasks.

    Never raises for what it holds; a file that cannot be read is a problem.
    """
    result = Judgements()
    try:
        read = read_jsonl(path, tolerant=True)
    except DocumentError as error:
        result.problems.extend(error.problems)
        return result
    result.problems.extend(read.rejected)
    lines: dict[str, list[int]] = {}
    for number, value in zip(read.lines, read.rows, strict=True):
        task_id = value.get("task_id") if isinstance(value, dict) else None
        if not isinstance(task_id, str):
            found = f"expected a record with a task_id, found {describe(value)}"
            result.problems.append(Problem(str(path), number, "task_id", found))
            continue
        if task_id not in tasks:
            result.problems.append(Problem(str(path), number, "task_id", no_such_task(task_id, tasks)))
            continue
        lines.setdefault(task_id, []).append(number)
        judgement = _judgement(value)
        if judgement.problem and "failed" not in value:
            result.problems.append(Problem(str(path), number, "", judgement.problem))
        result.by_task[task_id] = judgement
    result.problems.extend(_repeated(path, lines, result.by_task))
    return result


def _repeated(path: Path, lines: Mapping[str, list[int]], by_task: dict[str, Judgement]) -> Iterator[Problem]:
    """A problem for each task that is judged on several lines; none of them counts."""
    for task_id, numbers in lines.items():
        if len(numbers) > 1:
            text = f"{task_id} is judged on each of the lines {', '.join(map(str, numbers))}; keep one"
            by_task[task_id] = Judgement(problem=text)
            yield Problem(str(path), numbers[-1], "task_id", text)


def _judgement(value: dict[str, Any]) -> Judgement:
    model = FailedRecord if "failed" in value else JudgementRecord
    try:
        record = model.model_validate(value)
    except ValidationError as error:
        said = [": ".join(filter(None, (dotted(at), text))) for at, text in explain(error, model, value)]
        return Judgement(problem="; ".join(said))
    if isinstance(record, FailedRecord):
        return Judgement(candidate=record.candidate, problem=record.failed)
    assert isinstance(record, JudgementRecord)
    return Judgement(record, record.candidate)
