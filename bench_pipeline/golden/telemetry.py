"""Telemetry that others wrote: ``telemetry/<setup>/<attempt>.jsonl``, one record a task.

What belongs here: the record, and rows of task_results from files of them. What does not: pass marks and failures
(``results``) and cells of our own (``measured``).

An invalid record is reported with its line and counts as missing telemetry; what can be read of it still closes gates.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator

from bench_pipeline.documents import (
    Bool,
    Float,
    Int,
    StrictModel,
    Text,
    describe,
    dotted,
    read_jsonl,
)
from bench_pipeline.documents.messages import explain
from bench_pipeline.errors import DocumentError, Problem
from bench_pipeline.golden.gates import Gates, Remains, gates_of
from bench_pipeline.golden.ownership import outside, plain_path
from bench_pipeline.golden.suite import no_such_task
from bench_pipeline.tasks import TIERS, GoldenTask

FOLDER = "telemetry"
# More than any task could come to, and within what can be scored.
LARGEST = 10**12
Count = Annotated[Int, Field(ge=0, le=LARGEST)]
Amount = Annotated[Float, Field(ge=0, le=LARGEST)]
Files = tuple[Text, ...] | Count
Row = dict[str, Any]

_ATTEMPT = re.compile(r"([1-9][0-9]{0,5})\.jsonl")


class TelemetryRecord(StrictModel):
    """What one task came to, as its runner tells it."""

    task_id: Text = Field(description="The golden task.")
    duration_s: Amount = Field(description="Seconds from start to end.")
    turns_used: Count = Field(description="Turns of the model.")
    tokens_input: Count = Field(description="Tokens read.")
    tokens_output: Count = Field(description="Tokens written.")
    cost_usd: Amount | None = Field(description="What it cost; null where nobody knows.")
    tests_run: Count = Field(description="Tests run at the end.")
    tests_passed: Count = Field(description="Of these, how many passed.")
    tests_failed: Count = Field(description="Of these, how many failed.")
    completion_signals_checked: Count = Field(description="Signals looked at.")
    completion_signals_passed: Count = Field(description="Of these, how many hold.")
    files_read: Files = Field(0, description="Files read, or how many.")
    files_modified: Files = Field((), description="Files changed, or how many.")
    crashes: Count = Field(0, description="How often the agent died.")
    orphans: Count = Field(0, description="Processes it left behind.")
    timed_out: Bool = Field(False, description="Whether its time ran out.")
    conflict: Bool = Field(False, description="Whether the change did not apply.")
    compile_error: Bool = Field(False, description="Whether the change does not compile.")
    tests_regressed: Count | None = Field(
        None,
        description="Tests that passed before and fail after; left out, every failed test counts as one.",
    )

    @model_validator(mode="before")
    @classmethod
    def _no_nulls(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            null = [name for name in value if value[name] is None and name != "cost_usd"]
            if null:
                raise ValueError(
                    f"{null[0]} is null; only cost_usd may be unknown, leave optional fields out"
                )
        return value

    @model_validator(mode="after")
    def _adds_up(self) -> "TelemetryRecord":
        if self.completion_signals_passed > self.completion_signals_checked:
            raise ValueError("completion_signals_passed is more than completion_signals_checked")
        if self.tests_passed + self.tests_failed != self.tests_run:
            raise ValueError("tests_passed and tests_failed do not add up to tests_run")
        return self


@dataclass(frozen=True)
class TelemetryFile:
    """A file of records: of which setup, by the name of its folder, and of which attempt.

    One that is not ``readable`` has the name of such a file and is something else.
    """

    setup: str
    attempt: int
    path: Path
    readable: bool = True


@dataclass
class Imported:
    """Rows of task_results, without what follows from other columns, and every problem of the files."""

    rows: list[Row] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True)
class _Line:
    """One line of a file: what it is about, and either its record or what is wrong and what can be read of it."""

    number: int
    task_id: str | None
    gates: Gates
    record: TelemetryRecord | None = None
    problem: str = ""


def find_files(root: Path, folder: str, max_attempts: int) -> tuple[list[TelemetryFile], list[Problem]]:
    """The files ``<folder>/<setup>/<attempt>.jsonl`` of a project, and what there does not belong there."""
    found: list[TelemetryFile] = []
    problems: list[Problem] = []
    top = root / folder
    for setup in _entries(top):
        wrong = _setup_problem(setup)
        if wrong:
            problems.append(Problem(str(setup), None, "", wrong))
            continue
        for path in _entries(setup) if setup.is_dir() else ():
            match = _ATTEMPT.fullmatch(path.name)
            if match is None or int(match[1]) > max_attempts:
                expected = f"expected <attempt>.jsonl with an attempt from 1 to {max_attempts}"
                problems.append(Problem(str(path), None, "", f"{expected} (defaults.max_attempts)"))
                continue
            readable = path.is_file() and not path.is_symlink()
            found.append(TelemetryFile(setup.name, int(match[1]), path, readable))
            if not readable:
                problems.append(
                    Problem(str(path), None, "", "is not a file of its own; put the file itself there")
                )
    return found, problems


def _entries(folder: Path) -> list[Path]:
    if not folder.is_dir() or folder.is_symlink():
        return []
    return sorted(item for item in folder.iterdir() if not item.name.startswith("."))


def _setup_problem(path: Path) -> str | None:
    if path.is_symlink():
        return "is a symbolic link; put the folder itself there"
    if not path.name.isprintable():
        return "has a name that cannot be printed; a setup is called as its folder"
    if not path.is_dir() and path.suffix == ".jsonl":
        return f"expected {path.parent.name}/<setup>/<attempt>.jsonl"
    return None


def read_telemetry(file: TelemetryFile, tasks: Mapping[str, GoldenTask]) -> Imported:
    """The rows of one file. Never raises for what it holds; a file that cannot be read at all is a problem."""
    imported = Imported()
    try:
        lines = list(_lines(file.path, tasks))
    except DocumentError as error:
        imported.problems.extend(error.problems)
        return imported
    if not lines:
        imported.problems.append(
            Problem(str(file.path), None, "", "holds no record; none of its tasks counts")
        )
    by_task: dict[str, list[_Line]] = {}
    for line in lines:
        if line.task_id in tasks:
            by_task.setdefault(str(line.task_id), []).append(line)
        else:
            imported.rows.extend(_stray_rows(file, line))
        if line.problem:
            imported.problems.append(Problem(str(file.path), line.number, "", line.problem))
    for task_id, own in by_task.items():
        imported.rows.append(_row(file, tasks[task_id], own))
        if len(own) > 1:
            numbers = ", ".join(str(line.number) for line in own)
            text = f"{task_id} has a record on each of the lines {numbers}; keep one"
            imported.problems.append(Problem(str(file.path), own[-1].number, "task_id", text))
    return imported


def _lines(path: Path, tasks: Mapping[str, GoldenTask]) -> Iterator[_Line]:
    broken: dict[int, Remains] = {}

    def take(number: int, piece: bytes) -> None:
        broken.setdefault(number, Remains()).take(piece)

    read = read_jsonl(path, tolerant=True, on_rejected=take)
    for number, value in zip(read.lines, read.rows, strict=True):
        yield _checked(number, value, tasks)
    messages = {problem.line: problem.message for problem in read.rejected}
    for number, remains in broken.items():
        yield _Line(number, remains.task_id, remains.gates, problem=messages[number])


def _checked(number: int, value: object, tasks: Mapping[str, GoldenTask]) -> _Line:
    if not isinstance(value, dict):
        return _Line(number, None, Gates(), problem=f"expected a record, found {describe(value)}")
    name = value.get("task_id")
    task_id = name if isinstance(name, str) else None
    gates = gates_of(value)
    try:
        record = TelemetryRecord.model_validate(value)
    except ValidationError as error:
        said = [
            ": ".join(filter(None, (dotted(at), text))) for at, text in explain(error, TelemetryRecord, value)
        ]
        return _Line(number, task_id, gates, problem="; ".join(said))
    if record.task_id not in tasks:
        problem = f"task_id: {no_such_task(record.task_id, tasks)}"
        return _Line(number, task_id, gates, problem=problem)
    return _Line(number, task_id, gates, record)


def _stray_rows(file: TelemetryFile, line: _Line) -> list[Row]:
    """A record that names no known task: it could be of any tier, so it stands in each."""
    base = {
        "setup": file.setup,
        "attempt": file.attempt,
        "task_id": f"{FOLDER} line {line.number}",
        "source": "imported",
        "telemetry_valid": False,
        "telemetry_problem": f"{file.path.name}:{line.number}: {line.problem}",
        "known_task": False,
        "attempted": True,
        **vars(line.gates),
    }
    return [base | {"tier": tier} for tier in TIERS]


def _row(file: TelemetryFile, task: GoldenTask, lines: Sequence[_Line]) -> Row:
    record = lines[0].record if len(lines) == 1 else None
    row = {
        "setup": file.setup,
        "attempt": file.attempt,
        "source": "imported",
        "attempted": True,
        **task_facts(task),
    }
    gates = sum((line.gates for line in lines), Gates())
    if record is None:
        numbers = ", ".join(str(line.number) for line in lines)
        wrong = lines[0].problem if len(lines) == 1 else "more than one record"
        problem = f"{file.path.name}:{numbers}: {wrong}"
        return row | {"telemetry_valid": False, "telemetry_problem": problem, **vars(gates)}
    modified = _paths(record.files_modified)
    return row | {
        "telemetry_valid": True,
        "signals_checked": record.completion_signals_checked,
        "signals_passed": record.completion_signals_passed,
        "tests_failed": record.tests_failed,
        "duration_s": record.duration_s,
        "cost_usd": record.cost_usd,
        "timed_out": record.timed_out,
        "conflict": record.conflict,
        "compile_error": record.compile_error,
        "files_read": _how_many(record.files_read),
        "files_modified": _how_many(record.files_modified),
        "modified_files": modified,
        "out_of_scope": None if modified is None else list(outside(modified, task.owned_files)),
        **vars(gates),
    }


def task_facts(task: GoldenTask) -> Row:
    """What a task itself says in every row of it."""
    return {
        "tier": task.tier,
        "task_id": task.id,
        "task_digest": task.digest,
        "known_task": True,
        "max_duration_s": task.max_duration_s,
        "max_cost_usd": task.max_cost_usd,
    }


def _paths(files: tuple[str, ...] | int) -> list[str] | None:
    return None if isinstance(files, int) else sorted({plain_path(path) for path in files})


def _how_many(files: Iterable[str] | int) -> int:
    return files if isinstance(files, int) else len({plain_path(path) for path in files})
