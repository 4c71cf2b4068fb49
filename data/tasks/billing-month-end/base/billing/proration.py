"""What part of a period was used."""

from fractions import Fraction


def share(period, first, last):
    """The part of a period between two days, both included, as an exact fraction."""
    if last < first:
        raise ValueError(f"the last day, {last}, is before the first, {first}")
    begin = max(first, period.start)
    after = min(last.toordinal() + 1, period.end.toordinal())
    used = max(0, after - begin.toordinal())
    return Fraction(used, period.days)
