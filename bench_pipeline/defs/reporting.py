"""What an asset tells Dagster about the table it wrote: counts, a preview, the column schema, data versions."""

from collections.abc import Iterator, Mapping, Sequence

import dagster as dg

from bench_pipeline.pipeline.tables import Written, preview
from bench_pipeline.tables import TableSchema

# Enough rows to recognise what is in a table; more makes the event log heavy.
PREVIEW_ROWS = 8

Metadata = Mapping[str, dg.MetadataValue]


def table_metadata(schema: TableSchema, written: Sequence[Written]) -> dict[str, dg.MetadataValue]:
    """Row count, files, preview and columns of what was written, as asset metadata."""
    return {
        "dagster/row_count": dg.MetadataValue.int(sum(item.rows for item in written)),
        "paths": dg.MetadataValue.json([item.path for item in written]),
        "preview": dg.MetadataValue.md(preview(written, PREVIEW_ROWS)),
        "dagster/column_schema": dg.MetadataValue.table_schema(column_schema(schema)),
    }


def column_schema(schema: TableSchema) -> dg.TableSchema:
    """A table's columns as Dagster shows them."""
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                name=field.name,
                type=str(field.type),
                constraints=dg.TableColumnConstraints(nullable=field.nullable),
            )
            for field in schema.schema
        ]
    )


def report_partitions(
    context: dg.AssetExecutionContext,
    schema: TableSchema,
    written: Mapping[str, Written],
    extra: Mapping[str, Metadata],
) -> Iterator[dg.MaterializeResult[None]]:
    """Report a partitioned table; ``written`` and ``extra`` are by partition key.

    A run over a range of partitions would stamp one data version on all of them, so each partition gets an
    event of its own, with the version of its own content, after the asset's result.
    """
    keys = list(written)
    if len(keys) == 1:
        only = written[keys[0]]
        yield dg.MaterializeResult(
            metadata={**table_metadata(schema, [only]), **extra.get(keys[0], {})},
            data_version=dg.DataVersion(only.digest),
        )
        return
    yield dg.MaterializeResult()
    for key, item in written.items():
        context.log_event(
            dg.AssetMaterialization(
                asset_key=context.asset_key,
                partition=key,
                metadata={**table_metadata(schema, [item]), **extra.get(key, {})},
                tags={"dagster/data_version": item.digest},
            )
        )
