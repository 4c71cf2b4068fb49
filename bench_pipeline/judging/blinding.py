"""Blinding: which of two cells a judge sees as slot A.

What belongs here: the coin, and mapping what was said of slots back to sides. What does not: what a judge is shown
(``prompt``) and how it decides (``rubric``, ``live``).
"""

from hashlib import sha256
from typing import Literal

Slot = Literal["A", "B", "tie"]
Side = Literal["left", "right", "tie"]


def swapped(seed: int, scenario: str) -> bool:
    """Whether slot A holds the right cell: the lowest bit of SHA-256(seed NUL scenario)."""
    return bool(sha256(f"{seed}\0{scenario}".encode()).digest()[-1] & 1)


def side_of(slot: Slot, *, swapped: bool) -> Side:
    """The side that a verdict on slots means."""
    if slot == "tie":
        return "tie"
    return "right" if (slot == "A") == swapped else "left"
