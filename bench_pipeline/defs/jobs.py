"""Named jobs: what the command line and the UI start, one for each partition shape."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import dagster as dg

from bench_pipeline.defs.lanes import Lane

if TYPE_CHECKING:
    # The name of what define_asset_job returns is not exported.
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

EVALUATE, SCORE, LEDGERS, REPORT = "evaluate", "score", "read_ledgers", "report"
_EVALUATE = (
    "Plan the cells, run those without a verdict, rank and compare the setups. Runs of `bench run` are listed here "
    "too. Tools are run, and may spend money, unless every cell is known."
)
_SCORE = (
    "Score, compare and judge what was measured, attempt by attempt. Comparisons of policies ask their model, unless "
    "it is a recording or every attempt is known; comparisons of scenarios run the tools that they name, once."
)
_LEDGERS = "Read ledgers that are new or have changed, and sum them up per route. Started by `ledger_sensor`."
_REPORT = "Make the report of what all lanes hold now. It runs nothing and spends nothing."
_DESCRIPTIONS = {EVALUATE: _EVALUATE, SCORE: _SCORE, LEDGERS: _LEDGERS, REPORT: _REPORT}


def jobs_of(lanes: Sequence[Lane], upstreams: Sequence[str]) -> "list[UnresolvedAssetJobDefinition]":
    """The jobs over the assets of all lanes; one without assets is left out.

    ``upstreams`` are the tags of runs that may call models.
    """
    return [
        dg.define_asset_job(
            name,
            selection=dg.AssetSelection.assets(*assets),
            description=_DESCRIPTIONS[name],
            # What can be tried again is tried again inside the run, cell by cell and within its budget.
            tags={
                "dagster/max_retries": "0",
                **dict.fromkeys(upstreams if name in {EVALUATE, SCORE} else (), "true"),
            },
        )
        for name, assets in _shapes(lanes).items()
        if assets
    ]


def job_of_tables(lanes: Sequence[Lane]) -> dict[str, str]:
    """The job that makes each table."""
    return {asset.key.to_user_string(): job for job, assets in _shapes(lanes).items() for asset in assets}


def _shapes(lanes: Sequence[Lane]) -> dict[str, list[dg.AssetsDefinition]]:
    """The assets of each job: those of one partition shape, of all lanes."""
    return {
        EVALUATE: [asset for lane in lanes for asset in lane.by_tier],
        SCORE: [asset for lane in lanes for asset in lane.by_attempt],
        LEDGERS: [asset for lane in lanes for asset in lane.by_ledger],
        REPORT: [asset for lane in lanes for asset in lane.pages],
    }
