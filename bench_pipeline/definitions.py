"""The entry module of the code location: build it, nothing else."""

from collections.abc import Mapping

import dagster as dg

from bench_pipeline.defs.assets.evaluations import INPUTS, evaluation_assets
from bench_pipeline.defs.checks import documents_check, table_checks
from bench_pipeline.defs.jobs import evaluation_job
from bench_pipeline.errors import BenchError
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.resources import default_resources

# The name under which the UI, workspace.yaml and run tags know this code location.
LOCATION = "bench_pipeline"

_CHECKED = ("evaluation_cells", "verdicts", "evaluation_rankings", "paired_comparisons")


def build_defs(resources: Mapping[str, object] | None = None) -> dg.Definitions:
    """The whole code location; ``resources`` override those of ``default_resources`` by name."""
    chosen = {**default_resources(), **(resources or {})}
    bench = chosen["bench"]
    assert isinstance(bench, Bench)
    assets = evaluation_assets(bench.max_attempts())
    return dg.Definitions(
        assets=[*INPUTS, *assets],
        asset_checks=[*map(table_checks, _CHECKED), documents_check],
        jobs=[evaluation_job(assets)],
        resources=chosen,
        executor=_executor(bench),
    )


def _executor(bench: Bench) -> dg.ExecutorDefinition:
    """What runs that the UI and the daemon start are executed by; `bench run` always works in its own process.

    A config that cannot be read is reported by a check; it must not take the code location down.
    """
    try:
        several = bench.project.config.dagster.executor == "multiprocess"
    except BenchError:
        several = False
    return dg.multiprocess_executor if several else dg.in_process_executor


@dg.definitions
def defs() -> dg.Definitions:
    """The code location of the project that is found from here."""
    return build_defs()
