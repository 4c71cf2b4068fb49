"""Harbor: a trajectory in the Agent Trajectory Interchange Format (ATIF), which several agents write."""

from bench_pipeline.execution.usage.reading import Object, count, items, json_value, mapping, text
from bench_pipeline.scenarios.importers.imported import Event, Imported, Transcript, Unmapped, from_iso, step

_VERSION = "ATIF-"


def read(transcript: Transcript) -> Imported:
    """Steps are tool calls of the agent, and messages of it that call none.

    Raises ValueError in words for a file of another format.
    """
    whole = mapping(json_value(transcript.outputs.read("trajectory") or b""))
    if not (text(whole.get("schema_version")) or "").startswith(_VERSION):
        raise ValueError(
            f"is no trajectory: expected a JSON object whose schema_version starts with {_VERSION}"
        )
    agent, unmapped, steps, times = mapping(whole.get("agent")), Unmapped(), list[Event](), list[str]()
    answer = ""
    for item in map(mapping, items(whole.get("steps"))):
        at = from_iso(item.get("timestamp"))
        times += [at] if at else []
        if item.get("source") != "agent":
            unmapped.add(f"steps of the {text(item.get('source'))}")
            continue
        calls = [mapping(call) for call in items(item.get("tool_calls"))]
        steps += [step(text(call.get("function_name")), _argument(call), at) for call in calls]
        answer = _words(item.get("message")) or answer
        if not calls:
            steps.append(step(None, _words(item.get("message")), at))
        if item.get("reasoning_content"):
            unmapped.add("texts of reasoning")
    return Imported(
        harness=text(agent.get("name")) or "harbor",
        model=text(agent.get("model_name")),
        started_at=times[0] if times else None,
        events=(*steps, *_closing(whole, answer)),
        # It is written when the run has ended.
        end={"type": "end", "time": times[-1] if times else None},
        unmapped=unmapped.listed(),
    )


def _argument(call: Object) -> str:
    given = mapping(call.get("arguments"))
    return next((text(value) or "" for value in given.values() if isinstance(value, str)), "")


def _words(message: object) -> str:
    if isinstance(message, str):
        return message
    return "\n".join(text(mapping(part).get("text")) or "" for part in items(message)).strip()


def _closing(whole: Object, answer: str) -> list[Event]:
    events: list[Event] = [{"type": "artifact", "text": answer}] if answer else []
    final = mapping(whole.get("final_metrics"))
    prompt, completion = count(final.get("total_prompt_tokens")), count(final.get("total_completion_tokens"))
    if prompt is not None and completion is not None:
        events.append({"type": "usage", "prompt_tokens": prompt, "completion_tokens": completion})
    return events
