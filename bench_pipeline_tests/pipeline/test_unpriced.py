"""An unknown cost names the price that would make it known."""

import pyarrow as pa

from bench_pipeline.pipeline.unpriced import unknown_costs
from bench_pipeline.registry import PriceTable
from bench_pipeline_tests.outcomes import tables, tasks


def missing(model: str | None, **facts: object) -> list[str]:
    cells, verdicts = tables({"a": tasks(True, "timeout", None)}, **facts)
    models = pa.array([model] * cells.num_rows, pa.string())
    cells = cells.set_column(cells.schema.get_field_index("model_id"), "model_id", models)
    return unknown_costs(cells, verdicts, PriceTable({}))


def test_a_model_without_a_price_is_named_with_the_key_that_adds_it() -> None:
    (said,) = missing("no-such-model-7", tokens_output=5)
    assert said.startswith("the cost of 2 cells is unknown")
    assert said.endswith(
        "no price is known for no-such-model-7: add it to pricing.yaml as models.no-such-model-7"
    )


def test_a_known_cost_and_cells_that_report_no_tokens_have_no_price_to_add() -> None:
    assert missing("no-such-model-7", tokens_output=5, cost_usd=0.5) == []
    assert missing("no-such-model-7") == []
