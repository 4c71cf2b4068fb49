"""What an agent did, from what its tool wrote: one module per output format.

What belongs here: parsing a transcript into events. What does not: how a run ended (``execution.usage``) and
keeping events (``execution.recording``). A transcript is the tool's own account: what it leaves out is not
seen here.
"""

from collections.abc import Mapping
from types import MappingProxyType

from bench_pipeline.execution.transcripts import (
    aider_chat,
    bench_json,
    claude_stream,
    codex_rollout,
    mini_trajectory,
    opencode_jsonl,
)
from bench_pipeline.execution.transcripts.events import Event, Shows, Transcript
from bench_pipeline.execution.usage import NO_PARSER

__all__ = ["TRANSCRIPTS", "Event", "Shows", "Transcript", "transcript_of"]

_NOTHING = Transcript(Shows(expected=()), lambda _: iter(()))

TRANSCRIPTS: Mapping[str, Transcript] = MappingProxyType(
    {
        "claude-stream-json": claude_stream.TRANSCRIPT,
        "codex-jsonl": codex_rollout.TRANSCRIPT,
        "opencode-jsonl": opencode_jsonl.TRANSCRIPT,
        "mini-trajectory": mini_trajectory.TRANSCRIPT,
        "aider-analytics": aider_chat.TRANSCRIPT,
        "bench-json": bench_json.TRANSCRIPT,
        NO_PARSER: _NOTHING,
    }
)


def transcript_of(usage_format: str) -> Transcript:
    """How the transcript of a usage format is read; a format without one shows nothing."""
    return TRANSCRIPTS.get(usage_format, _NOTHING)
