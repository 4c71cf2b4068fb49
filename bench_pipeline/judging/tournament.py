"""A tournament: every pair of three or more sides, strengths over all of them, and how sure they are.

What belongs here: the pairs, Bradley-Terry strengths with bootstrap intervals over scenarios, cycles. What does not:
how one pair is judged (``report``, ``live``) and the mathematics (``statistics.pairwise``, ``statistics.bootstrap``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from bench_pipeline.judging.pairing import Folder
from bench_pipeline.judging.report import Report
from bench_pipeline.statistics.bootstrap import RESAMPLES, resampled_sums
from bench_pipeline.statistics.pairwise import bradley_terry, fit_many

# Resamples that do not identify the strengths have none; where they are more than these, an interval over the others
# would be too narrow, and there is none.
_MAX_UNIDENTIFIED = 0.01

Judge = Callable[[Folder, Folder], Report]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Standing:
    """One side: its rank by strength, its strength with an interval, and what it won; None is not identified."""

    cell: str
    rank: int | None
    strength: float | None
    low: float | None
    high: float | None
    wins: int
    losses: int
    ties: int


@dataclass(frozen=True)
class Tournament:
    """All standings, best first, and the reports of all pairs.

    ``cycles`` are ways around in which each side beat the next more often than it lost; no order does justice to them.
    """

    standings: tuple[Standing, ...]
    reports: tuple[Report, ...]
    cycles: tuple[tuple[str, ...], ...]
    method: str
    interval_method: str
    seed: int

    def document(self) -> dict[str, object]:
        """The tournament as JSON."""
        return {
            "cells": [vars(standing) for standing in self.standings],
            "cycles": [list(cycle) for cycle in self.cycles],
            "method": self.method,
            "interval_method": self.interval_method,
            "seed": self.seed,
            "pairs": [report.document() for report in self.reports],
        }


def hold_tournament(
    folders: Sequence[Folder], judge: Judge, *, seed: int, resamples: int = RESAMPLES
) -> Tournament:
    """Judge all pairs of sides and fit their strengths. The order of the folders changes no standing."""
    ordered = sorted(folders, key=lambda folder: folder.label)
    reports = tuple(judge(left, right) for left, right in combinations(ordered, 2))
    labels = [folder.label for folder in ordered]
    fit = bradley_terry(
        (report.left, report.right, report.left_wins, report.right_wins, report.ties) for report in reports
    )
    low, high, said = _intervals(labels, reports, seed, resamples)
    standings = [_standing(label, reports, fit.values, low, high) for label in labels]
    standings.sort(key=lambda standing: (-(standing.strength or 0.0), standing.cell))
    return Tournament(
        tuple(_ranked(standings)), reports, tuple(_cycles(labels, reports)), fit.method, said, seed
    )


def _standing(
    label: str,
    reports: Sequence[Report],
    strengths: Mapping[str, float] | None,
    low: Mapping[str, float],
    high: Mapping[str, float],
) -> Standing:
    as_left = [report for report in reports if report.left == label]
    as_right = [report for report in reports if report.right == label]
    return Standing(
        cell=label,
        rank=None,
        strength=None if strengths is None else strengths[label],
        low=None if strengths is None else low.get(label),
        high=None if strengths is None else high.get(label),
        wins=sum(report.left_wins for report in as_left) + sum(report.right_wins for report in as_right),
        losses=sum(report.right_wins for report in as_left) + sum(report.left_wins for report in as_right),
        ties=sum(report.ties for report in (*as_left, *as_right)),
    )


def _ranked(standings: Sequence[Standing]) -> list[Standing]:
    """The standings with their ranks; equal strengths, rounding aside, share one."""
    ranked: list[Standing] = []
    for place, standing in enumerate(standings, 1):
        before = ranked[-1] if ranked else None
        if standing.strength is None:
            rank = None
        elif (
            before is not None and before.strength is not None and before.strength - standing.strength < 1e-9
        ):
            rank = before.rank
        else:
            rank = place
        ranked.append(Standing(**(vars(standing) | {"rank": rank})))
    return ranked


def _intervals(
    labels: Sequence[str], reports: Sequence[Report], seed: int, resamples: int
) -> tuple[dict[str, float], dict[str, float], str]:
    """The 2.5 and 97.5 % points of every strength over scenarios drawn anew, and how they were made."""
    wins = _wins_by_scenario(labels, reports)
    scenarios, count = len(wins), len(labels)
    name = f"bootstrap of {scenarios} scenarios, {resamples} resamples, seed {seed}"
    if scenarios < 2:
        return {}, {}, "no interval: fewer than two scenarios"
    strengths, identified = [], []
    for sums in resampled_sums(wins.reshape(scenarios, -1), seed=seed, resamples=resamples):
        fitted, known = fit_many(sums.reshape(-1, count, count))
        strengths.append(fitted[known])
        identified.append(known)
    lost = resamples - int(np.concatenate(identified).sum())
    if lost > _MAX_UNIDENTIFIED * resamples:
        return {}, {}, f"no interval: {lost} of {resamples} resamples do not identify the strengths ({name})"
    low, high = np.percentile(np.concatenate(strengths), [2.5, 97.5], axis=0)
    ends = (dict(zip(labels, map(float, end), strict=True)) for end in (low, high))
    note = f"; {lost} resamples that do not identify them left out" if lost else ""
    return next(ends), next(ends), name + note


def _wins_by_scenario(labels: Sequence[str], reports: Sequence[Report]) -> Floats:
    """How often the row's side beat the column's in each scenario, ties half, in scenario order."""
    place = {label: number for number, label in enumerate(labels)}
    scenarios = sorted({item.scenario for report in reports for item in report.verdicts})
    row = {scenario: number for number, scenario in enumerate(scenarios)}
    wins = np.zeros((len(scenarios), len(labels), len(labels)))
    share = {"left": 1.0, "right": 0.0, "tie": 0.5}
    for report in reports:
        left, right = place[report.left], place[report.right]
        for item in report.verdicts:
            if item.verdict != "no_vote":
                wins[row[item.scenario], left, right] += share[item.verdict]
                wins[row[item.scenario], right, left] += 1 - share[item.verdict]
    return wins


def _cycles(labels: Sequence[str], reports: Sequence[Report]) -> list[tuple[str, ...]]:
    """A shortest way around through each side that is on one; each way is told once, from its first label."""
    beats: dict[str, list[str]] = {label: [] for label in labels}
    for report in reports:
        if report.left_wins > report.right_wins:
            beats[report.left].append(report.right)
        elif report.right_wins > report.left_wins:
            beats[report.right].append(report.left)
    found: dict[tuple[str, ...], None] = {}
    for label in labels:
        way = _way_around(label, beats)
        if way is not None:
            start = way.index(min(way))
            found.setdefault((*way[start:], *way[:start]))
    return list(found)


def _way_around(start: str, beats: Mapping[str, Sequence[str]]) -> tuple[str, ...] | None:
    """The shortest way from a side back to itself along who beat whom; None where there is none."""
    ways: list[tuple[str, ...]] = [(start,)]
    seen: set[str] = set()
    while ways:
        longer: list[tuple[str, ...]] = []
        for way in ways:
            for other in sorted(beats[way[-1]]):
                if other == start:
                    return way
                if other not in seen:
                    seen.add(other)
                    longer.append((*way, other))
        ways = longer
    return None
