"""The resources of the code location: plain objects of ours that assets receive.

``Bench`` finds the project (BENCH_PROJECT, or the nearest one above the working directory) when it is first
used, so that importing the definitions touches no file.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bench_pipeline.pipeline.bench import Bench, Stop


def default_resources() -> dict[str, object]:
    """The resources of a code location that was not handed others."""
    return {"bench": Bench(interrupts=stop_on_termination)}


@contextmanager
def stop_on_termination(stop: Stop) -> Iterator[None]:
    """When the run is terminated, end its cells at once; the signal goes on to Dagster when they have ended.

    What was measured is saved by then, so a run that a person ends in the UI is marked as cancelled and loses
    nothing but the cells that were running.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []

    def ask(number: int, _: object) -> None:
        received.append(number)
        stop.starting.set()
        stop.running.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])
