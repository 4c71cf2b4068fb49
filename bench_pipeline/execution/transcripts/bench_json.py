"""``bench-json``: the transcript of tools that people write.

Every line of standard output that is a JSON object with the key ``activity`` is one event:

    {"activity": "read", "path": "src/a.py", "text": "..."}

``activity`` is message, read, write, command, result, request or response; ``text``, ``path``, ``url``,
``call`` (the same for a call and its result) and ``failed`` may be given. Other keys are passed over.
"""

from collections.abc import Iterator

from bench_pipeline.execution.transcripts.events import Event, Shows, Transcript
from bench_pipeline.execution.usage.reading import ToolOutputs
from bench_pipeline.journal import INCOMING, OUTGOING


def _events(outputs: ToolOutputs) -> Iterator[Event]:
    for line in outputs.stdout_lines():
        kind = line.get("activity")
        if isinstance(kind, str) and kind in (*INCOMING, *OUTGOING):
            texts = {
                key: line[key]
                for key in ("text", "path", "url", "call", "of")
                if isinstance(line.get(key), str)
            }
            yield Event(kind, {**texts, **({"failed": True} if line.get("failed") is True else {})})


TRANSCRIPT = Transcript(Shows((*INCOMING, *OUTGOING), True, True, True), _events)
