"""Benchmarks as ratios: what we do against a peer, or a limit, in the same run.

A module here offers ``measure() -> list[Row]``; ``python -m bench_pipeline_tests.benchmarks`` runs them all.
"""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One comparison: seconds of ours and of the peer (or any other unit, the same on both sides).

    ``limit_ratio`` is the largest ours/peer that is acceptable.
    """

    name: str
    ours_s: float
    peer_s: float
    limit_ratio: float

    @property
    def ratio(self) -> float:
        """Ours over the peer's; smaller is better."""
        return self.ours_s / self.peer_s


@contextmanager
def server_process(serve: Callable[..., None], *args: object) -> Iterator[int]:
    """A server in a process of its own, so that it takes no time of what is measured; its port.

    ``serve`` is called with ``args`` and one end of a pipe, into which it sends its port.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(*args, theirs), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


def best_of(runs: int, call: Callable[[], object]) -> float:
    """The shortest wall time of ``runs`` calls, in seconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)
