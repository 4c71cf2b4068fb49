"""What an asset tells Dagster about the table it wrote: a summary, counts, a preview, columns, data versions."""

from collections.abc import Iterator, Mapping

import dagster as dg
from dagster._core.definitions.source_asset import SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION

from bench_pipeline.pipeline.glances import glance
from bench_pipeline.pipeline.tables import Written
from bench_pipeline.tables import meaning, table_schema

Numbers = Mapping[str, int | float | None]
Metadata = dict[str, dg.MetadataValue]

# Dagster reports one materialization with one data version for each partition of a range; this mark in a result's
# metadata leaves that to us. Without it every partition would have two events, and writing events is what a run in
# which everything is known spends its time on.
_REPORTED_BY_US = {SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION: True}


def report_table(name: str, written: Written) -> dg.MaterializeResult[None]:
    """The result of an asset whose table is one file."""
    return _result(name, written, {})


def report_partitions(
    context: dg.AssetExecutionContext,
    name: str,
    written: Mapping[str, Written],
    numbers: Mapping[str, Numbers],
) -> Iterator[dg.MaterializeResult[None]]:
    """Report a partitioned table; ``numbers`` of a partition are charted over time, unknown ones left out.

    A run over a range of partitions reports an event for each, with the version of its own content, so that a
    partition whose content is as before does not look new to what depends on it.
    """
    if len(context.partition_keys) == 1:
        ((key, item),) = written.items()
        yield _result(name, item, numbers.get(key, {}))
        return
    for key, item in written.items():
        context.log_event(
            dg.AssetMaterialization(
                asset_key=context.asset_key,
                partition=key,
                metadata=_metadata(name, item, numbers.get(key, {})),
                tags={
                    "dagster/data_version": item.digest,
                    **_axes(key),
                },
            )
        )
    yield dg.MaterializeResult(metadata=_REPORTED_BY_US)


def _axes(key: str) -> dict[str, str]:
    """The tags that tell the axes of a key of several apart."""
    if not isinstance(key, dg.MultiPartitionKey):
        return {}
    return {f"dagster/partition/{axis}": value for axis, value in key.keys_by_dimension.items()}


def _result(name: str, written: Written, numbers: Numbers) -> dg.MaterializeResult[None]:
    return dg.MaterializeResult(
        metadata={**_metadata(name, written, numbers), **column_schema(name)},
        data_version=dg.DataVersion(written.digest),
    )


def _metadata(name: str, written: Written, numbers: Numbers) -> Metadata:
    seen = glance(name, written.table)
    return {
        "summary": dg.MetadataValue.md(seen.summary),
        "preview": dg.MetadataValue.md(seen.preview),
        "path": dg.MetadataValue.path(written.path),
        "dagster/row_count": dg.MetadataValue.int(written.rows),
        **_charts({**seen.numbers, **numbers}),
    }


def _charts(numbers: Numbers) -> Metadata:
    """Numbers as numeric metadata, which the UI charts over time; an unknown one is no point of a chart."""
    return {
        label: dg.MetadataValue.int(value) if isinstance(value, int) else dg.MetadataValue.float(value)
        for label, value in numbers.items()
        if value is not None
    }


def column_schema(name: str) -> Metadata:
    """A table's columns as Dagster shows them.

    For the asset's definition: it is the same for every partition, and repeated in each event it would be most of
    the event log.
    """
    columns = [
        dg.TableColumn(
            name=column.name,
            type=str(column.type),
            description=meaning(name, column.name),
            constraints=dg.TableColumnConstraints(nullable=column.nullable),
        )
        for column in table_schema(name).schema
    ]
    return {"dagster/column_schema": dg.MetadataValue.table_schema(dg.TableSchema(columns=columns))}
