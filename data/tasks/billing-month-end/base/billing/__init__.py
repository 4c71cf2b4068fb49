"""Billing periods of a subscription."""

from billing.periods import Period, period_of, periods
from billing.proration import share

__all__ = ["Period", "period_of", "periods", "share"]
