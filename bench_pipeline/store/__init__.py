"""Everything measured, kept for good: tables, verdict and candidate parts, artifacts, locks.

What belongs here: bytes that survive a kill, an outage and a newer version. What does not: what a verdict
means, what it cost, and what is worth measuring. See docs/operations for the layout on disk.
"""

from bench_pipeline.store.locks import LockHeldError
from bench_pipeline.store.quarantine import Quarantined
from bench_pipeline.store.store import Store
from bench_pipeline.store.text import clean_text

__all__ = ["LockHeldError", "Quarantined", "Store", "clean_text"]
