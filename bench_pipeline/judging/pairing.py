"""Pairing: the cells of two folders, scenario by scenario.

What belongs here: which cells are compared, and refusing what must not be. What does not: deciding between them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from bench_pipeline.documents import describe
from bench_pipeline.errors import RefusedError
from bench_pipeline.scenarios.cell_result import CellResult, read_cells

# What two cells have to share to be compared, where both say it.
_SHARED = ("scenario_sha256", "max_steps", "max_seconds")
_terms = attrgetter(*_SHARED)
_SHOWN = 20


@dataclass(frozen=True)
class Folder:
    """The cells of one folder by scenario, with the file of each; ``label`` is what reports call it."""

    label: str
    cells: dict[str, CellResult]
    files: dict[str, str]


@dataclass(frozen=True)
class Pairing:
    """The scenarios that both sides have, in order, and those that only one has."""

    pairs: tuple[tuple[CellResult, CellResult], ...]
    left_only: tuple[str, ...]
    right_only: tuple[str, ...]


def load_folder(folder: Path, attempt: int | None = None) -> Folder:
    """The cells of a folder; only those of one attempt where it is given.

    Raises DocumentError for files that are no cell result, RefusedError for a scenario that stands twice; both name
    all files that are wrong.
    """
    found = [(name, cell) for name, cell in read_cells(folder) if attempt in (None, cell.attempt)]
    return folder_of(folder.resolve().name, found, str(folder))


def folder_of(label: str, found: Sequence[tuple[str, CellResult]], where: str) -> Folder:
    """Named cells as one side of a comparison; RefusedError where two are of one scenario."""
    cells: dict[str, CellResult] = {}
    files: dict[str, str] = {}
    twice: list[str] = []
    for name, cell in found:
        if cell.scenario in cells:
            twice.append(f"{describe(cell.scenario)} in {files[cell.scenario]} and {name}")
            continue
        cells[cell.scenario] = cell
        files[cell.scenario] = name
    if twice:
        remedy = "keep one cell of a scenario in a folder, or choose one attempt (--attempt N)"
        raise RefusedError(f"reading {where}", f"more than one cell of a scenario: {_some(twice)}", remedy)
    return Folder(label, cells, files)


def pair(left: Folder, right: Folder) -> Pairing:
    """Pair two folders by scenario; RefusedError naming every pair that was not run under the same terms."""
    shared = sorted(left.cells.keys() & right.cells.keys())
    pairs = tuple((left.cells[name], right.cells[name]) for name in shared)
    unlike = [
        f"{describe(one.scenario)} ({left.files[one.scenario]}, {right.files[one.scenario]}): {what}"
        for one, other in pairs
        if _terms(one) != _terms(other)
        for what in _differences(one, other)
    ]
    if unlike:
        wrong = f"cells of one scenario that were not run under the same terms: {_some(unlike)}"
        remedy = "run or replay both with one scenario file"
        raise RefusedError(f"comparing {left.label} and {right.label}", wrong, remedy)
    return Pairing(
        pairs,
        tuple(sorted(left.cells.keys() - right.cells.keys())),
        tuple(sorted(right.cells.keys() - left.cells.keys())),
    )


def _differences(one: CellResult, other: CellResult) -> Iterable[str]:
    for name in _SHARED:
        a, b = getattr(one, name), getattr(other, name)
        if a != b and a is not None and b is not None:
            yield f"{name} is {a} and {b}"


def _some(items: Sequence[str]) -> str:
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return "; ".join(items[:_SHOWN]) + more
