"""Whether changed files lie within those that a task owns."""

import posixpath
from collections.abc import Iterable, Sequence

from bench_pipeline.execution.guard import protected


def plain_path(path: str) -> str:
    """A path without ``.``, doubled separators and a separator at its end; ``..`` stays where it leads out."""
    normal = posixpath.normpath(path) if path else path
    return f"/{normal.lstrip('/')}" if normal.startswith("/") else normal


def outside(changed: Iterable[str], owned: Sequence[str]) -> tuple[str, ...]:
    """The changed paths that no owned path, folder or glob covers, sorted; none when nothing is owned."""
    if not owned:
        return ()
    patterns = [pattern for item in owned for pattern in (item, item.removeprefix("**/"))]
    plain = [
        pattern if any(mark in pattern for mark in "*?[") else plain_path(pattern) for pattern in patterns
    ]
    paths = sorted({plain_path(path) for path in changed})
    return tuple(path for path in paths if not any(protected(path, pattern) for pattern in plain))
