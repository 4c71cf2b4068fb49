"""Numbers without gaps or repeats."""

import time

from ticketing import storage
from ticketing.locking import FileLock


class Counter:
    """The counter in a file."""

    def __init__(self, path, patience=5.0, pause=time.sleep):
        self.path = str(path)
        self.patience = patience
        self.pause = pause

    def take(self):
        """The next number."""
        return self.take_many(1)[0]

    def take_many(self, how_many):
        """The next numbers, one after the other."""
        if how_many < 1:
            raise ValueError(f"cannot take {how_many} numbers")
        with FileLock(f"{self.path}.lock", self.patience, self.pause):
            last = storage.load(self.path)
            storage.save(self.path, last + how_many)
        return list(range(last + 1, last + how_many + 1))

    @property
    def last(self):
        """The number that was handed out last, 0 before the first."""
        return storage.load(self.path)
