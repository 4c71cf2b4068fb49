"""The spending caps of one run: a cell is started only when its expected cost still fits.

Reserving comes before starting, so cells running side by side never overshoot a cap by what they could not
know of each other. The first cell that the cost cap stops is the last that asked: cheaper setups do not run on
alone over tasks that the others will not have.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench_pipeline.errors import RefusedError

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.pipeline.selection import RunOptions

# Sums of costs carry rounding: three cells of 0.1 fit into a cap of 0.3.
_ROUNDING_USD = 1e-9


class Budget:
    """What one run may still spend; safe to share between threads.

    Args:
        max_cost_usd: the cap in USD, or None for no cap.
        max_cells: how many cells may run a tool, or None for no cap.
        expected_usd: the amount to reserve per setup digest: its highest known cost.
        assume_cost_usd: the amount to reserve for a setup whose cost is not known, or None.
    """

    def __init__(
        self,
        *,
        max_cost_usd: float | None = None,
        max_cells: int | None = None,
        expected_usd: Mapping[str, float] | None = None,
        assume_cost_usd: float | None = None,
    ) -> None:
        self._max_cost, self._max_cells = max_cost_usd, max_cells
        self._expected = dict(expected_usd or {})
        self._assumed = assume_cost_usd
        self._held = 0.0
        self._started = 0
        self._running = 0
        self._spent = False
        self._in_turn = threading.Lock()
        self._changed = threading.Condition()

    def price(self, setup_digest: str) -> float | None:
        """The amount that a cell of this setup reserves; None when nothing is known or declared."""
        return self._expected.get(setup_digest, self._assumed)

    def check(self, labels: Mapping[str, str]) -> None:
        """Refuse a cost cap over setups (digest -> label) for which no amount can be reserved."""
        if self._max_cost is None:
            return
        unpriced = sorted(label for digest, label in labels.items() if self.price(digest) is None)
        if unpriced:
            raise RefusedError(
                "keeping the cost cap",
                f"no cost is known for {', '.join(unpriced)}, so the cap could not be kept",
                "run a few cells without --max-cost first, set spending.assume_cost_usd in config.yaml, "
                "or cap the number of cells with --max-cells",
            )

    @property
    def left_usd(self) -> float | None:
        """What the cap in dollars leaves; None without one."""
        return None if self._max_cost is None else max(0.0, self._max_cost - self._held)

    def reserve(self, setup_digest: str, *, again: bool = False) -> "Reservation":
        """Hold a cell's expected cost, or say which cap stopped it; ``again``: the cell has its place already.

        Waits while the cost does not fit and a running cell may still turn out to be cheaper than what it holds.
        """
        with self._in_turn, self._changed:
            if not again and self._max_cells is not None and self._started >= self._max_cells:
                return Reservation(setup_digest, 0.0, "max_cells")
            if self._max_cost is not None:
                self._changed.wait_for(lambda: self._fits(self.price(setup_digest)) or not self._running)
                self._spent = self._spent or not self._fits(self.price(setup_digest))
            if self._spent:
                return Reservation(setup_digest, 0.0, "max_cost_usd")
            amount = self.price(setup_digest) or 0.0
            self._held += amount
            self._started += not again
            self._running += 1
            return Reservation(setup_digest, amount, again=again)

    def _fits(self, price: float | None) -> bool:
        """Whether a cell of this price may still start; one of unknown price never does."""
        assert self._max_cost is not None
        return price is not None and self._held + price <= self._max_cost + _ROUNDING_USD

    def settle(self, reservation: "Reservation", cost_usd: float | None) -> None:
        """Replace what was held by what the cell really cost; an unknown cost keeps it held."""
        with self._changed:
            if cost_usd is not None:
                self._held += cost_usd - reservation.amount_usd
                known = self._expected.get(reservation.setup_digest, cost_usd)
                self._expected[reservation.setup_digest] = max(known, cost_usd)
            self._end_one()

    def give_back(self, reservation: "Reservation") -> None:
        """Undo the reservation of a cell that did not run its tool."""
        with self._changed:
            self._held -= reservation.amount_usd
            self._started -= not reservation.again
            self._end_one()

    def _end_one(self) -> None:
        self._running -= 1
        self._changed.notify_all()


def budget_of(bench: "Bench", options: "RunOptions") -> Budget:
    """The budget of one run: its own caps, else the project's, with what each setup is known to cost."""
    from bench_pipeline.pipeline.forecast import known_costs

    spending = bench.project.config.spending
    max_cost = options.max_cost_usd if options.max_cost_usd is not None else spending.max_cost_usd
    return Budget(
        max_cost_usd=max_cost,
        max_cells=options.max_cells if options.max_cells is not None else spending.max_cells,
        expected_usd=known_costs(bench.store, bench.prices) if max_cost is not None else {},
        assume_cost_usd=spending.assume_cost_usd,
    )


@dataclass(frozen=True)
class Reservation:
    """What was held for one try of a cell; ``stopped_by`` names the cap when nothing could be held.

    ``again``: the cell was tried before in this run, and is counted once.
    """

    setup_digest: str
    amount_usd: float
    stopped_by: str | None = None
    again: bool = False
