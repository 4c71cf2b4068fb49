"""One multi-check per table, made from its schema: blocking, at ERROR severity, without partitions of its own.

Beside them a check of the files behind an asset, which does not block.

What is checked is in ``pipeline.checking``; a check here reads the partitions that its run wrote, or the whole
table when it is run alone.
"""

from collections.abc import Callable, Iterator, Sequence

import dagster as dg

from bench_pipeline.defs.partitions import columns_of
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.checking import check_table, checks_of
from bench_pipeline.reports.escaping import plain_text
from bench_pipeline.tables import table_schema


def table_checks(table: str) -> dg.AssetChecksDefinition:
    """The checks of one table as one step."""

    @dg.multi_asset_check(
        name=f"{table}_checks",
        specs=[
            dg.AssetCheckSpec(name, asset=table, blocking=True, description=text)
            for name, text in checks_of(table).items()
        ],
    )
    def checks(
        context: dg.AssetCheckExecutionContext, bench: dg.ResourceParam[Bench]
    ) -> Iterator[dg.AssetCheckResult]:
        keys = partition_keys(context)
        axes = table_schema(table).partitions
        partitions = [{"ledger": key} if "ledger" in axes else columns_of(key) for key in keys if axes]
        for outcome in check_table(bench.store, table, partitions):
            yield dg.AssetCheckResult(
                passed=outcome.passed,
                check_name=outcome.name,
                asset_key=table,
                severity=dg.AssetCheckSeverity.ERROR,
                description=outcome.text,
                metadata={"rows": outcome.rows, "faulty_rows": outcome.faulty},
            )

    return checks


def problems_check(
    asset: str, name: str, holds: str, find: Callable[[Bench], Sequence[str]]
) -> dg.AssetChecksDefinition:
    """A check that lists what is wrong with the files behind an asset; ``holds`` says what does when nothing is.

    It does not block: one broken file must not stop what is made of those that are whole.
    """

    @dg.asset_check(asset=asset, name=name, description=holds)
    def check(bench: dg.ResourceParam[Bench]) -> dg.AssetCheckResult:
        problems = find(bench)
        return dg.AssetCheckResult(
            passed=not problems,
            severity=dg.AssetCheckSeverity.ERROR,
            description=plain_text("\n".join(problems)) or holds,
            metadata={"problems": len(problems)},
        )

    return check


def partition_keys(context: dg.AssetCheckExecutionContext) -> list[str]:
    """The partitions of the run, or none when the check runs alone."""
    step = context.op_execution_context
    return list(step.partition_keys) if step.has_partition_key or step.has_partition_key_range else []
