"""The policy lane: receipts of comparisons, their leaderboard, and the files they come from."""

from collections.abc import Iterator

import dagster as dg
from pydantic import Field

from bench_pipeline.defs.checks import partition_keys, problems_check
from bench_pipeline.defs.lanes import OWNERS, Lane, asset_options
from bench_pipeline.defs.partitions import by_attempt, one_run
from bench_pipeline.defs.reporting import column_schema, report_partitions, report_table
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.policy_leaderboards import check_traces, write_leaderboard
from bench_pipeline.pipeline.policy_receipts import check_comparisons, write_receipts

GROUP = "policies"

INPUTS = (
    dg.AssetSpec(
        "policy_files",
        group_name=GROUP,
        kinds={"yaml"},
        owners=OWNERS,
        description="`policies/*.yaml`, with the cases and recordings beside them: what is asked, of which model.",
    ),
)
_COMMON = asset_options(GROUP)


class ReceiptsConfig(dg.Config):
    """Which comparisons are run; an empty list means all."""

    comparisons: list[str] = Field([], description="Names of comparisons; empty means all.")
    fresh: bool = Field(False, description="Ask again what is stored.")


def policy_lane(max_attempts: int) -> Lane:
    """The lane over an attempt axis of ``max_attempts``."""
    receipts = _receipts(by_attempt(max_attempts))
    return Lane(
        INPUTS,
        by_attempt=[receipts, _leaderboard(receipts)],
        checks=[
            problems_check(
                "policy_receipts",
                "comparisons",
                "Every comparison of policies parses, with its cases and its recording.",
                check_comparisons,
            ),
            traces_check,
        ],
    )


def _receipts(axis: dg.StaticPartitionsDefinition) -> dg.AssetsDefinition:
    @dg.asset(
        deps=[spec.key for spec in INPUTS],
        partitions_def=axis,
        backfill_policy=one_run(),
        metadata=column_schema("policy_receipts"),
        **_COMMON,
    )
    def policy_receipts(
        context: dg.AssetExecutionContext, config: ReceiptsConfig, bench: dg.ResourceParam[Bench]
    ) -> Iterator[dg.MaterializeResult[None]]:
        """What came of every comparison, policy by policy. A live model is asked, and that **may spend money**.

        An attempt that is stored is reused (`hits`) while its cases, model, budget, time and policies are those of the
        comparison; others are run (`misses`). The calls behind each receipt are in the table `policy_calls`.
        Comparisons that do not parse are named by the check `comparisons`.
        """
        done = write_receipts(
            bench, [int(key) for key in context.partition_keys], names=config.comparisons, fresh=config.fresh
        )
        yield from report_partitions(
            context,
            "policy_receipts",
            {str(attempt): item.written for attempt, item in done.items()},
            {str(attempt): item.counts for attempt, item in done.items()},
        )
        failures = [failure for item in done.values() for failure in item.failures]
        if failures:
            # Last, so that what the other comparisons measured is reported.
            raise failures[0]

    return policy_receipts


def _leaderboard(receipts: dg.AssetsDefinition) -> dg.AssetsDefinition:
    @dg.asset(
        deps=[dg.AssetDep(receipts, partition_mapping=dg.AllPartitionMapping())],
        metadata=column_schema("policy_leaderboard"),
        **_COMMON,
    )
    def policy_leaderboard(bench: dg.ResourceParam[Bench]) -> dg.MaterializeResult[None]:
        """The policies of each comparison by correct answers, attempt by attempt and over all attempts (null).

        Only attempts over the same cases, model and budget are pooled; a rate is over attempted cases.
        """
        return report_table("policy_leaderboard", write_leaderboard(bench))

    return policy_leaderboard


@dg.asset_check(
    asset="policy_receipts",
    name="traces",
    blocking=True,
    description="The counters of every receipt follow from its calls.",
)
def traces_check(
    context: dg.AssetCheckExecutionContext, bench: dg.ResourceParam[Bench]
) -> dg.AssetCheckResult:
    """Over the attempts of the run, or all of them when it runs alone."""
    wrong = check_traces(bench, [int(key) for key in partition_keys(context)])
    return dg.AssetCheckResult(
        passed=not wrong,
        severity=dg.AssetCheckSeverity.ERROR,
        description="\n".join(wrong) or "Every receipt agrees with its calls.",
        metadata={"faulty_rows": len(wrong)},
    )
