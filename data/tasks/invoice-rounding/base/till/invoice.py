"""Lines, VAT groups and totals."""

from typing import NamedTuple

from till.money import cents


class Line(NamedTuple):
    """One article; ``discount`` and ``vat`` are percentages."""

    article: str
    quantity: float
    price: float
    vat: float
    discount: float = 0.0

    @property
    def amount(self):
        """What the line costs before VAT."""
        return self.quantity * self.price * (1 - self.discount / 100)


class VatGroup(NamedTuple):
    """The net amount at one rate and the VAT on it."""

    rate: float
    net: float
    vat: float


class Invoice:
    """A number and its lines."""

    def __init__(self, number, lines):
        self.number = number
        self.lines = lines

    def groups(self):
        """One group for each rate, the lowest rate first."""
        found = []
        for rate in sorted({line.vat for line in self.lines}):
            net = sum(line.amount for line in self.lines if line.vat == rate)
            found.append(VatGroup(rate, cents(net), cents(net * rate / 100)))
        return found

    @property
    def total(self):
        """What has to be paid."""
        return cents(sum(group.net + group.vat for group in self.groups()))
