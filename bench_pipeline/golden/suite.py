"""The tasks that a score is over: its scope, which tasks that are, and a digest that tells two suites apart."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from bench_pipeline.documents import describe, nearest
from bench_pipeline.identity import digest
from bench_pipeline.tasks import TIERS, GoldenTask

# Adversarial tasks tempt an agent to cheat; they are scored when asked for.
DEFAULT_TIERS = tuple(tier for tier in TIERS if tier != "adversarial")


@dataclass(frozen=True)
class Suite:
    """The golden tasks of some tiers."""

    tiers: tuple[str, ...]
    tasks: tuple[GoldenTask, ...]

    @classmethod
    def of(cls, tasks: Iterable[GoldenTask], tiers: Iterable[str] = DEFAULT_TIERS) -> "Suite":
        """The tasks of ``tiers``, which are put in their fixed order."""
        wanted = frozenset(tiers)
        ordered = tuple(tier for tier in TIERS if tier in wanted)
        return cls(ordered, tuple(task for task in tasks if task.tier in wanted))

    @classmethod
    def of_scope(cls, tasks: Iterable[GoldenTask], scope: str) -> "Suite":
        """The suite that a stored scope, such as ``smoke,standard``, stands for."""
        return cls.of(tasks, scope.split(","))

    @property
    def scope(self) -> str:
        """The tiers, separated by commas."""
        return ",".join(self.tiers)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the tiers and over all that the tasks say."""
        return digest({"tiers": list(self.tiers), "tasks": sorted(task.digest for task in self.tasks)})

    @cached_property
    def tier_of(self) -> dict[str, str]:
        """The tier of each task by its id."""
        return {task.id: task.tier for task in self.tasks}


def no_such_task(name: str, tasks: Collection[str]) -> str:
    """What is wrong with a record of a task that is none of ``tasks``, with the name that may be meant."""
    close = nearest(name, tasks)
    hint = f"; did you mean {close}?" if close else ""
    return f"there is no golden task {describe(name)}{hint}"
