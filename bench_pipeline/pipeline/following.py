"""What has to run so that tables follow what they are made from; told from the store, level by level.

What belongs here: deciding, over what is behind, what is running and what became of earlier runs. What does not: the
records of what tables were made from (``provenance``) and Dagster (``defs.sensors``).

Nothing is remembered between looks. A run is asked for under a key that is made of what it is to bring about, and how
often each partition was made before: so nothing is asked for twice, content that comes back is asked for again, and a
change that comes at any moment is found by the next look.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

from bench_pipeline.identity import digest
from bench_pipeline.pipeline.asking import Run, newest_try
from bench_pipeline.pipeline.provenance import (
    DERIVED,
    FOLDERS,
    FOLLOWS,
    SPENDS,
    Key,
    Making,
    behind,
)
from bench_pipeline.tables import table_schema
from bench_pipeline.tasks import TIERS

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench

Columns = dict[str, str]
_RECIPE = "follow-run/1"


@dataclass(frozen=True)
class Request:
    """One run of a job over some of its tables, and the partitions from ``first`` to ``last`` where they have any."""

    key: str
    job: str
    tables: tuple[str, ...]
    first: Columns
    last: Columns


@dataclass(frozen=True)
class Situation:
    """What is known of runs: the job of each table, the tables that a run is making, those whose checks failed.

    ``max_attempts`` is the size of the attempt axis that runs have.
    """

    job_of: Mapping[str, str]
    running: AbstractSet[str]
    refused: AbstractSet[str]
    run_of: Callable[[str], Run]
    max_attempts: int


def follow(
    bench: "Bench",
    situation: Situation,
    tables: Sequence[str] = DERIVED,
    *,
    files: bool = False,
) -> list[Request]:
    """The runs to ask for now over these tables, at most one of each job; with ``files``, also as these ask for it.

    A table waits while a run is making it, and while another job makes what it follows. Nothing follows a table that
    failed a check.
    """
    pending = set(situation.running)
    digests = cache(bench.store.tables.digests)
    stale = {
        table: _on_the_axis(table, behind(bench, table, digests, files=files), situation.max_attempts)
        for table in tables
    }
    requests = []
    for job in dict.fromkeys(situation.job_of.values()):
        wanted = {
            table: makings
            for table, makings in stale.items()
            if makings and situation.job_of.get(table) == job and _may(table, situation, pending)
        }
        key, _, run = newest_try(partial(_key, wanted), situation.run_of, again={"failed", "done"})
        if wanted and run == "absent":
            requests.append(Request(key, job, tuple(wanted), *_ends(wanted)))
        if run in {"absent", "going"}:
            pending |= wanted.keys()
    return requests


def _may(table: str, situation: Situation, pending: AbstractSet[str]) -> bool:
    job = situation.job_of[table]
    waiting = any(
        upstream in pending and situation.job_of.get(upstream) != job for upstream in FOLLOWS[table]
    )
    return table not in situation.running and not waiting and situation.refused.isdisjoint(FOLLOWS[table])


def _key(wanted: Mapping[str, Mapping[Key, Making]], tries: int) -> str:
    """The key of a run, made of what it is to bring about."""
    change = [
        [table, [[*key, making.number, making.inputs] for key, making in sorted(makings.items())]]
        for table, makings in wanted.items()
    ]
    return digest({"recipe": _RECIPE, "change": change, "tries": tries})


def _on_the_axis(table: str, makings: Mapping[Key, Making], max_attempts: int) -> dict[Key, Making]:
    """Without what is stored of attempts that the project no longer has: Dagster has no partitions for them."""
    columns = table_schema(table).partitions
    at = columns.index("attempt") if "attempt" in columns else None
    return {key: making for key, making in makings.items() if at is None or int(key[at]) <= max_attempts}


def _ends(wanted: Mapping[str, Mapping[Key, Making]]) -> tuple[Columns, Columns]:
    """The corners of the smallest rectangle around all partitions: what one run can cover."""
    values: dict[str, set[str]] = {}
    for table, makings in wanted.items():
        for column, found in zip(table_schema(table).partitions, zip(*makings, strict=True), strict=True):
            values.setdefault(column, set()).update(found)
    first = {column: min(found, key=_rank) for column, found in values.items()}
    return first, {column: max(found, key=_rank) for column, found in values.items()}


def _rank(value: str) -> int:
    return TIERS.index(value) if value in TIERS else int(value)


def follow_files(bench: "Bench", situation: Situation) -> list[Request]:
    """The runs to ask for because of files: planning and results of others, and measuring where a cap is set.

    Nothing while files differ from the last look: somebody may be writing them.
    """
    if bench.files.moving:
        bench.files.remember()
        return []
    spending = bench.project.config.spending
    capped = spending.max_cost_usd is not None or spending.max_cells is not None
    tables = [table for table in FOLLOWS if table in FOLDERS or (capped and table in SPENDS)]
    return follow(bench, situation, tables, files=True)
