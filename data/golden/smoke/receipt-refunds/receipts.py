"""Totals of receipts; amounts are whole cents."""


def total(lines):
    """The sum of the amounts at the ends of lines such as `tea 250`."""
    amount = 0
    for line in lines:
        name, cents = line.rsplit(" ", 1)
        amount += int(cents)
    return amount
