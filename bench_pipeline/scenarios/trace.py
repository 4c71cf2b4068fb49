"""Traces: what a run did, one JSON line an event, in ``traces/<run-id>.jsonl``.

What belongs here: the format (version 1), reading it strictly, writing it, and what a trace measures. What does not:
making one from a foreign transcript (``importers``) or by running a tool (``live``). Reading refuses what cannot be
scored, and says where: a bad line, a gap in seq, a clock that goes back, two runs in one file, no end, no seconds.
"""

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationError, model_validator

from bench_pipeline.documents import Bool, Int, StrictModel, Text, TextList, describe, dotted, read_jsonl
from bench_pipeline.documents.messages import explain
from bench_pipeline.errors import DocumentError, NotFoundError, Problem, RefusedError, UsageError
from bench_pipeline.scenarios.checks import CHECK_NAMES
from bench_pipeline.scenarios.scenario import Count, Filled
from bench_pipeline.scenarios.scoring import Evidence, Measured
from bench_pipeline.store.files import LocalFiles
from bench_pipeline.store.text import clean_text

SCHEMA = 1
# Far beyond any answer that a person reads; what is longer is cut, and the cut is noted.
MAX_TEXT = 1_000_000
M = TypeVar("M", bound=StrictModel)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ZONE = re.compile(r"(Z|[+-]00:?00)$")


