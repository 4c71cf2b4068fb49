"""The evaluation lane: cells, verdicts, rankings, paired comparisons, and the files they come from."""

from collections.abc import Iterator, Sequence

import dagster as dg
from pydantic import Field

from bench_pipeline.defs.checks import problems_check
from bench_pipeline.defs.lanes import OWNERS, Lane, asset_options
from bench_pipeline.defs.partitions import key_of, one_run, partition_of, tier_by_attempt
from bench_pipeline.defs.reporting import column_schema, report_partitions, report_table
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.cells import write_cells
from bench_pipeline.pipeline.checking import check_documents
from bench_pipeline.pipeline.measuring import write_verdicts
from bench_pipeline.pipeline.provenance import made
from bench_pipeline.pipeline.reading import write_comparisons, write_rankings
from bench_pipeline.pipeline.selection import RunOptions, Selection
from bench_pipeline.reports.escaping import plain_text

GROUP = "evaluations"

INPUTS = tuple(
    dg.AssetSpec(name, group_name=GROUP, kinds={kind}, owners=OWNERS, description=text)
    for name, kind, text in (
        ("evaluation_files", "yaml", "`evaluations/*.yaml`: which setups are compared, and how often."),
        (
            "tool_files",
            "yaml",
            "`tools/*.yaml` and `pricing.yaml`: the tools of setups, and what tokens cost.",
        ),
        ("task_files", "yaml", "`tasks/<id>/`: prompt, base, hidden tests and reference of each task."),
        (
            "prediction_files",
            "json",
            "`predictions/<model>.jsonl`: recorded patches that are checked like any other.",
        ),
    )
)


_COMMON = asset_options(GROUP)


class VerdictsConfig(dg.Config):
    """What to run and how; an empty list means all, null no cap."""

    evaluations: list[str] = Field([], description="Names of evaluations; empty means all.")
    tasks: list[str] = Field([], description="Ids of tasks; empty means all.")
    tiers: list[str] = Field([], description="Of the run's partitions; empty means all.")
    attempts: list[int] = Field([], description="Of the run's partitions; empty means all.")
    fresh: bool = Field(False, description="Measure again what has a verdict; earlier evidence is kept.")
    retry: int = Field(0, description="How often an execution failure is tried again in this run.")
    max_cost_usd: float | None = Field(None, description="Start no cell that could exceed this many dollars.")
    max_cells: int | None = Field(None, description="Run the tool for at most so many cells.")
    concurrency: int | None = Field(None, description="Cells side by side; null takes the project's.")
    record: bool = Field(True, description="Keep what tools ask their models and are answered.")
    replay: bool = Field(False, description="Answer tools from recordings; nothing is measured or spent.")
    plan: str | None = Field(None, description="Refuse any other plan than this digest of a dry run.")

    def options(self, keys: Sequence[str]) -> RunOptions:
        """These settings for the partitions named by ``keys``."""
        partitions = [partition_of(key) for key in keys]
        selection = Selection(
            evaluations=tuple(self.evaluations),
            tasks=tuple(self.tasks),
            tiers=tuple(self.tiers) or tuple(dict.fromkeys(part.tier for part in partitions)),
            attempts=tuple(self.attempts) or tuple(sorted({part.attempt for part in partitions})),
        )
        return RunOptions(
            selection=selection,
            fresh=self.fresh,
            retry=self.retry,
            max_cost_usd=self.max_cost_usd,
            max_cells=self.max_cells,
            concurrency=self.concurrency,
            record=self.record,
            replay=self.replay,
            plan=self.plan,
        )


def evaluation_lane(max_attempts: int) -> Lane:
    """The lane over an attempt axis of ``max_attempts``."""
    axes = tier_by_attempt(max_attempts)
    cells = _cells(axes)
    verdicts = _verdicts(axes, cells)
    return Lane(
        INPUTS,
        by_tier=[cells, verdicts, _rankings(verdicts), _comparisons(verdicts)],
        checks=[
            problems_check(
                "evaluation_cells",
                "documents",
                "Every evaluation, tool and task file parses and resolves.",
                check_documents,
            )
        ],
    )


