"""The partition axes: tiers, attempts, and both together.

Axis names sort alphabetically in keys and paths, so a key reads ``attempt|tier``, such as ``1|smoke``. The
attempt axis has the size that the project's config gave it when the code location was loaded: it must not move
while a daemon is up.
"""

from collections.abc import Mapping
from functools import cache

import dagster as dg

from bench_pipeline.pipeline.selection import TIERS, Partition


@cache
def tier_by_attempt(max_attempts: int) -> dg.MultiPartitionsDefinition:
    """Tiers x attempts 1..max_attempts."""
    return dg.MultiPartitionsDefinition(
        {
            "tier": dg.StaticPartitionsDefinition(list(TIERS)),
            "attempt": by_attempt(max_attempts),
        }
    )


@cache
def by_attempt(max_attempts: int) -> dg.StaticPartitionsDefinition:
    """Attempts 1..max_attempts."""
    return dg.StaticPartitionsDefinition([str(number) for number in range(1, max_attempts + 1)])


LEDGER_AXIS = "ledger"


@cache
def by_ledger() -> dg.DynamicPartitionsDefinition:
    """The ledgers that were seen: added by their sensor and by `bench run`."""
    return dg.DynamicPartitionsDefinition(name=LEDGER_AXIS)


def range_tags(first: str, last: str) -> dict[str, str]:
    """The tags of a run over the partitions from ``first`` to ``last``."""
    return {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}


def whole_rectangle(max_attempts: int) -> tuple[str, str]:
    """The first and the last key of tiers x attempts: a range over both is everything."""
    return key_of(Partition(TIERS[0], 1)), key_of(Partition(TIERS[-1], max_attempts))


def whole_axis(max_attempts: int) -> tuple[str, str]:
    """The first and the last key of attempts."""
    return "1", str(max_attempts)


def one_run() -> dg.BackfillPolicy:
    """One run for a range that is backfilled from the UI: what its partitions share is done once."""
    return dg.BackfillPolicy.single_run()


def partition_of(key: str) -> Partition:
    """The partition that a key such as ``1|smoke`` stands for."""
    attempt, tier = key.split("|")
    return Partition(tier=tier, attempt=int(attempt))


def columns_of(key: str) -> dict[str, str | int]:
    """The columns that a key such as ``1|smoke`` or ``1`` stands for, by name."""
    attempt, _, tier = key.partition("|")
    return {"attempt": int(attempt), "tier": tier} if tier else {"attempt": int(attempt)}


def key_of_columns(columns: Mapping[str, str]) -> str:
    """The Dagster key of the columns of a partition; the reverse of ``columns_of``."""
    return dg.MultiPartitionKey(columns) if len(columns) > 1 else columns["attempt"]


def key_of(partition: Partition) -> dg.MultiPartitionKey:
    """The Dagster key of a partition."""
    return dg.MultiPartitionKey({"tier": partition.tier, "attempt": str(partition.attempt)})
