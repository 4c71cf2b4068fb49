"""What tables were made from, so that the store alone tells which of them are behind.

What belongs here: which table follows which, and the record of each making. What does not: asking for what is behind
(``following``).

What a table is made from is noted before it is read and kept after the table is written: a change in between leaves
the table behind, and is not lost.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from bench_pipeline.identity import digest
from bench_pipeline.pipeline.selection import TIERS, rectangle
from bench_pipeline.tables import table_schema

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.store import Store

# What each table is made from: other tables, and folders of the project; settings beside that. What is followed stands
# first.
FOLLOWS: Mapping[str, tuple[str, ...]] = {
    "evaluation_cells": (),
    "verdicts": ("evaluation_cells",),
    "evaluation_rankings": ("evaluation_cells", "verdicts"),
    "paired_comparisons": ("evaluation_cells", "verdicts"),
    "task_results": ("verdicts",),
    "composite_scores": ("task_results",),
    "policy_leaderboard": ("policy_receipts", "policy_calls"),
}
FOLDERS: Mapping[str, tuple[str, ...]] = {
    "evaluation_cells": ("evaluations", "tools", "tasks", "golden", "predictions"),
    "task_results": ("golden", "telemetry", "judgements"),
}
# Making these runs tools.
SPENDS = frozenset({"verdicts"})
# Made from other tables, and for nothing.
DERIVED = tuple(table for table, upstream in FOLLOWS.items() if upstream and table not in SPENDS)
_FILES, _SETTINGS = "files", "settings"
# Sections of config.yaml that decide which cells there are, and their keys.
_PLANNING = {"agent", "allowance", "attestation", "defaults", "dockerfile", "sandbox", "source", "upstreams"}

# The values of a table's partition columns, in their order; empty for a table of one file.
Key = tuple[str, ...]
WHOLE: Key = ()
Inputs = dict[str, str]
Digests = Callable[[str], Sequence[tuple[dict[str, str], str | None]]]


@dataclass(frozen=True)
class Making:
    """The newest making of a partition: which one it is, counted from 1, and what it was made from.

    ``inputs``: the digest of each table, of the files of the project, and of the settings.
    """

    number: int
    inputs: Inputs


NEVER = Making(0, {})


@contextmanager
def made(bench: "Bench", table: str, keys: Iterable[Key] = (WHOLE,)) -> Iterator[None]:
    """Note what partitions of a table are made from, while the block reads that and writes them."""
    before = inputs_of(bench, table, bench.store.tables.digests, files=True)
    yield
    with bench.store.lock(f"made-{table}"):
        makings = read_makings(bench.store, table)
        makings |= {key: Making(makings.get(key, NEVER).number + 1, before.get(key, {})) for key in keys}
        _write_makings(bench.store, table, makings)
    if table in FOLDERS:
        bench.files.remember()


def inputs_of(bench: "Bench", table: str, digests: Digests, *, files: bool) -> dict[Key, Inputs]:
    """What each partition of a table is to be made from now; those that nothing is stored for are left out.

    ``digests`` gives the partitions of a stored table with their contents. With ``files``, a table that is made from
    files of the project has all of its partitions.
    """
    columns = table_schema(table).partitions
    parts: dict[Key, dict[str, dict[str, str | None]]] = {}
    for upstream in FOLLOWS[table]:
        for partition, content in digests(upstream):
            key = tuple(partition[column] for column in columns)
            name = "/".join(f"{column}={value}" for column, value in partition.items())
            parts.setdefault(key, {}).setdefault(upstream, {})[name] = content
    settings = _settings(bench, table)
    inputs = {
        key: {upstream: digest(found) for upstream, found in each.items()} | settings
        for key, each in parts.items()
    }
    if files and table in FOLDERS:
        content = digest({_FILES: bench.files.digest(FOLDERS[table]), **settings})
        attempts = range(1, bench.max_attempts() + 1)
        for part in rectangle(TIERS, attempts):
            inputs.setdefault((part.tier, str(part.attempt)), {})[_FILES] = content
    return inputs


def _settings(bench: "Bench", table: str) -> Inputs:
    """What else decides over a table: the settings that it is made by, and prices where it has costs."""
    config = bench.project.config
    match table:
        case "evaluation_cells":
            found: object = config.model_dump(mode="json", include=_PLANNING)
        case "evaluation_rankings":
            found = {"prices": bench.prices.digest(), "ranking": config.ranking.model_dump()}
        case "paired_comparisons":
            found = {"remote": config.source.remote}
        case "task_results":
            found = {"prices": bench.prices.digest()}
        case "composite_scores":
            found = {"attestation": config.attestation}
        case _:
            return {}
    return {_SETTINGS: digest(found)}


def behind(
    bench: "Bench", table: str, digests: Digests | None = None, *, files: bool = False
) -> dict[Key, Making]:
    """The partitions of a table that are not there, or were made from something else than there is now.

    Each as it is to be made. What counts is other tables; with ``files``, those of the project for a table that is made
    from any. ``digests`` as for ``inputs_of``: tables that follow the same are looked at with one reading of it.
    """
    makings = read_makings(bench.store, table)
    columns = table_schema(table).partitions
    stored = bench.store.tables.partitions(table)
    there = {tuple(partition[column] for column in columns) for partition in stored}
    found = {}
    for key, inputs in inputs_of(bench, table, digests or bench.store.tables.digests, files=files).items():
        counting = {_FILES: inputs[_FILES]} if _FILES in inputs else inputs
        last = makings.get(key, NEVER)
        if key not in there or counting.items() - last.inputs.items():
            found[key] = Making(last.number + 1, counting)
    return found


def read_makings(store: "Store", table: str) -> dict[Key, Making]:
    """The last making of each partition; none where the record is absent or damaged: then all are made anew."""
    try:
        document = json.loads(store.files.read(_path(table)))
        return {tuple(item["key"]): Making(item["number"], item["inputs"]) for item in document}
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return {}


def _write_makings(store: "Store", table: str, makings: Mapping[Key, Making]) -> None:
    document: Sequence[object] = [{"key": key, **asdict(making)} for key, making in sorted(makings.items())]
    store.files.write(_path(table), json.dumps(document).encode())


def _path(table: str) -> str:
    return f"made/{table}.json"
