"""Sharing processors out between the commands that run at the same time."""

import itertools
import math
import os

_next = itertools.count()


def pin(pid: int, cpus: float | None) -> None:
    """Let a process and its future children use ``cpus`` of our processors, the next ones in turn.

    Nothing changes when as many or more are asked for than there are.
    """
    ours = sorted(os.sched_getaffinity(0))
    if cpus is None or math.ceil(cpus) >= len(ours):
        return
    count = max(1, math.ceil(cpus))
    first = next(_next) * count
    os.sched_setaffinity(pid, {ours[(first + offset) % len(ours)] for offset in range(count)})
