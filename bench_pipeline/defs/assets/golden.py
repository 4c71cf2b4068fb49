"""The golden lane: task results, composite scores, and the files they come from."""

from collections.abc import Iterator

import dagster as dg

from bench_pipeline.defs.checks import problems_check
from bench_pipeline.defs.lanes import OWNERS, Lane, asset_options
from bench_pipeline.defs.partitions import by_attempt, key_of, one_run, partition_of, tier_by_attempt
from bench_pipeline.defs.reporting import column_schema, report_partitions
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.checking import check_telemetry
from bench_pipeline.pipeline.golden_results import write_results
from bench_pipeline.pipeline.golden_scores import write_scores

GROUP = "golden"

INPUTS = tuple(
    dg.AssetSpec(name, group_name=GROUP, kinds={kind}, owners=OWNERS, description=text)
    for name, kind, text in (
        ("golden_files", "markdown", "`golden/<tier>/*.md`: tasks with typed signals, and their workspaces."),
        ("telemetry_files", "json", "`telemetry/<setup>/<attempt>.jsonl`: what runs elsewhere came to."),
        ("judgement_files", "json", "`judgements/<setup>/<attempt>.jsonl`: what judges said of changes."),
    )
)


_COMMON = asset_options(GROUP)


def golden_lane(max_attempts: int) -> Lane:
    """The lane over an attempt axis of ``max_attempts``."""
    results = _results(max_attempts)
    return Lane(
        INPUTS,
        by_tier=[results],
        by_attempt=[_scores(max_attempts, results)],
        checks=[
            problems_check(
                "task_results",
                "telemetry",
                "Every record of telemetry and judgements is valid, and no task has two results.",
                check_telemetry,
            )
        ],
    )


def _results(max_attempts: int) -> dg.AssetsDefinition:
    @dg.asset(
        deps=["verdicts", *(spec.key for spec in INPUTS)],
        partitions_def=tier_by_attempt(max_attempts),
        backfill_policy=one_run(),
        metadata=column_schema("task_results"),
        **_COMMON,
    )
    def task_results(
        context: dg.AssetExecutionContext, bench: dg.ResourceParam[Bench]
    ) -> Iterator[dg.MaterializeResult[None]]:
        """What came of every golden task, for each setup that has a cell or a record of one.

        Cells are measured by this project, records are told by others; a record that is not valid is named by the
        check `telemetry`, counts as missing and still closes the gates that can be read of it. Every task that
        failed has one kind of failure.
        """
        written = write_results(bench, [partition_of(key) for key in context.partition_keys])
        yield from report_partitions(
            context, "task_results", {key_of(part): item for part, item in written.items()}, {}
        )

    return task_results


def _scores(max_attempts: int, results: dg.AssetsDefinition) -> dg.AssetsDefinition:
    @dg.asset(
        deps=[dg.AssetDep(results, partition_mapping=dg.MultiToSingleDimensionPartitionMapping("attempt"))],
        partitions_def=by_attempt(max_attempts),
        backfill_policy=one_run(),
        metadata=column_schema("composite_scores"),
        **_COMMON,
    )
    def composite_scores(
        context: dg.AssetExecutionContext, bench: dg.ResourceParam[Bench]
    ) -> Iterator[dg.MaterializeResult[None]]:
        """One score for each setup, from 0 to 1: tasks, quality and efficiency, times reliability, times safety.

        A test that regressed or an attestation that is not clean makes it 0; `reasons` says why. The default scope
        is every tier but adversarial; scopes that `bench golden run` was asked for are kept current too.
        """
        written = write_scores(bench, [int(key) for key in context.partition_keys])
        yield from report_partitions(
            context, "composite_scores", {str(attempt): item for attempt, item in written.items()}, {}
        )

    return composite_scores
