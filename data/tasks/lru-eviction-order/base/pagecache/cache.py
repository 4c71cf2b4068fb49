"""The cache itself."""

from collections import OrderedDict
from typing import NamedTuple

from pagecache.stats import Stats


class Entry(NamedTuple):
    """A value and what it weighs."""

    value: object
    weight: int


class Cache:
    """Forgets the entry that was used longest ago when it gets too heavy."""

    def __init__(self, max_weight, on_evict=None):
        self.max_weight = max_weight
        self.weight = 0
        self.stats = Stats()
        self._on_evict = on_evict
        self._entries = OrderedDict()

    def get(self, key, default=None):
        """The value of a key, which becomes the newest."""
        entry = self._entries.get(key)
        self.stats.count(entry is not None)
        return default if entry is None else entry.value

    def peek(self, key, default=None):
        """The value of a key, which stays as old as it is."""
        entry = self._entries.get(key)
        return default if entry is None else entry.value

    def put(self, key, value, weight=1):
        """Keep a value, which becomes the newest."""
        if weight > self.max_weight:
            raise ValueError(f"{key!r} weighs {weight}, the cache holds {self.max_weight}")
        self._entries[key] = Entry(value, weight)
        self.weight += weight
        self._shrink()

    def keys(self):
        """All keys, the oldest first."""
        return list(self._entries)

    def __contains__(self, key):
        return key in self._entries

    def __len__(self):
        return len(self._entries)

    def _shrink(self):
        while self.weight > self.max_weight:
            key, entry = self._entries.popitem()
            self.weight -= entry.weight
            if self._on_evict:
                self._on_evict(key, entry.value)
