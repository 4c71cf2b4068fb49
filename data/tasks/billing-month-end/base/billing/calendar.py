"""Calendar arithmetic that the standard library leaves to its users."""

import calendar
import datetime


def days_in_month(year, month):
    """How many days a month has."""
    return calendar.monthrange(year, month)[1]


def clamp(year, month, day):
    """The date with that day of the month, or the month's last day when it has no such day."""
    return datetime.date(year, month, min(day, days_in_month(year, month)))


def next_month(date):
    """The same day one month later."""
    if date.month == 12:
        return clamp(date.year + 1, 1, date.day)
    return clamp(date.year, date.month + 1, date.day)
