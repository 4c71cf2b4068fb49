"""Judging 10,000 pairs against a bare scandir and read; the bootstrap against numpy's bincount and scipy's."""

import json
import os
import tempfile
from pathlib import Path

import numpy as np
from scipy import stats

from bench_pipeline.judging import judge_by_rubric, load_folder
from bench_pipeline.scenarios import CellResult, file_name
from bench_pipeline.statistics.bootstrap import resampled_sums
from bench_pipeline_tests.benchmarks import Row, best_of

PAIRS = 10_000
TASKS, SETUPS, RESAMPLES = 500, 20, 10_000


def measure() -> list[Row]:
    """Three rows."""
    return [_judging(), *_bootstrap()]


def _judging() -> Row:
    with tempfile.TemporaryDirectory(prefix="bench-judging-") as folder:
        sides = [Path(folder) / name for name in ("left", "right")]
        for side in sides:
            _fill(side)

        def bare() -> None:
            for side in sides:
                with os.scandir(side) as entries:
                    for entry in entries:
                        with open(entry.path, "rb") as file:
                            file.read()

        def ours() -> None:
            assert judge_by_rubric(load_folder(sides[0]), load_folder(sides[1])).pairs == PAIRS

        # By turns, since a machine's load comes and goes.
        turns = [(best_of(1, ours), best_of(1, bare)) for _ in range(5)]
        return Row(
            "judging: 10,000 pairs of 20,000 files / bare scandir and read",
            *map(min, zip(*turns, strict=True)),
            2.0,
        )


def _fill(side: Path) -> None:
    side.mkdir()
    random = np.random.default_rng(len(side.name))
    for number in range(PAIRS):
        steps, passed = int(random.integers(0, 40)), bool(random.random() < 0.6)
        result = CellResult(
            scenario=f"scenario {number}",
            cell=side.name,
            attempt=1,
            mode="single",
            harness="codex",
            model="gpt-5.5",
            replay=None,
            max_steps=40,
            max_seconds=600,
            passed=passed,
            steps=steps,
            seconds=steps * 7,
            missing_evidence=() if passed else ("python-tests",),
            over_steps=False,
            over_seconds=False,
            winning_artifact="The answer of a run.\n" * int(random.integers(1, 20)),
            prompt_tokens=1000 * steps,
            completion_tokens=40 * steps,
            total_tokens=1040 * steps,
            scenario_sha256="ab" * 32,
        )
        path = side / file_name(result.scenario, side.name)
        path.write_text(json.dumps(result.document(), indent=2) + "\n")


def _bootstrap() -> list[Row]:
    scores = np.random.default_rng(1).random((TASKS, SETUPS))

    def ours() -> None:
        means = np.concatenate([*resampled_sums(scores, seed=1, resamples=RESAMPLES)]) / TASKS
        assert np.percentile(means, [2.5, 97.5], axis=0).shape == (2, SETUPS)

    def bincount() -> None:
        """The kernel alone: draws, counts, sums."""
        generator = np.random.default_rng(1)
        means = np.empty((RESAMPLES, SETUPS))
        for start in range(0, RESAMPLES, 1000):
            picks = generator.integers(0, TASKS, size=(1000, TASKS)) + np.arange(1000)[:, None] * TASKS
            counts = np.bincount(picks.ravel(), minlength=1000 * TASKS).reshape(1000, TASKS)
            means[start : start + 1000] = counts @ scores / TASKS

    def scipy() -> None:
        stats.bootstrap(
            (scores,), np.mean, axis=0, n_resamples=RESAMPLES, batch=100, method="percentile", rng=1
        )

    name = "bootstrap: 10,000 resamples of 500 tasks x 20 setups"
    own = best_of(5, ours)
    return [
        Row(f"{name} / numpy bincount kernel", own, best_of(5, bincount), 2.0),
        Row(f"{name} / scipy.stats.bootstrap", own, best_of(1, scipy), 1 / 3),
    ]
