"""Cell results: what came of one scenario in one cell, a JSON file each.

What belongs here: the fields, safe file names, writing without overwriting, reading one file or a folder of them. What
does not: scoring (``scoring``) and comparing (``bench_pipeline.judging``).
"""

import json
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field
from pydantic_core import from_json

from bench_pipeline.documents import Bool, Int, StrictModel, Text, TextList, describe, read_json
from bench_pipeline.errors import DocumentError, Problem, RefusedError
from bench_pipeline.scenarios.scenario import Count, Filled, Scenario
from bench_pipeline.scenarios.scoring import score
from bench_pipeline.scenarios.trace import Trace
from bench_pipeline.store.files import LocalFiles

# What common file systems take for one name.
_LONGEST_NAME = 255
Attempt = Annotated[Int, Field(ge=1)]


class CellResult(NamedTuple):
    """One file, its fields in the order in which files and tables have them; what an older one does not say is None.

    A named tuple, because ten thousands of them are read at once and nothing else is made as fast.
    """

    scenario: str
    cell: str | None
    attempt: int
    mode: str | None
    harness: str | None
    model: str | None
    replay: str | None
    max_steps: int | None
    max_seconds: int | None
    passed: bool
    steps: int
    seconds: int
    missing_evidence: tuple[str, ...]
    over_steps: bool | None
    over_seconds: bool | None
    winning_artifact: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    total_tokens: int | None
    scenario_sha256: str | None

    def document(self) -> dict[str, object]:
        """The fields as JSON has them."""
        return self._asdict() | {"missing_evidence": list(self.missing_evidence)}


class _Document(StrictModel):
    """A cell result's file, for reading that says what is wrong."""

    scenario: Filled
    passed: Bool
    steps: Count
    seconds: Count
    missing_evidence: TextList
    cell: Text | None = None
    attempt: Attempt = 1
    mode: Text | None = None
    harness: Text | None = None
    model: Text | None = None
    replay: Text | None = None
    max_steps: Count | None = None
    max_seconds: Count | None = None
    over_steps: Bool | None = None
    over_seconds: Bool | None = None
    winning_artifact: Text | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    total_tokens: Count | None = None
    scenario_sha256: Text | None = None


def scored_cell(
    scenario: Scenario,
    trace: Trace,
    *,
    cell: str | None = None,
    mode: str | None = None,
    attempt: int = 1,
    replay: str | None = None,
) -> CellResult:
    """Score a trace; a run just made and one read back from disk come here alike.

    ``cell`` and ``mode`` stand for what the trace's header says where they are given. Raises RefusedError for a trace
    of another scenario, and for one whose seconds are unknown.
    """
    header = trace.header
    if header.scenario != scenario.name:
        raise RefusedError(
            f"scoring the run {header.run_id}",
            f"it is of the scenario {describe(header.scenario)}, and {scenario.path} is {describe(scenario.name)}",
            "name the scenario that was run",
        )
    measured = trace.measured()
    scored = score(scenario, measured)
    prompt, completion = trace.tokens
    return CellResult(
        scenario=scenario.name,
        cell=cell or header.cell,
        attempt=attempt,
        mode=mode or header.mode,
        harness=header.harness,
        model=header.model,
        replay=replay,
        max_steps=scenario.max_steps,
        max_seconds=scenario.max_seconds,
        passed=scored.passed,
        steps=measured.steps,
        seconds=measured.seconds,
        missing_evidence=scored.missing,
        over_steps=scored.over_steps,
        over_seconds=scored.over_seconds,
        winning_artifact=trace.artifact,
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=None if prompt is None or completion is None else prompt + completion,
        scenario_sha256=scenario.sha256,
    )


def slug(name: str) -> str:
    """``name`` in lower case with every run of other characters than letters and digits one hyphen, trimmed."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def file_name(scenario: str, cell: str, attempt: int = 1) -> str:
    """The name of a cell result's file; RefusedError where it would be empty or too long."""
    parts = {"scenario": slug(scenario), "cell": slug(cell)}
    for what, part in parts.items():
        if not part:
            name = scenario if what == "scenario" else cell
            wrong = f"the {what}'s name {describe(name)} has no letter or digit (a-z, 0-9)"
            raise RefusedError("naming a cell result", wrong, "give it one that has")
    later = f".a{attempt}" if attempt > 1 else ""
    name = f"{parts['scenario']}.{parts['cell']}{later}.json"
    if len(name) > _LONGEST_NAME:
        raise RefusedError(
            "naming a cell result", f"{describe(name)} is longer than a file's name may be", "shorten it"
        )
    return name


