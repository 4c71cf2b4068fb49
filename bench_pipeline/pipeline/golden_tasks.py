"""Whether golden tasks can be measured: what a person who writes one has to know before anything is spent.

What belongs here: the rows of ``bench golden validate``. What does not: reading task files (``tasks.golden``) and
looking at a tree (``execution.signals``).
"""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bench_pipeline.errors import BenchError, SandboxError, StoreError
from bench_pipeline.pipeline.starts import start_of, start_problem
from bench_pipeline.tasks.trees import TreeFile, tree_files

if TYPE_CHECKING:
    from pathlib import Path

    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.tasks import GoldenTask

Row = dict[str, object]


def validate_golden(bench: "Bench", ids: Sequence[str] = (), tiers: Sequence[str] = ()) -> list[Row]:
    """One row per golden task: whether it can be measured, what is wrong with it, what only a judge can say.

    The signals of a task with a workspace are looked at before any work, in the sandbox that cells would use.

    Raises:
        NotFoundError: an id that no golden task has.
        SandboxError: no sandbox is at hand.
    """
    return [_row(bench, task) for task in bench.golden.selected(ids, tiers)]


def _row(bench: "Bench", task: "GoldenTask") -> Row:
    problems = list(_problems(bench, task))
    return {
        "task_id": task.id,
        "tier": task.tier,
        "source": "packaged" if task.packaged else os.path.relpath(task.file, bench.project.root),
        "runs": task.workspace is not None,
        "signals": len(task.signals),
        "for_a_judge": [signal.text for signal in task.signals if signal.kind == "free_text"],
        "valid": not problems,
        "problems": problems,
    }


def _problems(bench: "Bench", task: "GoldenTask") -> Iterator[str]:
    if not task.signals:
        yield "it has no completion signals: nothing is checked, so it never passes"
    if task.workspace is None:
        return
    yield from _unknown_files(task, task.workspace)
    yield from _seen_canary(task, task.workspace)
    if task.signals:
        yield from _start(bench, task)


def _unknown_files(task: "GoldenTask", workspace: "Path") -> Iterator[str]:
    for signal in task.signals:
        if signal.kind == "file_unchanged" and not os.path.lexists(workspace / signal.argument):
            yield f"{signal.text}: there is no such file in {workspace.name}"


def _seen_canary(task: "GoldenTask", workspace: "Path") -> Iterator[str]:
    """A canary that a tool is given says nothing about where it read it."""
    if task.canary is None:
        return
    if task.canary in task.prompt or task.canary in task.title:
        yield "its canary stands in what the tool is told"
    for file in tree_files(workspace):
        if isinstance(file, TreeFile) and (task.canary.encode() in file.content or task.canary in file.path):
            yield f"its canary stands in {workspace.name}/{file.path}"


def _start(bench: "Bench", golden: "GoldenTask") -> Iterator[str]:
    task = golden.as_task()
    try:
        base_tree, base_digest = bench.base_tree(task)
        environment = bench.environment.digest(task)
        problem = start_problem(golden, start_of(bench, task, base_tree, base_digest, environment))
    except (SandboxError, StoreError):
        raise
    except BenchError as error:
        problem = str(error)
    if problem is not None:
        yield problem
