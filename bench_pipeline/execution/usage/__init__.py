"""How a tool says that it ended, and what it used: one parser module per output format.

What belongs here: parsing what a tool wrote into a ToolEnd. What does not: running the tool, prices, and
what the end means for the cell (execution/outcome).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from bench_pipeline.errors import NotFoundError
from bench_pipeline.execution.usage import (
    aider_analytics,
    bench_json,
    claude_stream,
    codex_jsonl,
    mini_trajectory,
    opencode_jsonl,
)
from bench_pipeline.execution.usage.end import ErrorClass, State, ToolEnd, merge_ends
from bench_pipeline.execution.usage.reading import ToolOutputs

__all__ = ["NO_PARSER", "PARSERS", "ErrorClass", "State", "ToolEnd", "ToolOutputs", "merge_ends", "parse_end"]

# The format of tools whose exit status is all there is.
NO_PARSER = "none"

PARSERS: Mapping[str, Callable[[ToolOutputs], ToolEnd]] = MappingProxyType(
    {
        "claude-stream-json": claude_stream.parse,
        "codex-jsonl": codex_jsonl.parse,
        "opencode-jsonl": opencode_jsonl.parse,
        "mini-trajectory": mini_trajectory.parse,
        "aider-analytics": aider_analytics.parse,
        "bench-json": bench_json.parse,
        NO_PARSER: lambda _: ToolEnd("exit"),
    }
)


def parse_end(usage_format: str, outputs: ToolOutputs) -> ToolEnd:
    """What the output in ``usage_format`` says about the run.

    Never raises for what a tool wrote, however broken; raises NotFoundError for an unknown format and OSError
    when the disk fails.
    """
    parser = PARSERS.get(usage_format)
    if parser is None:
        known = ", ".join(PARSERS)
        raise NotFoundError(
            "reading what a tool used", f"no usage format {usage_format!r}", f"known: {known}"
        )
    return parser(outputs)
