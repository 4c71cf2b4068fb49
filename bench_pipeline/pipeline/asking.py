"""What becomes of runs that are asked for, which of those that fail are asked for again, and which wait for others.

What belongs here: these words, the count of tries, which errors pass, and the tags of what runs share. What does not:
looking runs up (``defs.runs``).
"""

import builtins
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

from bench_pipeline.errors import BenchError

if TYPE_CHECKING:
    from bench_pipeline.project import ProjectConfig

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


def upstream_tags(config: "ProjectConfig") -> list[str]:
    """The keys of the tags that runs carry which may call the upstreams, one for each.

    Dagster's queue starts one run with such a tag at a time, so an upstream's ``concurrency`` and
    ``requests_per_minute``, which a run keeps by itself, hold for the runs of the UI and of the daemon together.
    """
    return [f"bench/upstream-{re.sub(r'[^A-Za-z0-9_.-]', '-', name)}" for name in config.upstreams]
