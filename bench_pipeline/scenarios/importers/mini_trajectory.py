"""mini-swe-agent: the trajectory file that it writes after each step."""

from bench_pipeline.execution.usage import parse_end
from bench_pipeline.execution.usage.reading import items, json_value, mapping, text
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
    """Steps are the commands that the model gave, the submission too, and answers without one."""
    unmapped, steps, times = Unmapped(), list[Event](), list[str]()
    whole = mapping(json_value(transcript.outputs.read("trajectory") or b""))
    for message in map(mapping, items(whole.get("messages"))):
        role, extra = message.get("role"), mapping(message.get("extra"))
        at = from_epoch(extra.get("timestamp"))
        times += [at] if at else []
        if role == "assistant":
            actions = [mapping(action) for action in items(extra.get("actions"))]
            steps += [step("bash", text(action.get("command")) or "", at) for action in actions]
            if not actions:
                steps.append(step(None, text(message.get("content")) or "", at))
            if message.get("reasoning_content"):
                unmapped.add("texts of reasoning")
        elif role == "user" and mapping(extra.get("response")):
            steps.append(step(None, "an answer without a command that can be read", at))
        elif role != "tool":
            unmapped.add(f"messages of role {text(role)}")
    end = parse_end("mini-trajectory", transcript.outputs)
    config = mapping(mapping(mapping(whole.get("info")).get("config")).get("model"))
    return Imported(
        harness="mini-swe-agent",
        model=text(config.get("model_name")),
        started_at=times[0] if times else None,
        events=(*steps, *closing(end)),
        end={"type": "end", "time": times[-1] if times else None} if ended(end) else None,
        unmapped=unmapped.listed("the time before the first answer"),
        failure=failure(end),
    )
