"""Which of several points nobody beats in both of two quantities."""

from collections.abc import Sequence


def pareto_front(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Whether each point (cost, gain) is on the front: no other costs no more and gains no less, one of them strictly.

    Equal points are on the front together.
    """
    best: dict[tuple[float, float], bool] = {}
    highest = float("-inf")
    for cost, gain in sorted(set(points), key=lambda point: (point[0], -point[1])):
        best[cost, gain] = gain > highest
        highest = max(highest, gain)
    return [best[point] for point in points]
