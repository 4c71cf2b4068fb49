from shop import prices


def total(items):
    return sum(prices.calc(net, rate) for net, rate in items)
