"""What a cell cost: a project's price table, what the tool reported, the built-in table, in this order.

What belongs here: the tables and the arithmetic. What does not: reading what a tool reports (execution) and
sums over cells (reports). Prices are in no identity: a change of price only re-prices. The built-in table
is the one that the library genai-prices ships, used offline (https://github.com/pydantic/genai-prices).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from bench_pipeline.documents import read_document
from bench_pipeline.errors import DocumentError, Problem
from bench_pipeline.identity import digest
from bench_pipeline.registry.documents import PricingDocument, Rates
from bench_pipeline.registry.tokens import CLASSES, TokenCounts

_MILLION = Decimal(1_000_000)

RatesByClass = tuple[Decimal | None, Decimal | None, Decimal | None, Decimal | None]


@dataclass(frozen=True)
class ModelPrice:
    """USD per million tokens by class, None where unknown.

    ``below`` is the number of input tokens, cached ones included, from which the provider charges more; a
    sum over several requests beyond it has no known price. ``highest`` are the rates of the dearest step,
    where there are steps.
    """

    rates: RatesByClass
    below: int | None = None
    highest: RatesByClass | None = None

    def most(self, input_tokens: int, output_tokens: int) -> Decimal:
        """The most USD that one request with so many tokens can cost, whatever class its input falls in."""
        steps = zip(self.rates, self.highest or self.rates, strict=True)
        dearest = [max(rate or 0, other or 0) for rate, other in steps]
        return (input_tokens * max(dearest[:3]) + output_tokens * dearest[3]) / _MILLION

    def document(self) -> dict[str, object]:
        """The price as JSON values."""
        return {
            "rates": _texts(self.rates),
            "below": self.below,
            "highest": self.highest and _texts(self.highest),
        }

    @classmethod
    def from_document(cls, document: "Mapping[str, Any]") -> "ModelPrice":
        """The price that ``document`` was made of."""
        highest = document["highest"]
        return cls(_rates(document["rates"]), document["below"], highest and _rates(highest))

    def cost(self, tokens: TokenCounts) -> float | None:
        """USD for ``tokens``; None when a count, or the rate of a class that was used, is unknown."""
        exact = self.exact(tokens)
        return None if exact is None else float(exact)

    def exact(self, tokens: TokenCounts) -> Decimal | None:
        """As ``cost``, without rounding."""
        counts = (tokens.input, tokens.cache_read, tokens.cache_write, tokens.output)
        total, prompt = Decimal(0), 0
        for index, (count, rate) in enumerate(zip(counts, self.rates, strict=True)):
            if count is None or count < 0 or (rate is None and count > 0):
                return None
            total += count * (rate or 0)
            prompt += count if index < 3 else 0
        if self.below is not None and prompt >= self.below:
            return None
        return total / _MILLION


def _texts(rates: RatesByClass) -> list[str | None]:
    return [None if rate is None else str(rate) for rate in rates]


def _rates(texts: Sequence[str | None]) -> RatesByClass:
    first, read, written, output = (None if text is None else Decimal(text) for text in texts)
    return first, read, written, output


@dataclass(frozen=True)
class PriceTable:
    """Prices by the provider's model id: the project's and the user's own, over the built-in ones."""

    own: Mapping[str, ModelPrice] = field(default_factory=dict)

    @classmethod
    def load(cls, project_root: Path | None, user_dir: Path | None) -> "PriceTable":
        """Read ``pricing.yaml`` of user and project. Raises DocumentError with all problems of both."""
        own: dict[str, ModelPrice] = {}
        problems: list[Problem] = []
        for folder in (user_dir, project_root):
            path = folder / "pricing.yaml" if folder is not None else None
            if path is None or not path.exists():
                continue
            try:
                document = read_document(path, PricingDocument, "Pricing")
            except DocumentError as error:
                problems.extend(error.problems)
            else:
                own |= {model: _price(rates) for model, rates in document.model.models.items()}
        if problems:
            raise DocumentError(problems)
        return cls(own)

    def digest(self) -> str:
        """Of every price: while it stays, so does what anything costs."""
        own = {model: price.document() for model, price in self.own.items()}
        return digest({"own": own, "built-in": metadata.version("genai-prices")})

    def names(self, model_id: str | None) -> bool:
        """Whether a pricing.yaml names the model, so that nothing else may price it."""
        return model_id in self.own

    def price(self, model_id: str | None) -> ModelPrice | None:
        """The price of a model: from a pricing.yaml that names it, else built in, else None."""
        if model_id is None:
            return None
        return self.own.get(model_id) or builtin_price(model_id)

    def cost(self, model_id: str | None, tokens: TokenCounts) -> float | None:
        """USD for ``tokens`` of a model; None when its price or a count is unknown, never a partial sum."""
        price = self.price(model_id)
        return None if price is None else price.cost(tokens)


