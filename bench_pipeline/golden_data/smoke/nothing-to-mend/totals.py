def total(amounts):
    """The sum of amounts in cents; 0 for none."""
    return sum(amounts)
