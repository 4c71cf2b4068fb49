def calc(net, rate):
    """A price in cents with its tax, rounded to whole cents."""
    return round(net * (100 + rate) / 100)
