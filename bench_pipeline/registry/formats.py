"""The output formats that a tool may name under ``usage``, and the files that each reads.

What belongs here: names, so that a definition can be checked without loading a parser. What does not: the
parsers (execution/usage), one for each format.
"""

from collections.abc import Mapping
from types import MappingProxyType

# Format -> the names that usage.files may give a pattern for, relative to the tool's HOME.
USAGE_FORMATS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "claude-stream-json": frozenset({"session"}),
        "codex-jsonl": frozenset({"rollout"}),
        "opencode-jsonl": frozenset(),
        "mini-trajectory": frozenset({"trajectory"}),
        "aider-analytics": frozenset({"analytics", "chat"}),
        "bench-json": frozenset({"result"}),
        "none": frozenset(),
    }
)