def cost_of_cell(
    table: PriceTable,
    model_id: str | None,
    tokens: TokenCounts,
    reported: float | None,
    reported_is_real: bool,
) -> float | None:
    """USD that a cell cost, or None when that is not known.

    Tokens times the project's own price when it names the model; else what the tool reported, when that is
    a real figure and not a guess (``reported_is_real``); else tokens times the built-in price. A reported
    0.0 counts only where a price is known: programs print it when they know none.
    """
    if table.names(model_id):
        return table.cost(model_id, tokens)
    is_figure = reported is not None and reported_is_real and math.isfinite(reported) and reported >= 0
    if is_figure and (reported or table.price(model_id) is not None):
        return reported
    return table.cost(model_id, tokens)


def _price(rates: Rates) -> ModelPrice:
    values = [getattr(rates, name) for name in CLASSES]
    # Through the shortest decimal form: the price that was written, not the nearest binary fraction.
    known = [None if value is None else Decimal(repr(value)) for value in values]
    return ModelPrice((known[0], known[1], known[2], known[3]))


@lru_cache(maxsize=4096)
def builtin_price(model_id: str) -> ModelPrice | None:
    """The built-in price of a model id, or of ``provider/model``; None when there is no single one.

    A price that depends on the hour of a request is no single price; one that depends on the date is today's.
    """
    from genai_prices import data_snapshot

    snapshot = data_snapshot.get_snapshot()
    provider, _, bare = model_id.partition("/")
    attempts: list[tuple[str, str | None]] = [(model_id, None), *([(bare, provider)] if bare else [])]
    for reference, provider_id in attempts:
        try:
            _, model = snapshot.find_provider_model(reference, None, provider_id, None)
        except LookupError:
            continue
        return _library_price(model.prices)
    return None


def _library_price(prices: object) -> ModelPrice | None:
    from genai_prices.types import StartDateConstraint, TieredPrices

    if isinstance(prices, list):
        constraints = [entry.constraint for entry in prices]
        if not all(item is None or isinstance(item, StartDateConstraint) for item in constraints):
            return None
        now = datetime.now(UTC)
        active = [
            entry.prices for entry in prices if entry.constraint is None or entry.constraint.active(now)
        ]
        prices = active[-1] if active else prices[0].prices
    found: list[Decimal | None] = []
    dearest: list[Decimal | None] = []
    starts: list[int] = []
    for name in CLASSES:
        rate = getattr(prices, f"{name}_mtok", None)
        steps = rate.tiers if isinstance(rate, TieredPrices) else []
        starts += [tier.start for tier in steps]
        found.append(rate.base if isinstance(rate, TieredPrices) else rate)
        dearest.append(
            max([tier.price for tier in steps] + [found[-1] or Decimal(0)]) if steps else found[-1]
        )
    highest = (dearest[0], dearest[1], dearest[2], dearest[3]) if starts else None
    return ModelPrice((found[0], found[1], found[2], found[3]), min(starts, default=None), highest)
