"""Caps hold however many requests are under way, and nothing that fits is refused."""

import asyncio
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.execution.gateway.accounts import Account, Amount, CapReachedError, Caps, Till

CAPS = st.builds(
    Caps,
    st.none() | st.integers(0, 12),
    st.none() | st.integers(0, 400),
    st.none() | st.decimals(0, 4, places=2),
)
# What a request may take at most, the share of it that it really took, and how long it was under way.
REQUESTS = st.lists(
    st.tuples(st.integers(0, 120), st.decimals(0, 1, places=2), st.floats(0, 1), st.integers(0, 3)),
    max_size=40,
)


def _amount(tokens: int, cost: Decimal) -> Amount:
    return Amount(1, tokens, cost)


@given(CAPS, CAPS, REQUESTS)
def test_no_cap_is_overshot_by_requests_at_one_time_and_every_refusal_names_one_that_is_full(
    cell, run, requests
):
    named: list[bool] = []

    async def ask(till, accounts, peaks, tokens, cost, share, turns):
        most = _amount(tokens, cost)
        try:
            await till.hold(accounts, most)
        except CapReachedError as reached:
            named.append(any(account.owner in str(reached) and account.over(most) for account in accounts))
            return
        for _ in range(turns):
            peaks.append(accounts[0].used + accounts[0].held)
            peaks.append(accounts[1].used + accounts[1].held)
            await asyncio.sleep(0)
        till.settle(accounts, most, _amount(int(tokens * share), cost * Decimal(share)))

    async def run_all():
        till, peaks = Till(), []
        accounts = (Account("cell", cell), Account("run", run))
        await asyncio.wait_for(
            asyncio.gather(
                *(
                    ask(till, accounts, peaks, tokens, cost, share, turns)
                    for tokens, cost, share, turns in requests
                )
            ),
            60,
        )
        return accounts, peaks

    accounts, peaks = asyncio.run(run_all())
    assert all(named)
    for account, seen in ((accounts[0], peaks[::2]), (accounts[1], peaks[1::2])):
        assert account.held == Amount()
        for amount in (*seen, account.used):
            assert account.caps.requests is None or amount.requests <= account.caps.requests
            assert account.caps.tokens is None or amount.tokens <= account.caps.tokens
            assert account.caps.cost_usd is None or amount.cost_usd <= account.caps.cost_usd


def test_a_request_waits_for_one_that_may_turn_out_smaller():
    async def both():
        till, account = Till(), Account("cell", Caps(tokens=100))
        await till.hold([account], _amount(80, Decimal(0)))
        second = asyncio.create_task(till.hold([account], _amount(50, Decimal(0))))
        await asyncio.sleep(0)
        assert not second.done()
        till.settle([account], _amount(80, Decimal(0)), _amount(10, Decimal(0)))
        await asyncio.wait_for(second, 30)

    asyncio.run(both())


def test_a_request_that_could_never_fit_does_not_wait():
    async def both():
        till, account = Till(), Account("cell", Caps(tokens=100))
        await till.hold([account], _amount(80, Decimal(0)))
        with pytest.raises(CapReachedError, match="tokens of this cell"):
            await asyncio.wait_for(till.hold([account], _amount(101, Decimal(0))), 30)

    asyncio.run(both())
