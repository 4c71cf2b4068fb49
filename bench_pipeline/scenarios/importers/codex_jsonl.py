"""Codex: the items of ``codex exec --json``. It has no clock, so the seconds have to be stated."""

from bench_pipeline.execution.usage import parse_end
from bench_pipeline.execution.usage.reading import Object, items, mapping, text
from bench_pipeline.scenarios.importers.imported import (
    Event,
    Imported,
    Transcript,
    Unmapped,
    closing,
    ended,
    failure,
    step,
)

_CALLS = ("command_execution", "file_change", "mcp_tool_call", "web_search")


def read(transcript: Transcript) -> Imported:
    """Steps are the calls that came to an end, and the last message when no call follows it."""
    unmapped, steps, answer = Unmapped(), list[Event](), None
    for line in transcript.outputs.stdout_lines():
        kind, item = line.get("type"), mapping(line.get("item"))
        if kind != "item.completed":
            if kind not in {"item.started", "turn.completed", "turn.failed"}:
                unmapped.add(f"lines of type {text(kind)}")
            continue
        if item.get("type") == "agent_message":
            if answer is not None:
                unmapped.add("messages between calls")
            answer = item
        elif item.get("type") in _CALLS:
            if answer is not None:
                unmapped.add("messages between calls")
            answer = None
            steps.append(step(text(item.get("type")), _summary(item)))
        else:
            unmapped.add(f"items of type {text(item.get('type'))}")
    if answer is not None:
        steps.append(step(None, text(answer.get("text")) or ""))
    end = parse_end("codex-jsonl", transcript.outputs)
    return Imported(
        harness="codex",
        model=None,
        started_at=None,
        events=(*steps, *closing(end)),
        end={"type": "end"} if ended(end) else None,
        unmapped=unmapped.listed("times: it has no clock", "the model: it is not named"),
        failure=failure(end),
    )


def _summary(item: Object) -> str:
    paths = [text(mapping(change).get("path")) or "" for change in items(item.get("changes"))]
    return text(item.get("command")) or text(item.get("query")) or text(item.get("tool")) or " ".join(paths)