def write_cell(folder: Path, result: CellResult, *, force: bool = False) -> Path:
    """Write a result into a folder.

    An earlier result of the same cell is replaced only by ``force``; one of another cell, whose name happens to give
    the same file, never. Raises RefusedError for both.
    """
    path = folder / file_name(result.scenario, result.cell or "", result.attempt)
    data = (json.dumps(result.document(), ensure_ascii=False, allow_nan=False, indent=2) + "\n").encode()
    files = LocalFiles(folder)
    if files.create(path.name, data):
        return path
    earlier = read_cell(path)
    if (earlier.scenario, earlier.cell, earlier.attempt) != (result.scenario, result.cell, result.attempt):
        wrong = f"it holds the result of {describe(earlier.scenario)} in {describe(earlier.cell)}"
        raise RefusedError(
            f"writing {path}", wrong, "rename the cell or the scenario, or choose another folder"
        )
    if not force:
        raise RefusedError(
            f"writing {path}", "it holds an earlier result of this cell", "replace it with --force"
        )
    files.write(path.name, data)
    return path


def read_cell(path: Path) -> CellResult:
    """Read one file. Raises DocumentError with all that is wrong with it."""
    return CellResult(**dict(read_json(path, _Document).model))


def read_cells(folder: Path) -> list[tuple[str, CellResult]]:
    """Every ``.json`` file of a folder by name, with its result. Raises DocumentError naming all that are none."""
    found: list[tuple[str, CellResult]] = []
    problems: list[Problem] = []
    try:
        # Opening below a descriptor spares the system a walk along the whole path for each file.
        above = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise DocumentError([Problem(str(folder), None, "", f"cannot be read: {error.strerror}")]) from None
    try:
        for name in sorted(name for name in os.listdir(above) if name.endswith(".json")):  # noqa: PTH208
            try:
                found.append((name, _read_plainly(name, above) or read_cell(folder / name)))
            except DocumentError as error:
                problems += error.problems
    finally:
        os.close(above)
    if problems:
        raise DocumentError(problems)
    return found


_OPEN = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
# A file of the usual size is read in one call.
_USUAL_BYTES = 1 << 15
_LARGEST = 2**63 - 1
_TEXT, _COUNT = (str, type(None)), (int, type(None))
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(CellResult._fields, _TEXT),
    **dict.fromkeys(
        ("max_steps", "max_seconds", "prompt_tokens", "completion_tokens", "total_tokens"), _COUNT
    ),
    **dict.fromkeys(("over_steps", "over_seconds"), (bool, type(None))),
    **dict.fromkeys(("steps", "seconds", "attempt"), (int,)),
    "scenario": (str,),
    "passed": (bool,),
    "missing_evidence": (list,),
}


def _read_plainly(path: str, folder: int | None = None) -> CellResult | None:
    """The result in a file, below a folder's descriptor, as ``write_cell`` makes it; None for the strict reader.

    That one is many times slower. Whatever this accepts, it accepts too, as the same.
    """
    try:
        handle = os.open(path, _OPEN, dir_fd=folder)
        try:
            data = os.read(handle, _USUAL_BYTES)
        finally:
            os.close(handle)
        quotes = _quotes(data) if len(data) < _USUAL_BYTES else None
        return None if quotes is None else _plain_result(from_json(data, cache_strings="keys"), quotes)
    except (OSError, ValueError):
        return None


def _quotes(data: bytes) -> int | None:
    """How many quotes begin or end a text; None where a Unicode escape, or a backslash of the text, needs care."""
    escapes = data.count(b"\\")
    if escapes == 0 or escapes == data.count(b"\\n"):
        return data.count(b'"')
    if b"\\u" in data or b"\\\\" in data:
        return None
    return data.count(b'"') - data.count(b'\\"')


def _plain_result(row: Any, quotes: int) -> CellResult | None:
    if type(row) is not dict:
        return None
    types = tuple(map(type, row.values()))
    if not _is_usual(tuple(row), types):
        return None
    missing = row["missing_evidence"] = tuple(row["missing_evidence"])
    cell = CellResult._make(row.values())
    counts = (
        cell.attempt - 1, cell.steps, cell.seconds, cell.max_steps or 0, cell.max_seconds or 0, cell.prompt_tokens or 0,
        cell.completion_tokens or 0, cell.total_tokens or 0,
    )  # fmt: skip
    if min(counts) < 0 or max(counts) > _LARGEST or not cell.scenario.strip():
        return None
    if missing and set(map(type, missing)) != {str}:
        return None
    # Quotes tell of a key that stands twice, which the parser does not.
    texts = len(types) + types.count(str) + len(missing)
    return cell if quotes == 2 * texts else None


@lru_cache(maxsize=1024)
def _is_usual(names: tuple[str, ...], types: tuple[type, ...]) -> bool:
    """Whether a file has every field, in order, each of its type."""
    return names == CellResult._fields and all(
        kind in _TYPES[name] for name, kind in zip(names, types, strict=True)
    )
