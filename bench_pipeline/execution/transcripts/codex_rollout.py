"""Codex: its rollout file, which has every call with its input; without one, the items on standard output.

Standard output names the files of a change but not what was written, so it cannot tell an agent's own work
when that is read back. Files are read by shell commands here, so a list of reads cannot be given.
"""

import re
from collections.abc import Iterator

from bench_pipeline.execution.transcripts.events import WEB_SEARCH, Event, Shows, Transcript, raw, texts_in
from bench_pipeline.execution.usage.reading import Object, ToolOutputs, items, json_value, mapping

_EXIT = re.compile(r"(?:exited with code|[Ee]xit code:?) (-?\d+)")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.MULTILINE)


def _events(outputs: ToolOutputs) -> Iterator[Event]:
    if outputs.matches("rollout"):
        yield from _of_rollout(outputs)
    else:
        yield from _of_stdout(outputs)


def _of_rollout(outputs: ToolOutputs) -> Iterator[Event]:
    waiting: dict[str, Object] = {}
    for line in outputs.lines_of("rollout"):
        item = mapping(line.get("payload"))
        kind, call = raw(item.get("type")), raw(item.get("call_id"))
        if line.get("type") != "response_item":
            continue
        if kind == "message":
            came_in = item.get("role") != "assistant"
            frame: Object = {"of": raw(item.get("role"))} if came_in else {}
            yield Event("result" if came_in else "message", {**frame, "text": _said(item.get("content"))})
        elif kind == "reasoning":
            yield Event("message", {"text": _said(item.get("summary"))})
        elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
            waiting[call] = item
        elif kind in ("function_call_output", "custom_tool_call_output", "local_shell_call_output"):
            output = texts_in(item.get("output"))
            code = _EXIT.search(output[:1000])
            yield from _call(waiting.pop(call, {}), call, failed=code is not None and code[1] != "0")
            failed = {"failed": True} if code is not None and code[1] != "0" else {}
            yield Event("result", {"call": call, "text": output, **failed})
        elif kind == "web_search_call":
            yield Event("request", {"url": WEB_SEARCH, "text": texts_in(item.get("action"))})
    for call, item in waiting.items():
        yield from _call(item, call, failed=False)


def _call(item: Object, call: str, *, failed: bool) -> Iterator[Event]:
    if not item:
        return
    name, text = raw(item.get("name")), raw(item.get("input"))
    frame: Object = {"of": name, "call": call, **({"failed": True} if failed else {})}
    if name == "apply_patch" and text:
        for old, new in _PATCHED.findall(text) or [("", "")]:
            yield Event("write", {**frame, "path": old or new, "text": text})
            text = ""
        return
    given = json_value(raw(item.get("arguments")).encode("utf-8", "replace"))
    command = mapping(given).get("cmd") or mapping(given).get("command") or given or item.get("action")
    shown = " ".join(map(raw, command)) if isinstance(command, list) else texts_in(command)
    yield Event("command", {**frame, "text": text or shown})


def _said(content: object) -> str:
    return "\n".join(raw(part.get("text")) for part in map(mapping, items(content)))


def _of_stdout(outputs: ToolOutputs) -> Iterator[Event]:
    for line in outputs.stdout_lines():
        item = mapping(line.get("item"))
        kind, call = item.get("type"), raw(item.get("id"))
        if line.get("type") != "item.completed":
            continue
        if kind in ("agent_message", "reasoning"):
            yield Event("message", {"text": raw(item.get("text"))})
        elif kind == "command_execution":
            failed = {"failed": True} if item.get("exit_code") not in (None, 0) else {}
            yield Event("command", {"call": call, "text": raw(item.get("command")), **failed})
            yield Event("result", {"call": call, "text": raw(item.get("aggregated_output")), **failed})
        elif kind == "file_change":
            for change in map(mapping, items(item.get("changes"))):
                failed = {"failed": True} if item.get("status") == "failed" else {}
                yield Event("write", {"call": call, "path": raw(change.get("path")), **failed})
        elif kind == "web_search":
            yield Event("request", {"call": call, "url": WEB_SEARCH, "text": raw(item.get("query"))})
        elif kind == "mcp_tool_call":
            yield Event("message", {"call": call, "text": texts_in(item.get("arguments"))})
            yield Event("result", {"call": call, "text": texts_in(item.get("result"))})


TRANSCRIPT = Transcript(Shows(("message", "command", "result"), writes=True, commands=True), _events)
