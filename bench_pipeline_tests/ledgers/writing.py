"""Rows and files of ledgers for tests."""

import json
from pathlib import Path
from typing import Any

FAIR = {
    "route": "npc-agent-local",
    "valid": True,
    "passed": True,
    "partial": 1.0,
    "f2p": 1.0,
    "input_tokens": 100,
}


def line(**fields: Any) -> str:
    """A row of a fair route, with these fields changed; one that is None is left out."""
    return json.dumps({name: value for name, value in {**FAIR, **fields}.items() if value is not None})


def write_ledger(path: Path, *lines: str, end: str = "\n") -> Path:
    """A ledger file of these lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + end, encoding="utf-8", newline="")
    return path
