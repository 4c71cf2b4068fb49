"""The evaluation lane: cells, verdicts, rankings, paired comparisons, and the files they come from."""

from collections.abc import Iterator, Sequence

import dagster as dg

from bench_pipeline.defs.partitions import key_of, partition_of, tier_by_attempt
from bench_pipeline.defs.reporting import Metadata, report_partitions, table_metadata
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.cells import write_cells
from bench_pipeline.pipeline.measuring import write_verdicts
from bench_pipeline.pipeline.reading import write_comparisons, write_rankings
from bench_pipeline.pipeline.selection import RunOptions, Selection
from bench_pipeline.pipeline.tables import Written
from bench_pipeline.tables import table_schema

GROUP = "evaluations"
OWNERS = ["team:benchmarks"]
KINDS = {"python", "parquet"}

INPUTS = (
    dg.AssetSpec("evaluation_files", group_name=GROUP, kinds={"yaml"}, description="evaluations/*.yaml"),
    dg.AssetSpec("tool_files", group_name=GROUP, kinds={"yaml"}, description="tools/*.yaml and pricing.yaml"),
    dg.AssetSpec("task_files", group_name=GROUP, kinds={"yaml"}, description="tasks/<id>/ with hidden tests"),
    dg.AssetSpec(
        "prediction_files", group_name=GROUP, kinds={"json"}, description="predictions/<model>.jsonl"
    ),
)


class CellsConfig(dg.Config):
    """What to plan; empty means everything."""

    evaluations: list[str] = []


class VerdictsConfig(dg.Config):
    """What to run and how; empty selections mean everything, null caps none."""

    evaluations: list[str] = []
    tasks: list[str] = []
    tiers: list[str] = []
    attempts: list[int] = []
    fresh: bool = False
    retry: int = 0
    max_cost_usd: float | None = None
    max_cells: int | None = None
    concurrency: int | None = None
    plan: str | None = None

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
            plan=self.plan,
        )


def evaluation_assets(max_attempts: int) -> list[dg.AssetsDefinition]:
    """The lane's assets over an attempt axis of ``max_attempts``."""
    partitions = tier_by_attempt(max_attempts)

    @dg.asset(
        partitions_def=partitions,
        deps=[spec.key for spec in INPUTS],
        group_name=GROUP,
        owners=OWNERS,
        kinds=KINDS,
        code_version="1",
        tags={"lane": "evaluations"},
    )
    def evaluation_cells(
        context: dg.AssetExecutionContext, bench: dg.ResourceParam[Bench]
    ) -> Iterator[dg.MaterializeResult[None]]:
        """Every planned cell with its keys: what the evaluations, tools and tasks expand to."""
        wanted = [partition_of(key) for key in context.partition_keys]
        written: dict[str, Written] = {
            key_of(part): item for part, item in write_cells(bench, wanted).items()
        }
        yield from report_partitions(context, table_schema("evaluation_cells"), written, {})

    @dg.asset(
        partitions_def=partitions,
        deps=[evaluation_cells],
        group_name=GROUP,
        owners=OWNERS,
        kinds=KINDS,
        code_version="1",
        tags={"lane": "evaluations"},
    )
    def verdicts(
        context: dg.AssetExecutionContext, config: VerdictsConfig, bench: dg.ResourceParam[Bench]
    ) -> Iterator[dg.MaterializeResult[None]]:
        """What came of every cell; cells without a verdict are run, the others reused."""
        done = write_verdicts(
            bench,
            config.options(context.partition_keys),
            partitions=[partition_of(key) for key in context.partition_keys],
            run_id=context.run.run_id,
            log=context.log.info,
        )
        written: dict[str, Written] = {key_of(part): item for part, item in done.written.items()}
        counts: dict[str, Metadata] = {key_of(part): _counts(done.counts(part)) for part in done.written}
        yield from report_partitions(context, table_schema("verdicts"), written, counts)

    @dg.asset(
        deps=[dg.AssetDep(verdicts, partition_mapping=dg.AllPartitionMapping())],
        group_name=GROUP,
        owners=OWNERS,
        kinds=KINDS,
        code_version="1",
        tags={"lane": "evaluations"},
    )
    def evaluation_rankings(bench: dg.ResourceParam[Bench]) -> dg.MaterializeResult[None]:
        """The setups of each evaluation by pass rate, with intervals, bands and what is missing."""
        written = write_rankings(bench)
        return dg.MaterializeResult(
            metadata=table_metadata(table_schema("evaluation_rankings"), [written]),
            data_version=dg.DataVersion(written.digest),
        )

    @dg.asset(
        deps=[dg.AssetDep(verdicts, partition_mapping=dg.AllPartitionMapping())],
        group_name=GROUP,
        owners=OWNERS,
        kinds=KINDS,
        code_version="1",
        tags={"lane": "evaluations"},
    )
    def paired_comparisons(bench: dg.ResourceParam[Bench]) -> dg.MaterializeResult[None]:
        """Every pair of setups over the tasks that both measured, corrected for the number of pairs."""
        written = write_comparisons(bench)
        return dg.MaterializeResult(
            metadata=table_metadata(table_schema("paired_comparisons"), [written]),
            data_version=dg.DataVersion(written.digest),
        )

    return [evaluation_cells, verdicts, evaluation_rankings, paired_comparisons]


def _counts(counts: dict[str, int | float | None]) -> dict[str, dg.MetadataValue]:
    """Counts as numeric metadata, which the UI charts over time; an unknown one is left out."""
    return {
        name: dg.MetadataValue.int(value) if isinstance(value, int) else dg.MetadataValue.float(value)
        for name, value in counts.items()
        if value is not None
    }
