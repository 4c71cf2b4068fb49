"""Progress bars over the cells of a run or the calls of policies, on a terminal only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench_pipeline.cli.output import is_terminal
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.reports.escaping import plain_text


@contextmanager
def progress(bench: Bench, total: int) -> Iterator[None]:
    """Show the bench's finished cells as a bar while the block runs; nothing when piped or without cells."""
    with counting("cells", total) as advance:
        if advance is not None:
            bench.on_cell = lambda event: advance(f"{event.task_id} {event.outcome}")
        try:
            yield
        finally:
            bench.on_cell = None


@contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[str], None] | None]:
    """A bar that moves on by one with each text it is given; None when piped or with nothing to count."""
    if total == 0 or not is_terminal(sys.stderr):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[last]}"),
        console=Console(stderr=True),
    )  # fmt: skip
    with bar:
        shown = bar.add_task(what, total=total, last="")
        yield lambda last: bar.update(shown, advance=1, last=plain_text(last).replace("[", "\\["))
