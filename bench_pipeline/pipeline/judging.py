"""Judging the cells of folders: the use cases behind `bench judge`."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench_pipeline.errors import UsageError
from bench_pipeline.judging import Folder, Report, judge_by_rubric, load_folder

if TYPE_CHECKING:
    from bench_pipeline.judging.tournament import Tournament


def judge_folders(left: Path, right: Path, *, seed: int, attempt: int | None) -> Report:
    """Judge two folders by the rubric."""
    return judge_by_rubric(load_folder(left, attempt), load_folder(right, attempt), seed)


def judge_all(paths: Sequence[Path], *, seed: int, attempt: int | None) -> "Tournament":
    """Judge every pair of three or more folders by the rubric."""
    from bench_pipeline.judging.tournament import hold_tournament

    if len(paths) < 3:
        raise UsageError("holding a tournament", f"{len(paths)} folders were given", "name three or more")
    folders = _named(paths, [load_folder(path, attempt) for path in paths])
    return hold_tournament(folders, partial(judge_by_rubric, seed=seed), seed=seed)


def _named(paths: Sequence[Path], folders: Sequence[Folder]) -> list[Folder]:
    """The folders under labels that tell them apart: their names, or where two share one, their paths."""
    names = Counter(folder.label for folder in folders)
    labels = [
        folder.label if names[folder.label] == 1 else str(path)
        for path, folder in zip(paths, folders, strict=True)
    ]
    if len(set(labels)) < len(labels):
        raise UsageError("holding a tournament", "a folder was given twice", "name each once")
    return [replace(folder, label=label) for folder, label in zip(folders, labels, strict=True)]
