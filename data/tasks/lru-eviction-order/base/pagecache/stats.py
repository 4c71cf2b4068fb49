"""Hits and misses."""


class Stats:
    """Counts what was asked for and what was there."""

    def __init__(self):
        self.hits = 0
        self.misses = 0

    def count(self, hit):
        """Count one question."""
        if hit:
            self.hits += 1
        else:
            self.misses += 1

    @property
    def rate(self):
        """The part of hits, None before the first question."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else None
