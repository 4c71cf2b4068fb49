from shop.prices import calc


def line(name, net, rate):
    return f"{name}: {calc(net, rate)}"
