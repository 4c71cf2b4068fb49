"""mini-swe-agent: the trajectory file. Its only tool is a shell, so no list of files can be given."""

from collections.abc import Iterator

from bench_pipeline.execution.transcripts.events import Event, Shows, Transcript, raw, texts_in
from bench_pipeline.execution.usage.reading import Object, ToolOutputs, items, json_value, mapping


def _events(outputs: ToolOutputs) -> Iterator[Event]:
    whole = mapping(json_value(outputs.read("trajectory") or b""))
    for message in map(mapping, items(whole.get("messages"))):
        extra, role = mapping(message.get("extra")), message.get("role")
        if role == "assistant":
            yield Event(
                "message", {"text": texts_in([message.get("reasoning_content"), message.get("content")])}
            )
            for action in map(mapping, items(extra.get("actions"))):
                call = raw(action.get("tool_call_id"))
                yield Event("command", {"call": call, "text": raw(action.get("command"))})
        elif role == "tool":
            failed = {"failed": True} if extra.get("returncode") not in (None, 0) else {}
            text = raw(extra.get("raw_output")) or texts_in(message.get("content"))
            yield Event("result", {"call": raw(message.get("tool_call_id")), "text": text, **failed})
        elif role in ("user", "exit"):
            given: Object = {"of": role, "text": texts_in(message.get("content"))}
            yield Event("result", given)


TRANSCRIPT = Transcript(Shows(("command",), commands=True), _events)
