"""The sensors: thin shells over use cases that decide what has to run.

What belongs here: turning what a use case asks for into run requests. What does not: deciding.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

from bench_pipeline.cli.sweeping import sweep
from bench_pipeline.defs.jobs import LEDGERS
from bench_pipeline.defs.partitions import LEDGER_AXIS, key_of_columns, range_tags
from bench_pipeline.defs.runs import FAILURE, kind_of_failure, refused_tables, run_of, tables_in_flight
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.following import Request as FollowRequest
from bench_pipeline.pipeline.following import Situation, follow, follow_files
from bench_pipeline.pipeline.ledger_watch import Request, look
from bench_pipeline.pipeline.provenance import FOLLOWS

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

# Two looks that agree make a ledger whole, so it waits for less than half a minute.
_SECONDS = 10
_FOLLOW_SECONDS = 15


@dg.sensor(
    name="ledger_sensor",
    job_name=LEDGERS,
    minimum_interval_seconds=_SECONDS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "Looks for new and changed ledgers, and asks for one run over those that stand beside each other. A file that "
        "may still be growing waits; one that was touched, copied anew or renamed asks for nothing."
    ),
)
def ledger_sensor(
    context: dg.SensorEvaluationContext, bench: dg.ResourceParam[Bench]
) -> dg.SensorResult | dg.SkipReason:
    """What the look asks for; its memory is in the store, so there is no cursor."""
    fresh = bench.again()
    found = look(fresh, known_ledgers(context.instance), lambda key: run_of(context.instance, key))
    if not found.requests and not found.new_keys:
        return dg.SkipReason("no ledger is new or has changed")
    return dg.SensorResult(
        run_requests=[_run_request(request) for request in found.requests],
        dynamic_partitions_requests=[
            dg.AddDynamicPartitionsRequest(LEDGER_AXIS, found.new_keys),
        ]
        if found.new_keys
        else [],
    )


def store_sensors(
    jobs: Sequence["UnresolvedAssetJobDefinition"], job_of: Mapping[str, str], max_attempts: int
) -> list[dg.SensorDefinition]:
    """The sensors that compare tables with what they are made from; ``job_of`` says which job makes each table."""
    targets = [job for job in jobs if job.name in {job_of[table] for table in FOLLOWS}]

    def situation(instance: dg.DagsterInstance) -> Situation:
        sweep(instance, Path(instance.root_directory))
        return Situation(
            job_of,
            tables_in_flight(instance, job_of),
            refused_tables(instance, job_of),
            partial(run_of, instance),
            max_attempts,
        )

    def sensor(
        name: str,
        wanted: Callable[[Bench, Situation], Sequence[FollowRequest]],
        status: dg.DefaultSensorStatus,
        description: str,
    ) -> dg.SensorDefinition:
        @dg.sensor(
            name=name,
            jobs=targets,
            minimum_interval_seconds=_FOLLOW_SECONDS,
            default_status=status,
            description=description,
        )
        def look_at_store(
            context: dg.SensorEvaluationContext, bench: dg.ResourceParam[Bench]
        ) -> list[dg.RunRequest] | dg.SkipReason:
            return _asked(wanted(bench.again(), situation(context.instance)))

        return look_at_store

    return [
        sensor(
            "follow_sensor",
            follow,
            dg.DefaultSensorStatus.RUNNING,
            "Compares what rankings, comparisons, results, scores and leaderboards were made from with what is in the "
            "store, and asks for those that are behind. Nothing that runs tools or asks models is asked for.",
        ),
        sensor(
            "file_sensor",
            follow_files,
            dg.DefaultSensorStatus.STOPPED,
            "Looks for changed evaluations, tools, tasks, predictions, telemetry and judgements, plans anew and reads "
            "results of others anew. **Tools are run, and may spend money**, only where `spending` in config.yaml sets "
            "a cap.",
        ),
    ]


def _asked(requests: Sequence[FollowRequest]) -> list[dg.RunRequest] | dg.SkipReason:
    if not requests:
        return dg.SkipReason("nothing is behind that could be made now")
    return [_follow_request(request) for request in requests]


def _follow_request(request: FollowRequest) -> dg.RunRequest:
    return dg.RunRequest(
        run_key=request.key,
        job_name=request.job,
        asset_selection=[dg.AssetKey(table) for table in request.tables],
        tags=range_tags(key_of_columns(request.first), key_of_columns(request.last)) if request.first else {},
    )


@dg.run_failure_sensor(
    name="failure_hook",
    # Runs of commands too, which belong to no code location.
    monitor_all_code_locations=True,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "Marks every run that failed with the tag bench/failure: `permanent` where the same would fail again, "
        "`transient` where it may pass. Sensors and nights ask for the latter again, twice at most."
    ),
)
def failure_hook(context: dg.RunFailureSensorContext) -> None:
    """Stamp a run that failed, for people who look for runs by tag."""
    run = context.dagster_run
    context.instance.add_run_tags(run.run_id, {FAILURE: kind_of_failure(context.instance, run)})


def known_ledgers(instance: dg.DagsterInstance) -> list[str]:
    """The keys of the ledger axis in Dagster's order."""
    return list(instance.get_dynamic_partitions(LEDGER_AXIS))


def _run_request(request: Request) -> dg.RunRequest:
    return dg.RunRequest(run_key=request.key, tags=range_tags(request.first, request.last))
