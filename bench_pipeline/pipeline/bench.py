"""The workbench of one process: a project with its registry, prices, store and sandbox, each opened when used.

Use cases receive a ``Bench`` and nothing else that is global; a test builds one over a temporary project.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from bench_pipeline.execution.base_trees import BaseTrees
    from bench_pipeline.execution.sandbox import Sandbox
    from bench_pipeline.execution.workspace import Workspaces
    from bench_pipeline.project import Project
    from bench_pipeline.registry import PriceTable, Registry
    from bench_pipeline.store import Store
    from bench_pipeline.tasks import TaskSet

Backend = Literal["auto", "bubblewrap", "docker", "process"]

# The attempt axis of a project whose config cannot be read: the documented default of defaults.max_attempts.
_DEFAULT_MAX_ATTEMPTS = 10


@dataclass(frozen=True)
class CellEvent:
    """One cell is done with: what a person watching wants to read, and the counts so far."""

    setup: str
    task_id: str
    attempt: int
    action: str
    outcome: str
    reason: str | None
    cost_usd: float | None
    done: int
    total: int

    def __str__(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return (
            f"[{self.done}/{self.total}] {self.setup} on {self.task_id}, attempt {self.attempt}: "
            f"{self.action}, {self.outcome}{why}"
        )


@dataclass
class Stop:
    """Two ways to end a run early: start no more cells, or end the running ones too."""

    starting: threading.Event
    running: threading.Event

    @classmethod
    def fresh(cls) -> "Stop":
        """A stop that nobody has asked for yet."""
        return cls(threading.Event(), threading.Event())

    def ask(self) -> None:
        """Stop starting cells; asked a second time, stop the running ones."""
        (self.running if self.starting.is_set() else self.starting).set()


class Bench:
    """A project and what works on it.

    Args:
        project_dir: the project's folder; None finds it (BENCH_PROJECT, or the nearest one above).
        backend: the sandbox to use instead of the project's; naming ``process`` is an explicit opt-in.
        on_cell: called once per finished cell, from the thread that runs the use case.
    """

    def __init__(
        self,
        project_dir: Path | None = None,
        *,
        backend: Backend | None = None,
        on_cell: Callable[[CellEvent], None] | None = None,
    ) -> None:
        self._project_dir = project_dir
        self._backend = backend
        self.on_cell = on_cell
        self.stop = Stop.fresh()

    @cached_property
    def project(self) -> "Project":
        """The project; raises NotFoundError or DocumentError."""
        from bench_pipeline.project import find_project

        return find_project(self._project_dir)

    @cached_property
    def registry(self) -> "Registry":
        """Built-in, user-level and project tools, merged."""
        from bench_pipeline.project import user_dir
        from bench_pipeline.registry import Registry

        return Registry.load(self.project.root, user_dir())

    @cached_property
    def prices(self) -> "PriceTable":
        """Built-in, user-level and project prices."""
        from bench_pipeline.project import user_dir
        from bench_pipeline.registry import PriceTable

        return PriceTable.load(self.project.root, user_dir())

    @cached_property
    def store(self) -> "Store":
        """The project's store."""
        from bench_pipeline.store import Store

        return Store.open(self.project.store_url)

    @cached_property
    def tasks(self) -> "TaskSet":
        """The project's tasks, with the problems of those that do not load."""
        from bench_pipeline.tasks import load_tasks

        return load_tasks(self.project.root)

    @cached_property
    def sandbox(self) -> "Sandbox":
        """The sandbox that the project, or the caller, chose; raises SandboxError."""
        from bench_pipeline.execution.sandbox import open_sandbox

        settings = self.project.config.sandbox
        backend = self._backend or settings.backend
        return open_sandbox(backend, settings.allow_process or self._backend == "process")

    @cached_property
    def base_trees(self) -> "BaseTrees":
        """The cache of immutable base trees, on this machine."""
        from bench_pipeline.execution.base_trees import BaseTrees

        return BaseTrees(self.project.local_dir / "trees")

    @cached_property
    def workspaces(self) -> "Workspaces":
        """The folders that cells work in, on this machine."""
        from bench_pipeline.execution.workspace import Workspaces

        return Workspaces(self.project.local_dir / "workspaces")

    def max_attempts(self) -> int:
        """The size of the attempt axis; the default when the project cannot be read, which a check reports."""
        from bench_pipeline.errors import BenchError

        try:
            return self.project.config.defaults.max_attempts
        except BenchError:
            return _DEFAULT_MAX_ATTEMPTS
