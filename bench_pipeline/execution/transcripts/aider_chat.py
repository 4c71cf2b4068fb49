"""aider: the chat history. Edits stand in the model's own words; lines that begin with ``> `` are aider's.

Lines that begin with ``#### `` are what aider gives the model: the prompt, and the output of tests.
"""

import re
from collections.abc import Iterator

from bench_pipeline.execution.transcripts.events import Event, Shows, Transcript
from bench_pipeline.execution.usage.reading import ToolOutputs

_ADDED = re.compile(r"Added (.+) to the chat\.?\s*")
_APPLIED = re.compile(r"Applied edit to (.+?)\s*")


def _events(outputs: ToolOutputs) -> Iterator[Event]:
    chat = (outputs.read("chat") or b"").decode("utf-8", "replace")
    speaker, lines = "", list[str]()
    for line in chat.split("\n"):
        now = "aider" if line.startswith("> ") else "given" if line.startswith("#### ") else "model"
        if now != speaker and lines:
            yield from _said(speaker, lines)
            lines = []
        speaker = now
        lines.append(line.removeprefix("> ").removeprefix("#### "))
    yield from _said(speaker, lines)


def _said(speaker: str, lines: list[str]) -> Iterator[Event]:
    text = "\n".join(lines)
    if not text.strip():
        return
    if speaker == "model":
        yield Event("message", {"text": text})
        return
    if speaker == "aider":
        for line in lines:
            if added := _ADDED.fullmatch(line):
                yield Event("read", {"path": added[1]})
            elif applied := _APPLIED.fullmatch(line):
                yield Event("write", {"path": applied[1]})
    yield Event("result", {"of": speaker, "text": text})


TRANSCRIPT = Transcript(Shows(("message",), reads=True, writes=True), _events)
