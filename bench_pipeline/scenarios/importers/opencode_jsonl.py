"""opencode: the lines of ``--format json``; a call has a line when it has ended."""

from bench_pipeline.execution.usage import parse_end
from bench_pipeline.execution.usage.reading import Object, mapping, text
from bench_pipeline.scenarios.importers.imported import (
    Event,
    Imported,
    Transcript,
    Unmapped,
    closing,
    ended,
    failure,
    from_epoch,
    step,
)


def read(transcript: Transcript) -> Imported:
    """Steps are tool calls, and answers that call none."""
    unmapped, steps, times, calls = Unmapped(), list[Event](), list[str](), 0
    answer: Event | None = None
    for line in transcript.outputs.stdout_lines():
        kind, part = line.get("type"), mapping(line.get("part"))
        stamp = line.get("timestamp")
        at = from_epoch(stamp / 1000) if isinstance(stamp, int | float) else None
        times += [at] if at else []
        if kind == "step_start":
            calls, answer = 0, None
        elif kind == "tool_use":
            calls += 1
            steps.append(step(text(part.get("tool")), _summary(part), at))
        elif kind == "text":
            answer = step(None, text(part.get("text")) or "", at)
        elif kind == "step_finish":
            steps += [answer] if answer is not None and not calls else []
        else:
            unmapped.add(f"lines of type {text(kind)}")
    end = parse_end("opencode-jsonl", transcript.outputs)
    return Imported(
        harness="opencode",
        model=None,
        started_at=times[0] if times else None,
        events=(*steps, *closing(end)),
        end={"type": "end", "time": times[-1] if times else None} if ended(end) else None,
        unmapped=unmapped.listed("the time before the first line", "the model: it is not named"),
        failure=failure(end),
    )


def _summary(part: Object) -> str:
    given = mapping(mapping(part.get("state")).get("input"))
    return next((text(value) or "" for value in given.values() if isinstance(value, str)), "")
