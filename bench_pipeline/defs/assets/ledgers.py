"""The ledger lane: rows of other labs' ledgers, their summaries, and the files they come from."""

from collections.abc import Iterator

import dagster as dg

from bench_pipeline.defs.checks import partition_keys
from bench_pipeline.defs.lanes import OWNERS, Lane, asset_options
from bench_pipeline.defs.partitions import by_ledger, one_run
from bench_pipeline.defs.reporting import column_schema, report_partitions, report_table
from bench_pipeline.errors import BenchError
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.ledger_tables import unread_ledgers, write_ledger_rows, write_ledger_summaries
from bench_pipeline.reports.escaping import plain_text

GROUP = "ledgers"

INPUTS = (
    dg.AssetSpec(
        "ledger_files",
        group_name=GROUP,
        kinds={"json"},
        owners=OWNERS,
        description="`ledgers/*.jsonl*`, or the folder that the config names: trials that others measured.",
    ),
)
_COMMON = asset_options(GROUP)


def ledger_lane(_: int) -> Lane:
    """The lane; its axis is that of ledgers, whatever the number of attempts."""
    rows = _rows()
    return Lane(INPUTS, by_ledger=[rows, _summaries(rows)], checks=[read_check])


def _rows() -> dg.AssetsDefinition:
    @dg.asset(
        deps=[spec.key for spec in INPUTS],
        partitions_def=by_ledger(),
        backfill_policy=one_run(),
        metadata=column_schema("ledger_rows"),
        **_COMMON,
    )
    def ledger_rows(
        context: dg.AssetExecutionContext, bench: dg.ResourceParam[Bench]
    ) -> Iterator[dg.MaterializeResult[None]]:
        """Every trial of a ledger with the kind of its route, and why it is not valid where it is not.

        Nothing of it was measured here. A ledger that was appended to is read from where the last run ended
        (`read_rows`). Lines that are no JSON objects are counted as `unparsable_lines` and are no rows.
        """
        written, numbers = {}, {}
        for key in context.partition_keys:
            try:
                read = write_ledger_rows(bench, key)
            except BenchError as error:
                if len(context.partition_keys) == 1:
                    raise
                # One file that cannot be read must not hold up the others; the check `read` names it.
                context.log.error(plain_text(f"{key}: {error}"))  # noqa: TRY400 - one line says all
            else:
                written[key], numbers[key] = read.written, read.numbers
        yield from report_partitions(context, "ledger_rows", written, numbers)

    return ledger_rows


def _summaries(rows: dg.AssetsDefinition) -> dg.AssetsDefinition:
    @dg.asset(
        deps=[dg.AssetDep(rows, partition_mapping=dg.AllPartitionMapping())],
        metadata=column_schema("ledger_summaries"),
        **_COMMON,
    )
    def ledger_summaries(bench: dg.ResourceParam[Bench]) -> dg.MaterializeResult[None]:
        """Every ledger route by route. Kinds of routes are **never averaged, summed or ranked together**.

        Averages are over the valid rows that have the value, each with its own count.
        """
        return report_table("ledger_summaries", write_ledger_summaries(bench))

    return ledger_summaries


@dg.asset_check(
    asset="ledger_rows",
    name="read",
    description="Every ledger that was asked for has been read.",
)
def read_check(context: dg.AssetCheckExecutionContext, bench: dg.ResourceParam[Bench]) -> dg.AssetCheckResult:
    """Not blocking: the ledgers that could be read are summed up."""
    unread = unread_ledgers(bench, partition_keys(context))
    return dg.AssetCheckResult(
        passed=not unread,
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"not read, see the log of the run: {', '.join(unread)}"
        if unread
        else "Every ledger was read.",
        metadata={"unread": len(unread)},
    )