def _cells(axes: dg.MultiPartitionsDefinition) -> dg.AssetsDefinition:
    @dg.asset(
        deps=[spec.key for spec in INPUTS],
        partitions_def=axes,
        backfill_policy=one_run(),
        metadata=column_schema("evaluation_cells"),
        **_COMMON,
    )
    def evaluation_cells(
        context: dg.AssetExecutionContext, bench: dg.ResourceParam[Bench]
    ) -> Iterator[dg.MaterializeResult[None]]:
        """Every planned cell with its keys: what evaluations x tasks x attempts expand to on this machine.

        Nothing is run here. A cell is one setup on one task, one attempt; its `identity` changes when anything
        changes that decides its verdict. Documents that do not parse are named by the check `documents`; their
        cells are missing here, the others are planned.
        """
        written = write_cells(bench, [partition_of(key) for key in context.partition_keys])
        yield from report_partitions(
            context, "evaluation_cells", {key_of(part): item for part, item in written.items()}, {}
        )

    return evaluation_cells


def _verdicts(axes: dg.MultiPartitionsDefinition, cells: dg.AssetsDefinition) -> dg.AssetsDefinition:
    @dg.asset(
        deps=[cells],
        partitions_def=axes,
        backfill_policy=one_run(),
        metadata=column_schema("verdicts"),
        **_COMMON,
    )
    def verdicts(
        context: dg.AssetExecutionContext, config: VerdictsConfig, bench: dg.ResourceParam[Bench]
    ) -> Iterator[dg.MaterializeResult[None]]:
        """What came of every planned cell. Running this **runs tools and may spend money**.

        Cells that have a verdict are reused (`hits`), the others are run or checked again (`misses`); each is
        kept as soon as it is known, so a run that is cut off loses the cells that were running and no more. An
        `execution_failure` measured nothing (the API was down, the sandbox broke): it stays in the
        denominators, and `retry` in the run config tries it again.
        """
        partitions = [partition_of(key) for key in context.partition_keys]
        # A run of some cells leaves the others to whoever looks for what is behind.
        keys = [] if config.evaluations or config.tasks else [(p.tier, str(p.attempt)) for p in partitions]
        with made(bench, "verdicts", keys):
            done = write_verdicts(
                bench,
                config.options(context.partition_keys),
                partitions=partitions,
                run_id=context.run.run_id,
                log=lambda text: context.log.info(plain_text(text)),
            )
        yield from report_partitions(
            context,
            "verdicts",
            {key_of(part): item for part, item in done.written.items()},
            {key_of(part): done.counts(part) for part in done.written},
        )

    return verdicts


def _rankings(verdicts: dg.AssetsDefinition) -> dg.AssetsDefinition:
    @dg.asset(
        deps=[dg.AssetDep(verdicts, partition_mapping=dg.AllPartitionMapping())],
        metadata=column_schema("evaluation_rankings"),
        **_COMMON,
    )
    def evaluation_rankings(bench: dg.ResourceParam[Bench]) -> dg.MaterializeResult[None]:
        """The setups of each evaluation by pass rate, with intervals, rank bands and what is missing.

        Ranked are setups that measured enough (`ranking.min_coverage`), over the tasks that all of these
        measured. Bands that overlap mean that these tasks do not separate the setups.
        """
        return report_table("evaluation_rankings", write_rankings(bench))

    return evaluation_rankings


def _comparisons(verdicts: dg.AssetsDefinition) -> dg.AssetsDefinition:
    @dg.asset(
        deps=[dg.AssetDep(verdicts, partition_mapping=dg.AllPartitionMapping())],
        metadata=column_schema("paired_comparisons"),
        **_COMMON,
    )
    def paired_comparisons(bench: dg.ResourceParam[Bench]) -> dg.MaterializeResult[None]:
        """Every pair of setups of an evaluation over the tasks that both measured.

        `p_holm` is corrected for the number of pairs; a pair is told apart when it is below 0.05.
        """
        return report_table("paired_comparisons", write_comparisons(bench))

    return paired_comparisons
