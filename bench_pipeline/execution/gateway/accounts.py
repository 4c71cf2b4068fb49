"""Caps on what a cell and a run may use: what a request could take is held before it is sent.

What belongs here: the arithmetic of caps, for one event loop. What does not: what a request could take (``door``).
Requests that do not fit wait while others are under way that may turn out smaller, and are refused when none is.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Self

NOTHING = Decimal(0)


@dataclass(frozen=True)
class Caps:
    """The most that may be used; None is no cap."""

    requests: int | None = None
    tokens: int | None = None
    cost_usd: Decimal | None = None

    @property
    def bound_answers(self) -> bool:
        """Whether the length of an answer has to be known before it is asked for."""
        return self.tokens is not None or self.cost_usd is not None

    def document(self) -> dict[str, object]:
        """The caps as JSON values."""
        return {**asdict(self), "cost_usd": None if self.cost_usd is None else str(self.cost_usd)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """The caps that ``document`` was made of."""
        cost = document["cost_usd"]
        return cls(document["requests"], document["tokens"], None if cost is None else Decimal(cost))


@dataclass(frozen=True)
class Amount:
    """What is used, or may be. ``tokens`` are of all classes."""

    requests: int = 0
    tokens: int = 0
    cost_usd: Decimal = NOTHING

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(
            self.requests + other.requests, self.tokens + other.tokens, self.cost_usd + other.cost_usd
        )

    def __sub__(self, other: "Amount") -> "Amount":
        return Amount(
            self.requests - other.requests, self.tokens - other.tokens, self.cost_usd - other.cost_usd
        )


class CapReachedError(Exception):
    """A request does not fit any more; its text names the cap."""


class Account:
    """What one cell, or one run, has used and holds."""

    def __init__(self, owner: str, caps: Caps) -> None:
        self.owner = owner
        self.caps = caps
        self.used = Amount()
        self.held = Amount()

    def over(self, amount: Amount) -> str | None:
        """The cap that ``amount`` does not fit under, in words; None when it fits."""
        used, held, caps = self.used, self.held, self.caps
        if caps.requests is not None and used.requests + held.requests + amount.requests > caps.requests:
            return f"the cap on requests of this {self.owner} ({caps.requests}) is reached"
        if caps.tokens is not None and used.tokens + held.tokens + amount.tokens > caps.tokens:
            return f"the cap on tokens of this {self.owner} ({caps.tokens}) leaves no room for this request"
        if caps.cost_usd is not None and used.cost_usd + held.cost_usd + amount.cost_usd > caps.cost_usd:
            return (
                f"the cap on cost of this {self.owner} ({caps.cost_usd} USD) leaves no room for this request"
            )
        return None

    def may_shrink(self, amount: Amount) -> bool:
        """Whether ``amount`` would fit if all that is held were not used; a request that was sent stays one."""
        held = Amount(0, self.held.tokens, self.held.cost_usd)
        return held != Amount() and self.over(amount - held) is None


class Till:
    """Holds and settles amounts on several accounts at once; for the tasks of one event loop."""

    def __init__(self) -> None:
        self._settled = asyncio.Event()

    async def hold(self, accounts: Sequence[Account], amount: Amount) -> None:
        """Hold ``amount`` on every account, waiting while what others hold may still turn out smaller.

        Raises CapReachedError when it does not fit and nothing that is under way could change that.
        """
        while full := [(account, why) for account in accounts if (why := account.over(amount)) is not None]:
            for account, why in full:
                if not account.may_shrink(amount):
                    raise CapReachedError(why)
            self._settled.clear()
            await self._settled.wait()
        for account in accounts:
            account.held += amount

    def settle(self, accounts: Sequence[Account], held: Amount, used: Amount) -> None:
        """Replace what was held by what was really used."""
        for account in accounts:
            account.held -= held
            account.used += used
        self._settled.set()
