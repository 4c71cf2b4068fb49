"""A progress bar over the cells of a run, on a terminal only."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench_pipeline.cli.output import is_terminal
from bench_pipeline.pipeline.bench import Bench, CellEvent
from bench_pipeline.reports.escaping import plain_text


@contextmanager
def progress(bench: Bench, total: int) -> Iterator[None]:
    """Show the bench's finished cells as a bar while the block runs; nothing when piped or without cells."""
    if total == 0 or not is_terminal(sys.stderr):
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("cells"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[last]}"),
        console=Console(stderr=True),
    )  # fmt: skip
    with bar:
        shown = bar.add_task("cells", total=total, last="")

        def advance(event: CellEvent) -> None:
            bar.update(
                shown, advance=1, last=plain_text(f"{event.task_id} {event.outcome}").replace("[", "\\[")
            )

        bench.on_cell = advance
        try:
            yield
        finally:
            bench.on_cell = None
