"""Which partitions the newest run that was to make them left failed: as a check of every run of everything, and a list.

What belongs here: reading Dagster's status of partitions. What does not: asking for them again (``sensors``).
"""

from collections.abc import Mapping, Sequence

import dagster as dg
from dagster._core.storage.partition_status_cache import AssetPartitionStatus

from bench_pipeline.reports.escaping import plain_text

_HOLDS = "No partition of any table was left failed by the newest run that was to make it."
# What a person reads of one table; the UI lists all.
_SHOWN = 10


def left_failed(
    instance: dg.DagsterInstance, axes: Mapping[dg.AssetKey, dg.PartitionsDefinition | None]
) -> dict[str, list[str]]:
    """The partitions of each asset that were left failed; those without any are left out."""
    found = {}
    for asset, axis in axes.items():
        keys = [] if axis is None else axis.get_partition_keys(dynamic_partitions_store=instance)
        statuses = (instance.get_status_by_partition(asset, keys, axis) if axis and keys else None) or {}
        failed = [str(key) for key in keys if statuses.get(key) is AssetPartitionStatus.FAILED]
        if failed:
            found[asset.to_user_string()] = failed
    return found


def in_words(failed: dict[str, list[str]]) -> list[str]:
    """A line for each table."""
    return [
        f"{table}: {', '.join(keys[:_SHOWN])}{f' and {len(keys) - _SHOWN} more' if len(keys) > _SHOWN else ''}"
        for table, keys in failed.items()
    ]


def inventory_check(assets: Sequence[dg.AssetsDefinition]) -> dg.AssetChecksDefinition:
    """The check over the partitions of all assets; a warning, which stops nothing."""

    @dg.asset_check(asset="evaluation_cells", name="left_failed", description=_HOLDS)
    def check(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        failed = left_failed(context.instance, {asset.key: asset.partitions_def for asset in assets})
        return dg.AssetCheckResult(
            passed=not failed,
            severity=dg.AssetCheckSeverity.WARN,
            description=plain_text("\n".join(in_words(failed))) or _HOLDS,
            metadata={"partitions": sum(map(len, failed.values()))},
        )

    return check
