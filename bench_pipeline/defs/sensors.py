"""The sensors: thin shells over use cases that decide what has to run.

What belongs here: turning what a use case asks for into run requests. What does not: deciding.
"""

import dagster as dg

from bench_pipeline.defs.jobs import LEDGERS
from bench_pipeline.defs.partitions import LEDGER_AXIS, range_tags
from bench_pipeline.defs.runs import run_of
from bench_pipeline.pipeline.bench import Bench
from bench_pipeline.pipeline.ledger_watch import Request, look

# Two looks that agree make a ledger whole, so it waits for less than half a minute.
_SECONDS = 10


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


def known_ledgers(instance: dg.DagsterInstance) -> list[str]:
    """The keys of the ledger axis in Dagster's order."""
    return list(instance.get_dynamic_partitions(LEDGER_AXIS))


def _run_request(request: Request) -> dg.RunRequest:
    return dg.RunRequest(run_key=request.key, tags=range_tags(request.first, request.last))
