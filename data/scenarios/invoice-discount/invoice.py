"""Invoices: lines of (cents, quantity), and a discount in percent."""


def total(lines, discount=0):
    """The sum of all lines in cents, less the discount."""
    return sum(cents * quantity for cents, quantity in lines)
