"""The workbench of one process: a project with its registry, prices, store and sandbox, each opened when used.

Use cases receive a ``Bench`` and nothing else that is global; a test builds one over a temporary project.
"""

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from bench_pipeline.errors import Problem
    from bench_pipeline.execution.base_trees import BaseTrees
    from bench_pipeline.execution.job import Kit
    from bench_pipeline.execution.sandbox import Limits, Sandbox
    from bench_pipeline.execution.workspace import Workspaces
    from bench_pipeline.pipeline.environment import Environment
    from bench_pipeline.pipeline.planning import Plan
    from bench_pipeline.pipeline.project_files import ProjectFiles
    from bench_pipeline.pipeline.selection import ModelUse
    from bench_pipeline.policies.comparison import Comparison
    from bench_pipeline.project import Project, ProjectConfig
    from bench_pipeline.providers.pacing import Pace
    from bench_pipeline.registry import PriceTable, Registry
    from bench_pipeline.store import Store
    from bench_pipeline.tasks import Bases, GoldenSet, Task, TaskSet

# What is kept of one command's output: enough for any report that a person reads.
OUTPUT_BYTES = 16 * 1024 * 1024

Backend = Literal["auto", "bubblewrap", "docker", "process"]


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
        read_only: nothing in the store is written or moved, as in a dry run.
        on_cell: called once per finished cell, from the thread that runs the use case.
        interrupts: a context in which a person's interrupts ask ``stop``; entered while cells run.
    """

    def __init__(
        self,
        project_dir: Path | None = None,
        *,
        backend: Backend | None = None,
        read_only: bool = False,
        on_cell: Callable[[CellEvent], None] | None = None,
        interrupts: Callable[["Stop"], AbstractContextManager[None]] | None = None,
    ) -> None:
        self._project_dir = project_dir
        self.backend = backend
        self._read_only = read_only
        self.on_cell = on_cell
        self.on_notice: Callable[[str], None] = lambda _: None
        self.interrupts = interrupts or (lambda _: nullcontext())
        # What a cap in dollars leaves once cells were measured; None before, and without a cap.
        self.left_usd: float | None = None
        # By the URL of those who are asked.
        self.paces: dict[str, Pace] = {}
        self.stop = Stop.fresh()
        self._plan: Plan | None = None

    def again(self) -> "Bench":
        """A workbench of the same project that reads its files anew: for a process that outlives their changes."""
        return Bench(self._project_dir, backend=self.backend, read_only=self._read_only)

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

        return Store.open(self.project.store_url, read_only=self._read_only)

    @cached_property
    def tasks(self) -> "TaskSet":
        """The project's tasks, with the problems of those that do not load."""
        from bench_pipeline.tasks import load_tasks

        return load_tasks(self.project.root)

    @cached_property
    def golden(self) -> "GoldenSet":
        """The golden tasks of the project and of this package, with the problems of those that do not load."""
        from bench_pipeline.tasks import load_golden

        return load_golden(self.project.root)

    @cached_property
    def policy_comparisons(self) -> "tuple[list[Comparison], list[Problem]]":
        """The comparisons of policies that resolve, with their cases, and the problems of the others."""
        from bench_pipeline.policies.comparison import load_comparisons

        return load_comparisons(self.project)

    @cached_property
    def sandbox(self) -> "Sandbox":
        """The sandbox that the project, or the caller, chose; raises SandboxError."""
        from bench_pipeline.execution.sandbox import open_sandbox

        settings = self.project.config.sandbox
        backend = self.backend or settings.backend
        return open_sandbox(backend, settings.allow_process or self.backend == "process")

    @cached_property
    def base_trees(self) -> "BaseTrees":
        """The cache of immutable base trees, on this machine."""
        from bench_pipeline.execution.base_trees import BaseTrees

        return BaseTrees(self.project.local_dir / "trees")

    @cached_property
    def workspaces(self) -> "Workspaces":
        """The folders that cells work in, on this machine; what killed processes left there is removed."""
        from bench_pipeline.execution.workspace import Workspaces

        workspaces = Workspaces(self.project.local_dir / "workspaces")
        workspaces.sweep()
        return workspaces

    @cached_property
    def environment(self) -> "Environment":
        """Facts about the sandbox that the keys of cells depend on."""
        from bench_pipeline.pipeline.environment import Environment

        return Environment(self)

    @cached_property
    def files(self) -> "ProjectFiles":
        """The files of the project as they were when this was first asked for, by the plan at the latest."""
        from bench_pipeline.pipeline.project_files import ProjectFiles

        return ProjectFiles(self)

    def plan(self) -> "Plan":
        """The plan of the whole project, made once."""
        if self._plan is None:
            from bench_pipeline.pipeline.planning import plan_cells

            _ = self.files
            self._plan = plan_cells(self)
        return self._plan

    def base_tree(self, task: "Task") -> tuple[Path, str]:
        """The immutable base tree of a task and its digest; made when it is not there yet."""
        bases = self.bases

        def write(into: Path) -> None:
            bases.write(task, into)

        def tree() -> Path:
            return self.base_trees.get(bases.key(task), write)

        return tree(), bases.digest(task, tree)

    @cached_property
    def bases(self) -> "Bases":
        """Where base trees come from: folders beside tasks, and clones of their repositories."""
        from bench_pipeline.tasks import Bases

        remote = self.project.config.source.remote
        return Bases(self.project.local_dir / "git", self.project.root, remote)

    def kit(self, model_use: "ModelUse | None" = None) -> "Kit":
        """What running cells needs: sandbox, workspaces, artifacts redacted of the known credentials, model APIs.

        ``model_use`` says what all cells together may do with those.
        """
        from bench_pipeline.execution.job import Kit
        from bench_pipeline.execution.redaction import Redactor
        from bench_pipeline.pipeline.upstreams import gateway_of

        redactor = Redactor(self._secrets())

        def keep(source: Path | bytes, media: str) -> str:
            data = source.read_bytes() if isinstance(source, Path) else source
            return self.store.artifacts.put(redactor.redact(data), media)

        return Kit(
            sandbox=self.sandbox,
            workspaces=self.workspaces,
            keep=keep,
            keep_exactly=self.store.artifacts.put,
            redactor=redactor,
            denied=self._denied(),
            cancel=self.stop.running,
            gateway=gateway_of(self, model_use),
            record=model_use is not None and model_use.record,
        )

    @cached_property
    def scenario_kit(self) -> "Kit":
        """What running the scenarios of a run needs: one gateway for all, so that a run's caps hold for them together.

        In dollars they may take what its cells have left.
        """
        from bench_pipeline.pipeline.selection import ModelUse

        return self.kit(ModelUse(self.left_usd))

    def _denied(self) -> tuple[Path, ...]:
        """Where tasks, verdicts and other cells are: the project, its store, and this package with its own tasks."""
        from bench_pipeline.attestation import key_file

        places = (self.project.root, self.store.root, key_file(), Path(__file__).parents[1])
        return tuple(place for place in places if place is not None)

    def _secrets(self) -> dict[str, str]:
        """The values of every credential that a tool, an upstream or a target of notifications names, by variable."""
        from bench_pipeline.execution.invocation import secret_names
        from bench_pipeline.registry import ToolDefinition

        tools = (tool for tool in self.registry.tools.values() if isinstance(tool, ToolDefinition))
        names = {name for tool in tools for name in secret_names(tool)}
        upstreams = self.project.config.upstreams.values()
        names |= {upstream.key_env for upstream in upstreams if upstream.key_env}
        names |= {target.url_env for target in self.project.config.notifications.values()}
        return {name: os.environ[name] for name in sorted(names) if os.environ.get(name)}

    def limits(
        self, task: "Task | None", *, wall_s: float | None = None, output_bytes: int = OUTPUT_BYTES
    ) -> "Limits":
        """The limits of one command of a task: its own time, or the project's, and the project's resources."""
        from bench_pipeline.execution.sandbox import Limits

        defaults = self.project.config.defaults
        own = task.timeout_s if task is not None else None
        return Limits(
            wall_s=wall_s or own or defaults.cell_timeout,
            cpus=defaults.resources.cpus,
            memory_bytes=defaults.resources.memory,
            pids=defaults.resources.pids,
            output_bytes=output_bytes,
        )

    def limits_document(self, task: "Task") -> dict[str, object]:
        """The limits as a part of the environment's digest; numbers as text, so that their form is fixed."""
        limits = self.limits(task)
        return {
            "wall_s": repr(float(limits.wall_s)),
            "cpus": str(limits.cpus),
            "memory_bytes": str(limits.memory_bytes),
            "pids": str(limits.pids),
        }

    def config_or_default(self) -> "ProjectConfig":
        """The project's config, or the defaults when it cannot be read.

        For what is read when a code location is loaded: a wrong config must not take that down. A check reports it.
        """
        from bench_pipeline.errors import BenchError
        from bench_pipeline.project import ProjectConfig

        try:
            return self.project.config
        except BenchError:
            return ProjectConfig()

    def max_attempts(self) -> int:
        """The size of the attempt axis."""
        return self.config_or_default().defaults.max_attempts
