"""Sandboxes: running one command of a cell so that it is held, bounded, ended and seen.

What belongs here: the backends and the choice among them. What does not: the folders that a cell works in
(``workspace``) and what a command's output means (``usage``, ``outcome``).
"""

from bench_pipeline.execution.sandbox.base import (
    Command,
    Limits,
    Mount,
    Place,
    PlacePaths,
    ProcessEnd,
    Sandbox,
    Served,
)
from bench_pipeline.execution.sandbox.choose import open_sandbox

__all__ = [
    "Command",
    "Limits",
    "Mount",
    "Place",
    "PlacePaths",
    "ProcessEnd",
    "Sandbox",
    "Served",
    "open_sandbox",
]
