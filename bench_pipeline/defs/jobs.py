"""Named jobs: what the command line and the UI start."""

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

from bench_pipeline.defs.assets.evaluations import evaluation_assets

EVALUATE = "evaluate"


def evaluation_job(assets: list[dg.AssetsDefinition]) -> UnresolvedAssetJobDefinition:
    """The evaluation lane, from cells to rankings."""
    return dg.define_asset_job(
        EVALUATE,
        selection=dg.AssetSelection.assets(*assets),
        description="Plan the cells, run those without a verdict, rank and compare the setups.",
        tags={"dagster/max_retries": "0"},
    )


__all__ = ["EVALUATE", "evaluation_assets", "evaluation_job"]
