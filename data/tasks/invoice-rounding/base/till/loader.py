"""From a till's export to an invoice."""

import json

from till.invoice import Invoice, Line


def parse(text):
    """The invoice in one JSON export; ValueError names the line that does not fit."""
    document = json.loads(text)
    lines = [_line(number, entry) for number, entry in enumerate(document["lines"], start=1)]
    return Invoice(document["number"], lines)


def _line(number, entry):
    try:
        return Line(
            article=entry["article"],
            quantity=_number(entry["quantity"]),
            price=_number(entry["price"]),
            vat=_number(entry["vat"]),
            discount=_number(entry.get("discount", 0)),
        )
    except (KeyError, ValueError) as error:
        raise ValueError(f"line {number}: {error}") from error


def _number(value):
    return float(value)
