"""Judging the cells of folders: the use cases behind `bench judge`."""

from pathlib import Path

from bench_pipeline.judging import Report, judge_by_rubric, load_folder


def judge_folders(left: Path, right: Path, *, seed: int, attempt: int | None) -> Report:
    """Judge two folders by the rubric."""
    return judge_by_rubric(load_folder(left, attempt), load_folder(right, attempt), seed)
