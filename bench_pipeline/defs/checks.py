"""One multi-check per table, made from its schema: blocking, at ERROR severity, without partitions of its own.

What is checked is in ``pipeline.checking``; a check here reads the partitions that its run wrote, or the whole
table when it is run alone.
"""

from collections.abc import Iterator

import dagster as dg

from bench_pipeline.defs.partitions import columns_of
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.checking import check_documents, check_table, check_telemetry, checks_of
from bench_pipeline.reports.escaping import plain_text


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
        partitions = [columns_of(key) for key in partition_keys(context)]
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


@dg.asset_check(
    asset="evaluation_cells",
    name="documents",
    description="Every evaluation, tool and task file parses and resolves.",
)
def documents_check(bench: dg.ResourceParam[Bench]) -> dg.AssetCheckResult:
    """Not blocking: one broken file must not stop the evaluations that are whole."""
    problems = check_documents(bench)
    return dg.AssetCheckResult(
        passed=not problems,
        severity=dg.AssetCheckSeverity.ERROR,
        description="\n".join(problems) or "Every document parses and resolves.",
        metadata={"problems": len(problems)},
    )


@dg.asset_check(
    asset="task_results",
    name="telemetry",
    description="Every record of telemetry and judgements is valid, and no task has two results.",
)
def telemetry_check(bench: dg.ResourceParam[Bench]) -> dg.AssetCheckResult:
    """Not blocking: a score says itself what an invalid record costs it."""
    problems = check_telemetry(bench)
    return dg.AssetCheckResult(
        passed=not problems,
        severity=dg.AssetCheckSeverity.ERROR,
        description=plain_text("\n".join(problems)) or "Every record is valid.",
        metadata={"problems": len(problems)},
    )


def partition_keys(context: dg.AssetCheckExecutionContext) -> list[str]:
    """The partitions of the run, or none when the check runs alone."""
    step = context.op_execution_context
    return list(step.partition_keys) if step.has_partition_key or step.has_partition_key_range else []
