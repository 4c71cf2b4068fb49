"""Which prices are missing: why the costs of cells that report their tokens are unknown.

What belongs here: finding the reason by model. What does not: the rule for a price (``registry.pricing``) and sums
(``pricing``).
"""

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from bench_pipeline.registry import PriceTable


def unknown_costs(cells: pa.Table, verdicts: pa.Table, prices: "PriceTable") -> list[str]:
    """A sentence for each price that is missing, most cells first; cells without token counts have no price to add.

    Args:
        cells: an evaluation_cells table: which model a cell has.
        verdicts: a verdicts table at today's prices.
        prices: where a price would have to be.
    """
    tried = verdicts.filter(pc.not_equal(verdicts["outcome_class"], "not_attempted"))
    unpriced = pc.and_(pc.is_null(tried["cost_usd"]), pc.is_valid(tried["tokens_output"]))
    unknown = tried.filter(unpriced).select(["identity"])
    models = cells.group_by("identity").aggregate([("model_id", "max")])
    joined = unknown.join(models, keys="identity", join_type="left outer")
    reasons = Counter(_reason(model, prices) for model in joined["model_id_max"].to_pylist())
    return [f"the cost of {_cells(count)} is unknown: {reason}" for reason, count in reasons.most_common()]


def _reason(model: str | None, prices: "PriceTable") -> str:
    if model is None:
        return "a model without a price, or none, is named: name it in the tool, and add it to pricing.yaml"
    if prices.price(model) is None:
        return f"no price is known for {model}: add it to pricing.yaml as models.{model}"
    return (
        f"the price of {model} lacks a rate for tokens that were used: add it to pricing.yaml, models.{model}"
    )


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"
