"""Totals by customer from a CSV file with the columns customer and amount."""

import csv


def totals(path):
    """The sum of the amounts of each customer."""
    sums = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            sums[row["customer"]] = sums.get(row["customer"], 0) + int(row["amount"])
    return sums
