"""Types of fields that say when something happens: cron schedules and time zones."""

import re
import zoneinfo
from typing import Annotated

from pydantic import AfterValidator

from bench_pipeline.documents.describing import describe, nearest
from bench_pipeline.documents.fields import Text

_FIELDS = ("minute", "hour", "day", "month", "weekday")
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_NAMES = {3: _MONTHS, 4: _WEEKDAYS}
_PART = re.compile(r"(?:\*|([0-9]{1,2}|[a-z]{3})(?:-([0-9]{1,2}|[a-z]{3}))?)(?:/([1-9][0-9]?))?")


def check_cron(text: str) -> str:
    """``text`` when it is five cron fields with values in range; else ValueError."""
    fields = text.lower().split()
    if len(fields) != len(_FIELDS):
        raise ValueError(f"expected five cron fields ({' '.join(_FIELDS)}), found {describe(text)}")
    for position, written in enumerate(fields):
        for part in written.split(","):
            if not _is_part(position, part):
                low, high = _RANGES[position]
                raise ValueError(
                    f"{describe(part)} is no cron {_FIELDS[position]} ({low} to {high}, * or a range)"
                )
    return text


def _is_part(position: int, part: str) -> bool:
    found = _PART.fullmatch(part)
    if found is None:
        return False
    values = [_value(position, text) for text in (found[1], found[2]) if text]
    known = [value for value in values if value is not None]
    return known == values == sorted(known)


def _value(position: int, text: str) -> int | None:
    low, high = _RANGES[position]
    names = _NAMES.get(position, ())
    if text in names:
        return names.index(text) + low
    return int(text) if text.isdigit() and low <= int(text) <= high else None


def check_time_zone(text: str) -> str:
    """``text`` when it names a time zone of the IANA database; else ValueError with the nearest name."""
    known = zoneinfo.available_timezones()
    if text not in known:
        close = nearest(text, sorted(known))
        hint = f"; did you mean {close}?" if close else ""
        raise ValueError(f"expected a time zone such as Europe/Berlin, found {describe(text)}{hint}")
    return text


Cron = Annotated[Text, AfterValidator(check_cron)]
TimeZone = Annotated[Text, AfterValidator(check_time_zone)]
