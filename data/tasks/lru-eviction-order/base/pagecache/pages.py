"""Pages that are rendered when they are not in the cache."""

from pagecache.cache import Cache


class Pages:
    """Renders pages and keeps what it rendered."""

    def __init__(self, render, max_weight=1_000_000):
        self.cache = Cache(max_weight)
        self._render = render

    def page(self, name):
        """The text of a page."""
        text = self.cache.get(name)
        if text is None:
            text = self._render(name)
            weight = max(1, len(text))
            if weight <= self.cache.max_weight:
                self.cache.put(name, text, weight)
        return text