def _utc(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or not _ZONE.search(text):
        raise ValueError(f"expected a time in UTC such as 2026-01-31T12:00:00Z, found {describe(text)}")
    return text


def _run_id(text: str) -> str:
    if not _UUID.fullmatch(text):
        raise ValueError(f"expected a UUID in lower case, found {describe(text)}")
    return text


Time = Annotated[Text, AfterValidator(_utc)]


class Header(StrictModel):
    """The first line: which run this is, of what, and since when."""

    schema_: Annotated[Int, Field(alias="schema", ge=SCHEMA, le=SCHEMA)]
    run_id: Annotated[Text, AfterValidator(_run_id)]
    scenario: Filled
    cell: Filled | None = None
    mode: Filled | None = None
    harness: Filled | None = None
    model: Filled | None = None
    max_steps: Count | None = None
    max_seconds: Count | None = None
    started_at: Time | None = None


class CheckRun(StrictModel):
    """A harness check that was run: its commands, and whether all of them succeeded."""

    name: Filled
    passed: Bool
    commands: TextList = ()


class Event(StrictModel):
    """One line after the header; which fields it has depends on its type."""

    seq: Annotated[Int, Field(ge=1)]
    time: Time | None
    type: Literal["step", "evidence", "artifact", "usage", "end"]
    tool: Text | None = None
    summary: Text | None = None
    text: Text | None = None
    check: CheckRun | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    seconds: Annotated[Int, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _fits_its_type(self) -> "Event":
        allowed = _FIELDS[self.type]
        extra = sorted(self.model_fields_set - {"seq", "time", "type", *allowed})
        if extra:
            raise ValueError(f"an event of type {self.type} has no {', '.join(extra)}")
        if "text" in allowed and self.text is None:
            raise ValueError(f"an event of type {self.type} needs text")
        return self

    @property
    def passed_check(self) -> str | None:
        """The harness check whose passed label this is; a bare name, written by a harness, is one too."""
        if self.type != "evidence":
            return None
        if self.check is not None:
            return self.check.name if self.check.passed else None
        return self.text if self.text in CHECK_NAMES else None


_FIELDS: Mapping[str, tuple[str, ...]] = {
    "step": ("tool", "summary"),
    "evidence": ("text", "check"),
    "artifact": ("text",),
    "usage": ("prompt_tokens", "completion_tokens"),
    "end": ("seconds",),
}


@dataclass(frozen=True)
class Trace:
    """A whole run: its header and its events, ``end`` last."""

    header: Header
    events: tuple[Event, ...]
    lines: tuple[int, ...] = field(default=(), repr=False, compare=False)

    def of_type(self, kind: str) -> list[Event]:
        """The events of one type, in order."""
        return [event for event in self.events if event.type == kind]

    @property
    def artifact(self) -> str | None:
        """The last artifact's text."""
        found = self.of_type("artifact")
        return found[-1].text if found else None

    @property
    def tokens(self) -> tuple[int | None, int | None]:
        """Prompt and completion tokens of all usage events; None where there is none, or one does not say."""
        usage = self.of_type("usage")
        return _sum([event.prompt_tokens for event in usage]), _sum(
            [event.completion_tokens for event in usage]
        )

    @property
    def seconds(self) -> int | None:
        """Whole seconds from the start to the end, or those that the end states; None when unknown."""
        end = self.events[-1]
        if end.seconds is not None:
            return end.seconds
        if end.time is None or self.header.started_at is None:
            return None
        return (moment(end.time) - moment(self.header.started_at)) // timedelta(seconds=1)

    def measured(self) -> Measured:
        """The three inputs of scoring. Raises RefusedError when the seconds are unknown."""
        seconds = self.seconds
        if seconds is None:
            raise RefusedError(
                f"scoring the run {self.header.run_id}",
                "its seconds are unknown: the transcript has no clock and states none",
                "state them (bench scenario import --seconds N)",
            )
        items = [
            Evidence(event.text or "", event.passed_check)
            for event in self.of_type("evidence")
            if _counts(event)
        ]
        artifact = self.artifact
        if artifact is not None:
            items.append(Evidence(artifact))
        return Measured(len(self.of_type("step")), seconds, tuple(items))


def _counts(event: Event) -> bool:
    """A check that failed is on record and is evidence of nothing."""
    return event.check is None or event.check.passed


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def moment(text: str) -> datetime:
    """A time of a trace."""
    return datetime.fromisoformat(text).astimezone(UTC)


def time_text(at: datetime) -> str:
    """A moment as traces write it."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def new_run_id() -> str:
    """The id of a run that is about to start."""
    return str(uuid.uuid4())


def trace_path(folder: Path, run_id: str) -> Path:
    """Where a run's trace is; UsageError unless the id is a UUID, so that no id becomes a path unchecked."""
    if not _UUID.fullmatch(run_id):
        raise UsageError(
            "finding a trace", f"{describe(run_id)} is no run id", "a run id is a UUID in lower case"
        )
    return folder / f"{run_id}.jsonl"


def find_trace(folders: Sequence[Path], run_id: str) -> Path:
    """The trace of a run in the first of the folders that has it; NotFoundError names where it was looked for."""
    paths = [trace_path(folder, run_id) for folder in folders]
    for path in paths:
        if path.is_file():
            return path
    places = ", ".join(map(str, paths))
    raise NotFoundError(
        f"finding the trace of {run_id}", f"there is none at {places}", "name its folder with --traces"
    )


def read_trace(path: Path) -> Trace:
    """Read a trace. Raises DocumentError naming the file and every line that keeps it from being scored."""
    rows = read_jsonl(path)
    problems: list[Problem] = []
    if not rows.rows:
        raise DocumentError([Problem(str(path), None, "", "holds no run: expected a header line")])
    header = _line(path, rows.lines[0], rows.rows[0], Header, problems)
    events: list[tuple[int, Event]] = []
    for number, row in zip(rows.lines[1:], rows.rows[1:], strict=True):
        if isinstance(row, dict) and "run_id" in row:
            problems.append(
                Problem(str(path), number, "", "is the header of a second run: expected one run a file")
            )
            continue
        event = _line(path, number, row, Event, problems)
        if event is not None:
            events.append((number, event))
    if not problems:
        assert header is not None
        problems += _order_problems(path, header, events)
    if problems or header is None:
        raise DocumentError(problems)
    return Trace(header, tuple(event for _, event in events), tuple(number for number, _ in events))


def _line(path: Path, number: int, row: object, model: type[M], problems: list[Problem]) -> M | None:
    try:
        return model.model_validate(row)
    except ValidationError as error:
        problems += [Problem(str(path), number, dotted(at), text) for at, text in explain(error, model, row)]
        return None


def _order_problems(path: Path, header: Header, events: Sequence[tuple[int, Event]]) -> Iterator[Problem]:
    """What is wrong with the lines together: the file's name, seq, clock and end."""
    if path.stem != header.run_id:
        yield Problem(str(path), 1, "run_id", f"is {header.run_id}: expected the file's name, {path.stem}")
    clock, expected, ended = header.started_at, 1, False
    for number, event in events:
        if event.seq != expected:
            yield Problem(str(path), number, "seq", f"expected {expected}, found {event.seq}")
        if event.time is not None:
            if clock is not None and moment(event.time) < moment(clock):
                yield Problem(str(path), number, "time", f"{event.time} goes back behind {clock}")
            clock = event.time
        if ended:
            yield Problem(str(path), number, "", "is an event after the end")
        ended = ended or event.type == "end"
        expected = event.seq + 1
    if not ended:
        last = events[-1][0] if events else 1
        yield Problem(str(path), last, "", "the run has no end: it was cut off here")


def make_trace(header: Mapping[str, object], events: Sequence[Mapping[str, object]]) -> Trace:
    """A trace from its header's fields and its events in order, without ``schema`` and ``seq``.

    Texts are made fit for any file and cut at ``MAX_TEXT`` with a note. A time that goes back behind an earlier one or
    lies after the end, as clocks of others do, becomes null: what is kept is a trace that reads back.
    """
    built = Header.model_validate({"schema": SCHEMA, **_cleaned(header)})
    clock, end = built.started_at, events[-1].get("time") if events else None
    made: list[Event] = []
    for seq, event in enumerate(events, 1):
        fields = {"time": None, **_cleaned(event), "seq": seq}
        if not _between(clock, fields["time"], end):
            fields["time"] = None
        made.append(Event.model_validate(fields))
        clock = made[-1].time or clock
    return Trace(built, tuple(made))


def _between(clock: str | None, time: object, end: object) -> bool:
    if not isinstance(time, str):
        return True
    after = clock is None or moment(time) >= moment(clock)
    return after and (not isinstance(end, str) or moment(time) <= moment(end))


def _cleaned(fields: Mapping[str, object]) -> dict[str, object]:
    return {
        name: cut_text(value) if isinstance(value, str) else value
        for name, value in fields.items()
        if value is not None
    }


def cut_text(text: str) -> str:
    """Text that any file can hold, cut at ``MAX_TEXT`` code points with a note of what is gone."""
    clean = clean_text(text) or ""
    if len(clean) <= MAX_TEXT:
        return clean
    return f"{clean[:MAX_TEXT]}\n[cut: {len(clean) - MAX_TEXT} more characters]"


def encode_trace(trace: Trace) -> bytes:
    """The bytes of a trace's file."""
    rows = [trace.header, *trace.events]
    return b"".join(_row(row) for row in rows)


def _row(row: StrictModel) -> bytes:
    fields = row.model_dump(by_alias=True, exclude_none=True)
    if isinstance(row, Event):
        fields.setdefault("time", None)
        fields = {name: fields[name] for name in ("seq", "time", "type")} | fields
    return json.dumps(fields, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def write_trace(folder: Path, trace: Trace) -> Path:
    """Write a trace, whole, where there is none of that run yet; RefusedError where there is."""
    path = trace_path(folder, trace.header.run_id)
    if not LocalFiles(folder).create(path.name, encode_trace(trace)):
        raise RefusedError(
            f"writing the trace {path}",
            "there is one already",
            "a trace is never overwritten; remove it first",
        )
    return path
