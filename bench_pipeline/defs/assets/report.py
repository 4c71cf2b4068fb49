"""The report: one page over all lanes, for the morning."""

import dagster as dg

from bench_pipeline.defs.lanes import OWNERS, Lane
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.reporting import write_report

GROUP = "report"

# Everything that the page is read off.
_READ = (
    *("verdicts", "evaluation_rankings", "paired_comparisons", "task_results", "composite_scores"),
    *("policy_receipts", "policy_leaderboard", "scenario_results", "judge_reports", "ledger_summaries"),
)


def report_lane(_: int) -> Lane:
    """The lane; it has no axis: a report is over everything."""
    return Lane(inputs=(), pages=[bench_report])


@dg.asset(
    deps=[dg.AssetDep(name, partition_mapping=dg.AllPartitionMapping()) for name in _READ],
    group_name=GROUP,
    owners=OWNERS,
    kinds={"python", "html"},
    code_version="1",
    tags={"lane": GROUP},
)
def bench_report(bench: dg.ResourceParam[Bench]) -> dg.MaterializeResult[None]:
    """What changed since the report before, every result with its denominator, and what is missing with its command.

    One page that needs no network and no script, and the same as Markdown; both can be mailed. A project in which
    nothing was measured yet has a page that says so.
    """
    pages = write_report(bench)
    return dg.MaterializeResult(
        metadata={
            "summary": dg.MetadataValue.md(pages.preview),
            "path": dg.MetadataValue.path(pages.html),
            "markdown_path": dg.MetadataValue.path(pages.markdown),
            **{name: dg.MetadataValue.int(count) for name, count in pages.counts.items()},
        },
        data_version=dg.DataVersion(pages.digest),
    )
