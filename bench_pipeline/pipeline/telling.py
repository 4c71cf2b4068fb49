"""What was told about this machine already: a person needs to hear it once for a project, not at every run.

What belongs here: which sentences are new. What does not: saying them (``cli``) and recording them (``measuring``).
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench

_FILE = "told.json"


def not_told_before(bench: "Bench", sentences: Iterable[str]) -> list[str]:
    """Those of the sentences that nobody was told about this project on this machine, which they are now.

    ``bench doctor`` says all of them at any time. A note that cannot be kept is only told again.
    """
    path: Path = bench.project.local_dir / _FILE
    told = _told(path)
    new = sorted(set(sentences) - told)
    if new:
        _keep(path, sorted({*told, *new}))
    return new


def _told(path: Path) -> set[str]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return set()
    return {item for item in found if isinstance(item, str)} if isinstance(found, list) else set()


def _keep(path: Path, sentences: list[str]) -> None:
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(sentences, indent=2), encoding="utf-8")
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
