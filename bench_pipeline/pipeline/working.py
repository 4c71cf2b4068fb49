"""Running many cells side by side: a bounded pool, early ends, and no item started after a stop.

Knows nothing of cells: it maps a function over items and yields what came of each as it ends.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from bench_pipeline.pipeline.bench import Stop

Item = TypeVar("Item")
Done = TypeVar("Done")

# How often a stop is looked at while every worker is busy.
_LOOK_S = 0.2


def work(items: Iterable[Item], run: Callable[[Item], Done], *, workers: int, stop: Stop) -> Iterator[Done]:
    """Yield ``run(item)`` for every item in the order in which they end.

    Items that a stop kept from starting are not run and not yielded. An exception of ``run`` stops the others
    from starting, waits for the running ones, yields what they gave, and is raised then.
    """
    waiting = deque(items)
    running: set[Future[Done]] = set()
    failed: BaseException | None = None
    with ThreadPoolExecutor(workers, thread_name_prefix="cell") as pool:
        while running or (waiting and failed is None and not stop.starting.is_set()):
            while waiting and len(running) < workers and failed is None and not stop.starting.is_set():
                running.add(pool.submit(run, waiting.popleft()))
            done, running = wait(running, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
            for future in done:
                error = future.exception()
                if error is None:
                    yield future.result()
                else:
                    failed = failed or error
    if failed is not None:
        raise failed
