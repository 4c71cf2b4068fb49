"""The entry module of the code location: build it, nothing else."""

import warnings
from collections.abc import Mapping
from itertools import chain

import dagster as dg

from bench_pipeline.defs.assets.evaluations import evaluation_lane
from bench_pipeline.defs.assets.golden import golden_lane
from bench_pipeline.defs.assets.ledgers import ledger_lane
from bench_pipeline.defs.assets.policies import policy_lane
from bench_pipeline.defs.assets.report import report_lane
from bench_pipeline.defs.assets.scenarios import scenario_lane
from bench_pipeline.defs.checks import table_checks
from bench_pipeline.defs.inventory import inventory_check
from bench_pipeline.defs.jobs import job_of_tables, jobs_of
from bench_pipeline.defs.notifications import notify_sensor
from bench_pipeline.defs.schedules import night_sensor, nightly_freshness, nightly_schedule
from bench_pipeline.defs.sensors import failure_hook, ledger_sensor, store_sensors
from bench_pipeline.pipeline.asking import upstream_tags
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.resources import default_resources

# The name under which the UI, workspace.yaml and run tags know this code location.
LOCATION = "bench_pipeline"

# Each makes its lane over an attempt axis of the given size.
_LANES = (
    evaluation_lane,
    golden_lane,
    policy_lane,
    scenario_lane,
    ledger_lane,
    report_lane,
)


def build_defs(resources: Mapping[str, object] | None = None) -> dg.Definitions:
    """The whole code location; ``resources`` override those of ``default_resources`` by name."""
    chosen = {**default_resources(), **(resources or {})}
    bench = chosen["bench"]
    assert isinstance(bench, Bench)
    with warnings.catch_warnings():
        # Of backfill policies: nobody who runs `bench` can do anything about it.
        warnings.simplefilter("ignore", dg.BetaWarning)
        lanes = [make(bench.max_attempts()) for make in _LANES]
    jobs = jobs_of(lanes, upstream_tags(bench.config_or_default()))
    assets = [*chain.from_iterable(lane.assets for lane in lanes)]
    freshness = nightly_freshness(bench)
    pages = {page.key for lane in lanes for page in lane.pages}
    if freshness is not None:
        assets = [
            asset.map_asset_specs(lambda spec: dg.apply_freshness_policy(spec, freshness))
            if asset.key in pages
            else asset
            for asset in assets
        ]
    return dg.Definitions(
        assets=[*chain.from_iterable(lane.inputs for lane in lanes), *assets],
        asset_checks=[
            *(check for lane in lanes for check in (*map(table_checks, lane.tables), *lane.checks)),
            inventory_check(assets),
        ],
        jobs=jobs,
        schedules=[nightly_schedule(bench)],
        sensors=[
            ledger_sensor,
            night_sensor(jobs, bench.max_attempts()),
            failure_hook,
            notify_sensor(assets),
            *store_sensors(jobs, job_of_tables(lanes), bench.max_attempts()),
        ],
        resources=chosen,
        executor=_executor(bench),
    )


def _executor(bench: Bench) -> dg.ExecutorDefinition:
    """What runs that the UI and the daemon start are executed by; `bench run` always works in its own process."""
    several = bench.config_or_default().dagster.executor == "multiprocess"
    return dg.multiprocess_executor if several else dg.in_process_executor


@dg.definitions
def defs() -> dg.Definitions:
    """The code location of the project that is found from here."""
    return build_defs()
