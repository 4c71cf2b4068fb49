"""What one cell needs to run: a description that can cross a thread or a process, and the tools of the trade.

No decisions here: ``cell`` runs a job, ``verification`` checks its candidate, ``outcome`` names what came of it.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bench_pipeline.evaluations import Setup
from bench_pipeline.execution.gateway import Gateway
from bench_pipeline.execution.redaction import Redactor
from bench_pipeline.execution.sandbox import Limits, Sandbox
from bench_pipeline.execution.workspace import Workspaces
from bench_pipeline.tasks import Task

if TYPE_CHECKING:
    from bench_pipeline.execution.signals import Looked


@dataclass(frozen=True)
class CellJob:
    """One cell, resolved: everything its keys are made of, as things that can be used.

    ``base_tree`` is the immutable tree that work starts from; ``tool_files`` the project files that the tools
    name, by tool; ``predictions`` the patch that each replaying step delivers (None: no row for this task).
    ``reusable`` is false where setup commands could leave something outside the tree. ``before`` is what the
    signals of a golden task say of the base. ``recordings`` answer the tools in place of their models, by step;
    None in a cell that is no replay.
    """

    identity: str
    run_key: str
    verify_key: str
    task: Task
    setup: Setup
    attempt: int
    base_tree: Path
    limits: Limits
    verify_limits: Limits
    reusable: bool = True
    predictions: Mapping[str, bytes | None] = field(default_factory=dict)
    tool_files: Mapping[str, Path] = field(default_factory=dict)
    before: "Looked | None" = None
    recordings: Mapping[str, bytes] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Kit:
    """What running needs besides the job.

    ``keep`` stores a file or bytes as an artifact, redacted, and returns its digest; ``keep_exactly`` stores
    bytes that are redacted already. ``denied`` are folders of the host that no cell has any business in.
    ``cancel`` is set when running cells have to stop. ``gateway`` leads to model APIs; None where there are none.
    ``record``: what is asked and answered there is kept.
    """

    sandbox: Sandbox
    workspaces: Workspaces
    keep: Callable[[Path | bytes, str], str]
    keep_exactly: Callable[[bytes, str], str]
    redactor: Redactor
    denied: tuple[Path, ...] = ()
    cancel: threading.Event = field(default_factory=threading.Event)
    gateway: Gateway | None = None
    record: bool = False
