"""A cache for rendered pages."""

from pagecache.cache import Cache
from pagecache.pages import Pages
from pagecache.stats import Stats

__all__ = ["Cache", "Pages", "Stats"]
