"""Tickets as people see them."""

import os

from ticketing.counter import Counter


class Desk:
    """Hands out tickets with a prefix, such as B-0042; each prefix has a counter of its own."""

    def __init__(self, folder, prefix):
        if not prefix.isalnum():
            raise ValueError(f"a prefix is made of letters and digits, not {prefix!r}")
        self.prefix = prefix
        self.counter = Counter(os.path.join(str(folder), f"{prefix}.count"))

    def ticket(self):
        """The next ticket."""
        return f"{self.prefix}-{self.counter.take():04d}"
