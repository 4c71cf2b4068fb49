"""Token counts of one cell or one step, in the four classes that have prices of their own.

What belongs here: the counts and their sums. What does not: reading them from a tool's output
(execution/usage) and prices (registry/pricing).
"""

from collections.abc import Iterable
from dataclasses import astuple, dataclass

CLASSES = ("input", "cache_read", "cache_write", "output")


@dataclass(frozen=True)
class TokenCounts:
    """Tokens by price class; every token is in exactly one class, and None means that the tool does not say.

    ``input`` is input that was neither read from nor written to a cache; ``output`` includes reasoning.
    """

    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None

    @property
    def known(self) -> bool:
        """Whether input and output are known; a cache class may be unknown where a tool has none."""
        return self.input is not None and self.output is not None


def add_tokens(parts: Iterable[TokenCounts]) -> TokenCounts:
    """The sum per class; a class that any part does not know stays unknown, as does the sum of nothing."""
    rows = [astuple(part) for part in parts]
    if not rows:
        return TokenCounts()
    sums = [None if None in column else sum(column) for column in zip(*rows, strict=True)]
    return TokenCounts(*sums)
