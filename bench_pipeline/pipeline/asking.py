"""What becomes of runs that are asked for, and which of those that fail are asked for again.

What belongs here: these words, the count of tries, and which errors pass. What does not: looking runs up
(``defs.runs``).
"""

import builtins
from collections.abc import Callable, Iterator
from typing import Literal

from bench_pipeline.errors import BenchError

# ``failed`` may be asked for again; ``given_up`` was ended by a person, or would fail again. ``done`` says nothing of
# what the run was to bring about.
Run = Literal["absent", "going", "done", "failed", "given_up"]
MOST_TRIES = 3


def newest_try(
    key_of: Callable[[int], str], run_of: Callable[[str], Run], *, again: set[Run]
) -> tuple[str, int, Run]:
    """The newest try of something under its key, which try it is, and what became of it; a fourth is given up.

    ``again``: what is followed by another try.
    """
    for tries in range(1, MOST_TRIES + 1):
        run = run_of(key_of(tries))
        if run not in again:
            return key_of(tries), tries, run
    return "", MOST_TRIES, "given_up"


def would_fail_again(error: str) -> bool:
    """Whether an error of a class of this name would come again, if the same were tried later.

    Ours say so themselves. Of Python's own, those of the system pass, and the others are faults of ours. What a
    library raises is taken to pass: it is tried a few times.
    """
    ours = {cls.__name__: cls for cls in _family(BenchError)}
    if error in ours:
        return not ours[error].passes
    known = getattr(builtins, error, None)
    return isinstance(known, type) and issubclass(known, Exception) and not issubclass(known, OSError)


def _family(cls: type[BenchError]) -> Iterator[type[BenchError]]:
    yield cls
    for below in cls.__subclasses__():
        yield from _family(below)
