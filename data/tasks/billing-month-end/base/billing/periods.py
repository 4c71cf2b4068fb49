"""From an anchor day to billing periods."""

import datetime
from typing import NamedTuple

from billing.calendar import next_month


class Period(NamedTuple):
    """A half-open range of days."""

    start: datetime.date
    end: datetime.date

    @property
    def days(self):
        """The number of days in the period."""
        return (self.end - self.start).days

    def covers(self, day):
        """Whether a day belongs to the period."""
        return self.start <= day < self.end


def periods(anchor, count):
    """The first ``count`` periods of a subscription that started on ``anchor``."""
    found = []
    start = anchor
    for _ in range(count):
        end = next_month(start)
        found.append(Period(start, end))
        start = end
    return found


def period_of(anchor, day):
    """The period that ``day`` belongs to; ValueError for a day before the anchor."""
    if day < anchor:
        raise ValueError(f"{day} is before the subscription's first day, {anchor}")
    start = anchor
    while True:
        end = next_month(start)
        period = Period(start, end)
        if period.covers(day):
            return period
        start = end
