"""What a command or a run is about: evaluations, tasks, tiers, attempts; and what it may do and spend."""

from collections.abc import Iterable
from dataclasses import dataclass

from bench_pipeline.tasks import TIERS

__all__ = ["TIERS", "Partition", "RunOptions", "Selection", "rectangle"]


@dataclass(frozen=True, order=True)
class Partition:
    """One tier and one attempt: a file of evaluation_cells and of verdicts."""

    tier: str
    attempt: int


@dataclass(frozen=True)
class Selection:
    """Which cells are meant; an empty field leaves its axis whole."""

    evaluations: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    attempts: tuple[int, ...] = ()


@dataclass(frozen=True)
class RunOptions:
    """How the selected cells are run.

    ``fresh`` measures again what has a verdict; ``retry`` is how often an execution failure is tried again in
    this run; ``plan`` refuses to run any other plan than the one with this digest. ``record`` keeps what tools ask
    their models and are answered; ``replay`` answers them from that, and measures nothing.
    """

    selection: Selection = Selection()
    fresh: bool = False
    retry: int = 0
    max_cost_usd: float | None = None
    max_cells: int | None = None
    concurrency: int | None = None
    plan: str | None = None
    record: bool = True
    replay: bool = False

    @property
    def model_use(self) -> "ModelUse":
        """What tools may do with model APIs."""
        return ModelUse(self.max_cost_usd, self.record, self.replay)


@dataclass(frozen=True)
class ModelUse:
    """What the tools of a run may do with model APIs.

    ``max_cost_usd`` caps what all cells together may ask of them, in place of the project's cap; ``record`` and
    ``replay`` as in ``RunOptions``.
    """

    max_cost_usd: float | None = None
    record: bool = False
    replay: bool = False


def rectangle(tiers: Iterable[str], attempts: Iterable[int]) -> tuple[Partition, ...]:
    """Every partition of the given tiers and attempts, tiers in their fixed order, attempts within."""
    wanted, numbers = set(tiers), sorted(set(attempts))
    return tuple(Partition(tier, attempt) for tier in TIERS if tier in wanted for attempt in numbers)
