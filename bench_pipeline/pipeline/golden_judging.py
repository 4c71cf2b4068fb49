"""Having the changes of golden cells judged by a model, and keeping what it says beside other judgements.

What belongs here: which changes are judged, the calls side by side, the files. What does not: the prompt and its answer
(``golden.judge``) and one call (``providers``).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from bench_pipeline.errors import NothingToEvaluateError, UsageError
from bench_pipeline.evaluations.labels import file_safe
from bench_pipeline.golden.judge import Ask, Change, UnreadableError, ask_judge
from bench_pipeline.golden.judgements import FOLDER
from bench_pipeline.pipeline.golden_results import gather
from bench_pipeline.pipeline.judges import Judge, named_judge, pace_of
from bench_pipeline.providers.chat import ChatClient, ChatFailure
from bench_pipeline.providers.endpoint import read_endpoint
from bench_pipeline.providers.retrying import CALL_S, Patient
from bench_pipeline.store.files import LocalFiles

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench

# Of an answer: four marks and a few sentences.
_MAX_TOKENS = 1000
_CONCURRENCY = 8

Row = dict[str, Any]


@dataclass(frozen=True)
class JudgingRequest:
    """Which changes are judged, and by whom; what is None comes from ``judge`` in config.yaml.

    ``again`` also asks about changes that have marks of a model; those of a person are never replaced.
    """

    setup: str | None = None
    attempt: int | None = None
    tasks: tuple[str, ...] = ()
    again: bool = False
    endpoint: str | None = None
    model: str | None = None
    key_env: str | None = None
    call_s: float = CALL_S


@dataclass
class Judged:
    """What came of it: a record for each change that was asked about, and how many had marks or no change."""

    records: list[Row] = field(default_factory=list)
    kept: int = 0
    without_change: int = 0

    @property
    def failed(self) -> int:
        """How many changes the judge failed on."""
        return sum("failed" in record for record in self.records)

    def document(self) -> dict[str, object]:
        """All of it as a JSON-able document."""
        return {
            "judged": len(self.records) - self.failed,
            "failed": self.failed,
            "kept": self.kept,
            "without_change": self.without_change,
            "judgements": self.records,
        }


def judge_changes(bench: "Bench", request: JudgingRequest) -> Judged:
    """Ask a judge about the changes of executed golden cells; each judgement is on disk before the next is reported.

    Raises:
        UsageError, RefusedError: no judge is named, or its endpoint or key cannot be used; before any call.
        NothingToEvaluateError: no cell has a change that could be judged.
    """
    judge = _chosen_judge(bench, request)
    rows = [row for row in gather(bench).results.to_pylist() if _wanted(row, request)]
    changed = [row for row in rows if row["candidate"] is not None]
    if not changed:
        raise NothingToEvaluateError(
            "judging changes", "no executed golden cell has a change", "bench run makes some"
        )
    own = _by_models(bench, changed)
    todo = [row for row in changed if row["judged"] != "judged" or (request.again and _place(row) in own)]
    done = Judged(kept=len(changed) - len(todo), without_change=len(rows) - len(changed))
    with ChatClient(
        judge.endpoint, judge.model, judge.key(), temperature=0.0, max_tokens=_MAX_TOKENS
    ) as client:
        patient = Patient(client, call_s=request.call_s, pace=pace_of(bench, judge))
        for row, record in _asked(bench, todo, lambda prompt: patient.ask(prompt).content, judge):
            _keep(bench, row, record)
            done.records.append({"setup": row["setup"], "attempt": row["attempt"], **record})
    done.records.sort(key=lambda record: (record["setup"], record["attempt"], record["task_id"]))
    return done


def _chosen_judge(bench: "Bench", request: JudgingRequest) -> Judge:
    config = bench.project.config
    if request.endpoint is None:
        if config.judge.upstream is None:
            remedy = "give --endpoint and --model, or set judge and upstreams in config.yaml"
            raise UsageError("choosing a judge", "none is named", remedy)
        judge = named_judge(config, model=request.model)
        return judge if request.key_env is None else replace(judge, key_env=request.key_env)
    model = request.model or config.judge.model
    if model is None:
        remedy = "give --model, or set judge.model in config.yaml"
        raise UsageError("choosing a judge", "it has no model", remedy)
    return Judge(read_endpoint(request.endpoint), model, request.key_env, _CONCURRENCY)


def _wanted(row: Row, request: JudgingRequest) -> bool:
    return (
        row["source"] == "executed"
        and row["attempted"]
        and request.setup in {None, row["setup"]}
        and request.attempt in {None, row["attempt"]}
        and (not request.tasks or row["task_id"] in request.tasks)
    )


def _asked(bench: "Bench", rows: Sequence[Row], ask: Ask, judge: Judge) -> Iterator[tuple[Row, Row]]:
    """Each row with the record that its judgement comes to, as they come."""
    pool = ThreadPoolExecutor(judge.concurrency, thread_name_prefix="judge")
    futures: dict[Future[Row], Row] = {}
    try:
        for row in rows:
            change = Change(bench.golden.get(row["task_id"]), bench.store.artifacts.get(row["candidate"]))
            futures[pool.submit(_record, change, ask)] = row
        for future in as_completed(futures):
            row = futures[future]
            yield row, {**future.result(), "judge": judge.model, "candidate": row["candidate"]}
    finally:
        pool.shutdown(cancel_futures=True)


def _record(change: Change, ask: Ask) -> Row:
    """The line of a judgements file: marks, or why there are none. A failure is never a low mark."""
    try:
        marks = ask_judge(change, ask)
    except (ChatFailure, UnreadableError) as error:
        return {"task_id": change.task.id, "failed": str(error)}
    return marks.model_dump(mode="json")


def _file(row: Row) -> str:
    return f"{FOLDER}/{file_safe(row['setup'])}/{row['attempt']}.jsonl"


def _place(row: Row) -> tuple[str, str]:
    return _file(row), row["task_id"]


def _by_models(bench: "Bench", rows: Sequence[Row]) -> set[tuple[str, str]]:
    """The judgements that say which model made them, by file and task."""
    files = LocalFiles(bench.project.root)
    return {
        (name, str(value["task_id"]))
        for name in sorted({_file(row) for row in rows})
        for _, value in _lines(files, name)
        if value.get("judge") is not None and "task_id" in value
    }


def _keep(bench: "Bench", row: Row, record: Row) -> None:
    """Put a record into its file, in place of the task's earlier one; all other lines stay as they are."""
    files = LocalFiles(bench.project.root)
    name = _file(row)
    with bench.store.lock(f"judgements-{row['attempt']}"):
        lines = [text for text, value in _lines(files, name) if value.get("task_id") != record["task_id"]]
        lines.append(json.dumps(record, ensure_ascii=True, allow_nan=False).encode())
        files.write(name, b"".join(line + b"\n" for line in lines))


def _lines(files: LocalFiles, name: str) -> Iterator[tuple[bytes, Mapping[str, object]]]:
    """The lines of a file that are not blank, each with its record, empty for one that is none."""
    try:
        data = files.read(name)
    except FileNotFoundError:
        return
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError:
            value = None
        yield line, value if isinstance(value, dict) else {}
