"""Ticket numbers for several desks."""

from ticketing.counter import Counter
from ticketing.desk import Desk
from ticketing.locking import Busy, FileLock
from ticketing.storage import Damaged

__all__ = ["Busy", "Counter", "Damaged", "Desk", "FileLock"]
