"""Claude Code: the messages of ``--output-format stream-json``.

A call and its result are told together when the result comes, so that a refused write is no write; calls that
never came back are told at the end.
"""

from collections.abc import Iterator

from bench_pipeline.execution.transcripts.events import WEB_SEARCH, Event, Shows, Transcript, raw, texts_in
from bench_pipeline.execution.usage.reading import Object, ToolOutputs, items, mapping

_WRITES = ("Write", "Edit", "MultiEdit", "NotebookEdit")
_WRITTEN = ("content", "new_string", "new_source")
_LOOKS = ("Grep", "Glob", "LS")


def _events(outputs: ToolOutputs) -> Iterator[Event]:
    waiting: dict[str, Object] = {}
    for line in outputs.stdout_lines():
        message = mapping(line.get("message"))
        content = message.get("content")
        if line.get("type") == "assistant":
            for block in map(mapping, items(content)):
                if block.get("type") == "tool_use":
                    waiting[raw(block.get("id"))] = block
                elif said := raw(block.get("text")) or raw(block.get("thinking")):
                    yield Event("message", {"text": said})
        elif line.get("type") == "user":
            if isinstance(content, str):
                yield Event("result", {"of": "user", "text": content})
            for block in map(mapping, items(content)):
                yield from _given(block, waiting, mapping(line.get("tool_use_result")))
    for call in waiting.values():
        yield from _call(call, failed=None)


def _given(block: Object, waiting: dict[str, Object], detail: Object) -> Iterator[Event]:
    if block.get("type") != "tool_result":
        yield Event("result", {"of": "user", "text": texts_in(block.get("text"))})
        return
    call = waiting.pop(raw(block.get("tool_use_id")), {})
    failed = block.get("is_error") is True
    text = texts_in(block.get("content"))
    name, given = raw(call.get("name")), mapping(call.get("input"))
    path = raw(given.get("file_path")) or raw(given.get("notebook_path")) or raw(given.get("path"))
    yield from _call(call, failed=failed)
    if name in ("Read", "NotebookRead"):
        # The file without line numbers, where the program keeps it.
        whole = raw(mapping(detail.get("file")).get("content"))
        yield Event("read", {"path": path, "text": text if failed else whole or text, "failed": failed})
        return
    payload: Object = {"of": name, "call": raw(call.get("id")), "text": text, "failed": failed}
    if name in _LOOKS and path:
        payload["path"] = path
    yield Event("response" if name in ("WebFetch", "WebSearch") else "result", payload)


def _call(call: Object, *, failed: bool | None) -> Iterator[Event]:
    """What the agent put out with a call; ``failed`` is None when nothing is known of its end."""
    name, given = raw(call.get("name")), mapping(call.get("input"))
    frame: Object = {"of": name, "call": raw(call.get("id"))}
    if failed:
        frame["failed"] = True
    if name == "Bash":
        yield Event("command", {**frame, "text": raw(given.get("command"))})
    elif name in _WRITES:
        edits = [given, *map(mapping, items(given.get("edits")))]
        text = "\n".join(filter(None, (raw(edit.get(key)) for edit in edits for key in _WRITTEN)))
        path = raw(given.get("file_path")) or raw(given.get("notebook_path"))
        yield Event("write", {**frame, "path": path, "text": text})
    elif name in ("WebFetch", "WebSearch"):
        url = raw(given.get("url")) or WEB_SEARCH
        yield Event(
            "request", {**frame, "url": url, "text": raw(given.get("prompt")) or raw(given.get("query"))}
        )
    elif name not in ("Read", "NotebookRead", *_LOOKS, ""):
        yield Event("message", {**frame, "text": texts_in(given)})


TRANSCRIPT = Transcript(Shows(("message", "read", "command", "result"), True, True, True), _events)
