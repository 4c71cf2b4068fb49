"""opencode: the ``text`` and ``tool_use`` lines of ``--format json``; a call is told when it has ended."""

from collections.abc import Iterator

from bench_pipeline.execution.transcripts.events import Event, Shows, Transcript, raw, texts_in
from bench_pipeline.execution.usage.reading import Object, ToolOutputs, mapping

_WRITES = ("write", "edit", "multiedit", "patch", "apply_patch")


def _events(outputs: ToolOutputs) -> Iterator[Event]:
    for line in outputs.stdout_lines():
        part = mapping(line.get("part"))
        if line.get("type") in ("text", "reasoning"):
            yield Event("message", {"text": raw(part.get("text"))})
        elif line.get("type") == "tool_use":
            yield from _tool(part)


def _tool(part: Object) -> Iterator[Event]:
    name, state = raw(part.get("tool")), mapping(part.get("state"))
    given, detail = mapping(state.get("input")), mapping(state.get("metadata"))
    failed = state.get("status") != "completed" or (detail.get("exit") not in (None, 0))
    output = raw(state.get("output")) or raw(state.get("error"))
    path = raw(given.get("filePath")) or raw(given.get("path"))
    frame: Object = {"of": name, "call": raw(part.get("callID"))}
    if failed:
        frame["failed"] = True
    if name == "read":
        # The file without line numbers, where the program keeps it.
        shown = raw(mapping(detail.get("display")).get("text"))
        yield Event("read", {**frame, "path": path, "text": output if failed else shown or output})
        return
    if name == "bash":
        yield Event("command", {**frame, "text": raw(given.get("command"))})
    elif name in _WRITES:
        written = {key: value for key, value in given.items() if key not in ("filePath", "oldString")}
        yield Event("write", {**frame, "path": path, "text": texts_in(written)})
    elif name == "webfetch":
        yield Event("request", {**frame, "url": raw(given.get("url"))})
        yield Event("response", {**frame, "text": output})
        return
    elif name not in ("glob", "grep", "list"):
        yield Event("message", {**frame, "text": texts_in(given)})
    yield Event(
        "result", {**frame, "text": output, **({"path": path} if path and name not in _WRITES else {})}
    )


TRANSCRIPT = Transcript(Shows(("message", "read", "command", "result"), True, True, True), _events)
