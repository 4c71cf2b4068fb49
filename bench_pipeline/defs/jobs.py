"""Named jobs: what the command line and the UI start."""

from typing import TYPE_CHECKING

import dagster as dg

if TYPE_CHECKING:
    # The name of what define_asset_job returns is not exported.
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

EVALUATE = "evaluate"


def evaluation_job(assets: list[dg.AssetsDefinition]) -> "UnresolvedAssetJobDefinition":
    """The evaluation lane, from cells to rankings."""
    return dg.define_asset_job(
        EVALUATE,
        selection=dg.AssetSelection.assets(*assets),
        description=(
            "Plan the cells, run those without a verdict, rank and compare the setups. Runs of `bench run` are "
            "listed here too. Tools are run, and may spend money, unless every cell is known."
        ),
        # What can be tried again is tried again inside the run, cell by cell and within its budget.
        tags={"dagster/max_retries": "0"},
    )
