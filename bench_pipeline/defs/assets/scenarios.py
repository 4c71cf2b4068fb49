"""The scenario lane: results of cells, judgements of pairs, and the files they come from."""

from collections.abc import Iterator

import dagster as dg

from bench_pipeline.defs.checks import problems_check
from bench_pipeline.defs.lanes import OWNERS, Lane, asset_options
from bench_pipeline.defs.partitions import by_attempt, one_run
from bench_pipeline.defs.reporting import column_schema, report_partitions
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.judge_reports import poorly_judged, write_judgements
from bench_pipeline.pipeline.scenario_results import look_at_comparisons, write_results
from bench_pipeline.reports.escaping import plain_text

GROUP = "scenarios"

INPUTS = tuple(
    dg.AssetSpec(name, group_name=GROUP, kinds={kind}, owners=OWNERS, description=text)
    for name, kind, text in (
        ("comparison_files", "yaml", "`scenarios/*.yaml`: which cells are compared over which scenarios."),
        ("scenario_files", "toml", "`scenarios/*.toml`: goals with caps and required evidence."),
        ("trace_files", "json", "Traces of runs, and recorded replies of judges, below `scenarios/`."),
    )
)


_COMMON = asset_options(GROUP)


def scenario_lane(max_attempts: int) -> Lane:
    """The lane over an attempt axis of ``max_attempts``."""
    results = _results(max_attempts)
    return Lane(
        INPUTS,
        by_attempt=[results, _reports(max_attempts, results)],
        checks=[
            problems_check(
                "scenario_results", "comparisons", "Every comparison and its scenarios parse.", _problems
            ),
            problems_check(
                "judge_reports", "quorum", "Every model that judges voted on enough pairs.", poorly_judged
            ),
        ],
    )


def _results(max_attempts: int) -> dg.AssetsDefinition:
    @dg.asset(
        deps=[spec.key for spec in INPUTS],
        partitions_def=by_attempt(max_attempts),
        backfill_policy=one_run(),
        metadata=column_schema("scenario_results"),
        **_COMMON,
    )
    def scenario_results(
        context: dg.AssetExecutionContext, bench: dg.ResourceParam[Bench]
    ) -> Iterator[dg.MaterializeResult[None]]:
        """Whether each cell passed each scenario, and what it took.

        Cells with a folder of traces are replayed; those with a tool **run it and may spend money**, once for each
        scenario and attempt: the trace is kept and read the next time. A run that measured nothing is no row; it is
        logged, and tried again the next time.
        """
        written, problems = write_results(bench, [int(key) for key in context.partition_keys])
        for problem in problems:
            context.log.warning(plain_text(problem))
        yield from report_partitions(
            context, "scenario_results", {str(attempt): item for attempt, item in written.items()}, {}
        )

    return scenario_results


def _reports(max_attempts: int, results: dg.AssetsDefinition) -> dg.AssetsDefinition:
    @dg.asset(
        deps=[results],
        partitions_def=by_attempt(max_attempts),
        backfill_policy=one_run(),
        metadata=column_schema("judge_reports"),
        **_COMMON,
    )
    def judge_reports(
        context: dg.AssetExecutionContext, bench: dg.ResourceParam[Bench]
    ) -> Iterator[dg.MaterializeResult[None]]:
        """Every pair of cells judged blindly: by the rubric, and by a model where the comparison names one.

        A model that is named as `judge` is asked in both orders, and that **may spend money**; each reply is kept, and
        no question is asked twice. An interval that holds one half means that these scenarios do not tell the cells
        apart. The verdict on each scenario is in the table `judge_pairs`.
        """
        written, problems = write_judgements(bench, [int(key) for key in context.partition_keys])
        for problem in problems:
            context.log.warning(plain_text(problem))
        yield from report_partitions(
            context, "judge_reports", {str(attempt): item for attempt, item in written.items()}, {}
        )

    return judge_reports


def _problems(bench: Bench) -> list[str]:
    return [str(problem) for problem in look_at_comparisons(bench).problems]
