"""Claude Code: the lines of ``--output-format stream-json``, each block of a message a line of its own."""

from collections.abc import Iterator

from bench_pipeline.execution.usage import parse_end
from bench_pipeline.execution.usage.reading import Object, count, items, mapping, text
from bench_pipeline.scenarios.importers.imported import (
    Event,
    Imported,
    Transcript,
    Unmapped,
    closing,
    ended,
    failure,
    from_iso,
    step,
)

_SYNTHETIC = "<synthetic>"
_ARGUMENTS = ("command", "file_path", "notebook_path", "pattern", "url", "query", "prompt", "description")


def read(transcript: Transcript) -> Imported:
    """Steps are tool calls, sub-agents' too, and messages that call none."""
    unmapped, model, times, seconds = Unmapped(), None, list[str](), None
    messages: dict[str, list[tuple[Object, str | None]]] = {}
    for number, line in enumerate(transcript.outputs.stdout_lines()):
        kind, at = line.get("type"), from_iso(line.get("timestamp"))
        times += [at] if at else []
        if kind == "assistant":
            message = mapping(line.get("message"))
            if message.get("model") == _SYNTHETIC:
                unmapped.add("messages of the program itself")
                continue
            model = model or text(message.get("model"))
            blocks = messages.setdefault(text(message.get("id")) or f"line {number}", [])
            blocks += [(mapping(block), at) for block in items(message.get("content"))]
            if line.get("parent_tool_use_id") is not None:
                unmapped.add("blocks of sub-agents, whose calls are counted as steps of the run")
        elif kind == "result":
            milliseconds = count(line.get("duration_ms"))
            seconds = None if milliseconds is None else milliseconds // 1000
        elif kind != "user":
            unmapped.add(f"lines of type {'/'.join(filter(None, (text(kind), text(line.get('subtype')))))}")
    steps = [event for blocks in messages.values() for event in _steps(blocks, unmapped)]
    end = parse_end("claude-stream-json", transcript.outputs)
    return Imported(
        harness="claude-code",
        model=model,
        started_at=times[0] if times else None,
        events=(*steps, *closing(end)),
        end={"type": "end", "time": times[-1] if times else None, "seconds": seconds} if ended(end) else None,
        unmapped=unmapped.listed(*_of_end(end.cost_reported_usd)),
        failure=failure(end),
    )


def _steps(blocks: list[tuple[Object, str | None]], unmapped: Unmapped) -> Iterator[Event]:
    calls = [(block, at) for block, at in blocks if block.get("type") in {"tool_use", "server_tool_use"}]
    for block, at in calls:
        given = mapping(block.get("input"))
        summary = next((text(given[name]) for name in _ARGUMENTS if text(given.get(name))), "")
        yield step(text(block.get("name")), summary or "", at)
    for block, at in blocks:
        kind = block.get("type")
        if kind == "text" and not calls:
            yield step(None, text(block.get("text")) or "", at)
            calls = [(block, at)]
        elif kind == "text":
            unmapped.add("texts beside tool calls")
        elif kind not in {"tool_use", "server_tool_use"}:
            unmapped.add(f"blocks of type {text(kind)}")


def _of_end(cost: float | None) -> list[str]:
    return [] if cost is None else [f"its own cost: {cost:.6g} USD"]
