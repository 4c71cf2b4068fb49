"""What the signals of golden tasks say before any work: measured once per content, kept on disk.

What belongs here: the start of a golden task as a fact that planning and checks use. What does not: looking at a
tree (``execution.signals``).
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from bench_pipeline.errors import SandboxError
from bench_pipeline.identity import digest
from bench_pipeline.pipeline.environment import write_json

if TYPE_CHECKING:
    from bench_pipeline.execution.signals import Looked
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.tasks import GoldenTask, Task

_RECIPE = "start/1"


def start_of(bench: "Bench", task: "Task", base_tree: Path, base_digest: str, environment: str) -> "Looked":
    """What is found of a golden task's base, here and now or earlier from the same inputs.

    Raises:
        SandboxError: a tree could not be made, no command could be run, or it was interrupted.
    """
    assert task.signals is not None
    check = task.signals
    key = digest(
        {"recipe": _RECIPE, "base": base_digest, "environment": environment, "check": check.document()}
    )
    kept = bench.project.local_dir / "starts" / f"{key}.json"
    known = _kept(kept, len(check.signals), list(check.tests))
    if known is not None:
        return known
    from bench_pipeline.execution.signals import look

    found = look(check, base_tree, None, kit=bench.kit(), limits=bench.limits(task))
    if found.cancelled:
        raise SandboxError(f"looking at the start of {task.id}", "it was interrupted", "start again")
    write_json(kept, {"held": list(found.held), "passed": dict(found.passed), "missing": list(found.missing)})
    return found


def start_problem(task: "GoldenTask", start: "Looked") -> str | None:
    """Why cells of the task would measure nothing, as a sentence; None when it starts as it declares."""
    if not any(signal.kind != "free_text" for signal in task.signals):
        return "it has no signal that can be measured"
    holds = start.holds(task.check)
    if task.starts == "failing" and holds:
        return "its signals hold before any work: mend them, or declare starts: passing"
    if task.starts == "passing" and not holds:
        unmet = start.unmet(task.check)
        return f"it declares starts: passing, and before any work this does not hold: {unmet[0]}"
    return None


def _kept(path: Path, signals: int, commands: list[str]) -> "Looked | None":
    """A kept start; None when it is absent, damaged or of another check, so that it is measured again."""
    from bench_pipeline.execution.signals import Looked

    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        held, passed, missing = document["held"], document["passed"], document["missing"]
        whole = (
            len(held) == signals
            and all(item is None or isinstance(item, bool) for item in held)
            and sorted(passed) == sorted(commands)
            and all(item is None or isinstance(item, bool) for item in passed.values())
            and all(isinstance(item, str) for item in missing)
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return Looked(tuple(held), passed, missing=tuple(missing)) if whole else None
