"""Amounts of money."""


def cents(amount):
    """Round an amount to whole cents."""
    return round(amount, 2)


def show(amount):
    """An amount with two decimals and a thousands separator."""
    return f"{amount:,.2f}"
