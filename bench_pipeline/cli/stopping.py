"""Ctrl-C during a run: once, start no more cells and calls; twice, stop the running cells and save what is done."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

from bench_pipeline.pipeline.bench import Stop

_WORDS = (
    "stopping: what is running finishes and is saved; press Ctrl-C again to end it now",
    "stopping what is running; what is done is saved",
)


@contextmanager
def stop_on_interrupt(stop: Stop) -> Iterator[None]:
    """Turn SIGINT and SIGTERM into requests to stop while the block runs (main thread only)."""

    def ask(_number: int, _frame: FrameType | None) -> None:
        click.echo(f"\nbench: {_WORDS[stop.starting.is_set()]}", err=True)
        stop.ask()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
