"""Judging the cells of folders: the use cases behind `bench judge`."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench_pipeline.errors import UsageError
from bench_pipeline.judging import Folder, Report, judge_by_rubric, load_folder

if TYPE_CHECKING:
    from bench_pipeline.judging.live import Watch
    from bench_pipeline.judging.tournament import Tournament

Judge = Callable[[Folder, Folder], Report]


@dataclass(frozen=True)
class Judging:
    """Who judges, and how.

    Without ``endpoint`` and ``judgements`` the rubric does; with ``judgements`` alone what is recorded there is
    replayed, and nobody is contacted. ``scenarios`` is a folder whose files give the judge the goals; ``watch`` is
    told of each pair that a model has judged.
    """

    seed: int = 0
    endpoint: str | None = None
    model: str | None = None
    key_env: str | None = None
    judgements: Path | None = None
    scenarios: Path | None = None
    concurrency: int = 8
    call_s: float | None = None
    watch: "Watch | None" = None


def judge_folders(left: Path, right: Path, judging: Judging, *, attempt: int | None = None) -> Report:
    """Judge two folders."""
    with _judge(judging) as judge:
        return judge(load_folder(left, attempt), load_folder(right, attempt))


def judge_all(paths: Sequence[Path], judging: Judging, *, attempt: int | None = None) -> "Tournament":
    """Judge every pair of three or more folders."""
    from bench_pipeline.judging.tournament import hold_tournament

    if len(paths) < 3:
        raise UsageError("holding a tournament", f"{len(paths)} folders were given", "name three or more")
    folders = _named(paths, [load_folder(path, attempt) for path in paths])
    with _judge(judging) as judge:
        return hold_tournament(folders, judge, seed=judging.seed)


@contextmanager
def _judge(judging: Judging) -> Iterator[Judge]:
    """The judge that was asked for; connections are closed when the block ends."""
    if judging.endpoint is None and judging.judgements is None:
        yield partial(judge_by_rubric, seed=judging.seed)
        return
    from bench_pipeline.judging.judgements import Judgements
    from bench_pipeline.judging.live import LiveJudge, unwatched

    goals = _goals(judging.scenarios)
    if judging.endpoint is None:
        yield LiveJudge(Judgements(judging.judgements), None, goals, judging.seed).judge
        return
    from bench_pipeline.pipeline.judges import PAIR_SETTINGS, ask_patiently
    from bench_pipeline.providers.chat import ChatClient
    from bench_pipeline.providers.endpoint import read_endpoint, read_key
    from bench_pipeline.providers.retrying import CALL_S, Patient

    if judging.model is None:
        raise UsageError("judging", "the judge has no model", "name one with --judge-model")
    endpoint, key = read_endpoint(judging.endpoint), read_key(judging.key_env)
    judgements = Judgements(judging.judgements, judging.model)
    stop = threading.Event()
    with ChatClient(endpoint, judging.model, key, **PAIR_SETTINGS) as client:
        patient = Patient(client, call_s=judging.call_s or CALL_S, stop=stop)
        live = LiveJudge(
            judgements,
            partial(ask_patiently, patient),
            goals,
            judging.seed,
            judging.concurrency,
            judging.watch or unwatched,
            stop,
        )
        try:
            yield live.judge
        except BaseException:
            client.interrupt()
            raise


def _goals(folder: Path | None) -> dict[str, str]:
    """The goals of the scenarios in a folder, by name."""
    from bench_pipeline.scenarios import load_scenario

    scenarios = [load_scenario(path) for path in sorted(folder.glob("*.toml"))] if folder is not None else []
    return {scenario.name: scenario.goal for scenario in scenarios}


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
