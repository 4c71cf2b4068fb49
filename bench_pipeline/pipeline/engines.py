"""Where cells run: in threads of this process, in processes of this machine, or on a Dask cluster.

What belongs here: taking a cell to a worker and its result back, and what a lost worker means. What does not:
what happens to a cell there (``cell_work``), and how many run side by side for what money (``measuring``).

A worker opens the project anew, at the same path, with the store that its config names; all that it finds out is
in that store before it answers. So a worker that is killed loses the cells it was running, which run again on
another, and none that it had finished: one whose verdict is stored, but was not yet reported, is not run again.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from bench_pipeline import __version__
from bench_pipeline.errors import RefusedError
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.cell_work import CellWork, Done, Item
from bench_pipeline.pipeline.selection import ModelUse

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Backend
    from bench_pipeline.pipeline.planning import Plan

T = TypeVar("T")

# How often a stop is looked at while a worker is busy with a cell.
_LOOK_S = 0.2
_LOST = "the workers that ran it were lost"
# How long a cluster may take to answer at all.
_CONNECT_S = 10


class Work(Protocol):
    """What an engine does with one cell; see ``CellWork`` for each."""

    def refusal(self, item: Item) -> str | None: ...  # noqa: D102
    def execute(self, item: Item) -> Done: ...  # noqa: D102
    def reverify(self, item: Item) -> Done | None: ...  # noqa: D102
    def replay(self, item: Item) -> Done: ...  # noqa: D102


@dataclass(frozen=True)
class Engine:
    """How cells are worked on, and how many of them side by side unless a run says otherwise."""

    work: Work
    workers: int


@dataclass(frozen=True)
class Order:
    """What a worker has to know to work on the cells of one run."""

    project: Path
    backend: "Backend | None"
    run_id: str
    model_use: ModelUse
    version: str = __version__


@contextmanager
def open_engine(bench: Bench, plan: "Plan", run_id: str, model_use: ModelUse) -> Iterator[Engine]:
    """The engine that the project's config names; raises RefusedError when it cannot be had.

    ``model_use`` is what cells together may ask of model APIs, in each process that they run in.
    """
    settings, concurrency = bench.project.config.execution, bench.project.config.defaults.concurrency
    if settings.engine == "threads":
        yield Engine(CellWork(bench, plan, run_id, model_use), concurrency)
        return
    tried = f"opening the engine {settings.engine}"
    try:
        import distributed
    except ImportError as error:
        raise RefusedError(tried, str(error), "install the extra bench-pipeline[dask]") from error
    where = (
        {"address": settings.address, "timeout": _CONNECT_S}
        if settings.engine == "dask"
        else {
            "n_workers": concurrency,
            "threads_per_worker": 1,
            "processes": True,
            "dashboard_address": None,
            "silence_logs": logging.CRITICAL,
        }
    )
    try:
        connect: Any = distributed.Client
        client = connect(**where, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        wrong = f"no scheduler answers at {settings.address}: {error}" if settings.address else str(error)
        raise RefusedError(tried, wrong, "start it, or correct execution in config.yaml") from error
    with client:
        try:
            # Those of a cluster that was started a moment ago may be on their way.
            client.wait_for_workers(1, timeout=_CONNECT_S)
        except TimeoutError as error:
            wrong = f"the scheduler at {settings.address} has no workers"
            raise RefusedError(tried, wrong, "start some: dask worker ADDRESS") from error
        workers = sum(client.nthreads().values())
        yield Engine(
            _ClusterWork(client, Order(bench.project.root, bench.backend, run_id, model_use), bench),
            workers,
        )


class _ClusterWork:
    """Cells on the workers of a Dask cluster, one task each; safe to share between threads."""

    def __init__(self, client: Any, order: Order, bench: Bench) -> None:
        self._client, self._order, self._bench = client, order, bench
        self._ending = threading.Lock()
        self._ended = False

    def refusal(self, item: Item) -> str | None:
        """See ``Work``."""
        answer: str | None = self._ask(_refusal, item)
        return answer

    def execute(self, item: Item) -> Done:
        """See ``Work``."""
        known = self._bench.store.verdicts.history(item.identity).num_rows
        done: Done = self._ask(_execute, item, known, lost=Done(None, why=_LOST))
        return done

    def reverify(self, item: Item) -> Done | None:
        """See ``Work``."""
        done: Done | None = self._ask(_reverify, item)
        return done

    def replay(self, item: Item) -> Done:
        """See ``Work``."""
        done: Done = self._ask(_replay, item, lost=Done(None, why=_LOST))
        return done

    def _ask(self, task: Callable[..., T], item: Item, *more: object, lost: T | None = None) -> T:
        """What ``task`` answers on some worker; ``lost`` when the cell took every worker down that had it."""
        from concurrent.futures import CancelledError

        from distributed.scheduler import KilledWorker

        future = self._client.submit(task, self._order, item, *more, pure=False)
        try:
            answer: T = self._answer_of(future)
        except KilledWorker as error:
            if lost is not None:
                return lost
            raise RefusedError(
                "running cells on the cluster", str(error), "look at the workers' logs"
            ) from error
        except CancelledError as error:
            wrong = "the scheduler went away"
            remedy = "every finished cell is in the store: start it and run again"
            raise RefusedError("running cells on the cluster", wrong, remedy) from error
        return answer

    def _answer_of(self, future: Any) -> Any:
        while not future.done():
            if self._bench.stop.running.is_set():
                self._end_running()
            with contextlib.suppress(TimeoutError):
                return future.result(timeout=_LOOK_S)
        return future.result()

    def _end_running(self) -> None:
        """End the cells of this run on every worker, past the queue of tasks."""
        with self._ending:
            if not self._ended:
                self._ended = True
                self._client.run(_end, self._order)


@dataclass(frozen=True)
class _Opened:
    """A project as a worker opened it for the cells of one run."""

    order: Order
    bench: Bench
    plan: "Plan"
    work: CellWork


class _Workshop:
    """What a worker process keeps between the cells of one run."""

    def __init__(self) -> None:
        self._making = threading.Lock()
        self._opened: _Opened | None = None

    def open(self, order: Order, item: Item) -> _Opened:
        """The project of a run; raises RefusedError where the cells of this machine's differ from those of the run."""
        tried = "working on a cell of another machine"
        if order.version != __version__:
            wrong = f"the run is of version {order.version}, this worker of {__version__}"
            raise RefusedError(tried, wrong, "install the same version on both")
        with self._making:
            opened = self._opened
            if opened is None or opened.order != order:
                bench = Bench(order.project, backend=order.backend)
                plan = bench.plan()
                work = CellWork(bench, plan, order.run_id, order.model_use)
                opened = self._opened = _Opened(order, bench, plan, work)
        if not opened.plan.has(item.evaluation, item.identity):
            wrong = f"the project at {order.project} plans another {item.setup} on {item.task_id} here"
            remedy = (
                "give every machine the same files, tools and sandbox; `bench cell explain` compares keys"
            )
            raise RefusedError(tried, wrong, remedy)
        return opened

    def end(self, order: Order) -> None:
        """End the running cells of a run."""
        opened = self._opened
        if opened is not None and opened.order == order:
            opened.bench.stop.starting.set()
            opened.bench.stop.running.set()


# One for each worker process: what is opened for the first cell of a run serves all of them.
_WORKSHOP = _Workshop()


def _refusal(order: Order, item: Item) -> str | None:
    return _WORKSHOP.open(order, item).work.refusal(item)


def _execute(order: Order, item: Item, known: int) -> Done:
    """Run a cell, unless a worker that was lost since had stored what came of it: more tries than ``known``."""
    opened = _WORKSHOP.open(order, item)
    stored = opened.bench.store.verdicts.history(item.identity)
    if stored.num_rows > known:
        return Done(stored.slice(stored.num_rows - 1).to_pylist()[0])
    return opened.work.execute(item)


def _reverify(order: Order, item: Item) -> Done | None:
    return _WORKSHOP.open(order, item).work.reverify(item)


def _replay(order: Order, item: Item) -> Done:
    return _WORKSHOP.open(order, item).work.replay(item)


def _end(order: Order) -> None:
    _WORKSHOP.end(order)
