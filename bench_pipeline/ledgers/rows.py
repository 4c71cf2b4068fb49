"""Rows of a ledger as columns, in whatever way they were read.

What belongs here: the columns, and making them of rows that were read one by one. What does not: whether a row is valid
(``validity``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from bench_pipeline.ledgers.fields import NUMBERS

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]


@dataclass(frozen=True)
class Rows:
    """Some rows of a ledger.

    ``numbers`` has a line for each of NUMBERS, NaN where a row does not say. ``faults`` are of rows, by their place, of
    which something could not be read.
    """

    lines: Any
    numbers: Any
    texts: Mapping[str, pa.Array]
    faults: Mapping[int, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Floats:
        """The column of a number."""
        column: Floats = self.numbers[NUMBERS.index(name)]
        return column

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], lines: Sequence[int], texts: Sequence[str]) -> "Rows":
        """The columns of rows as ``fields.read_row`` reads them."""
        values = [[row.get(name) for row in rows] for name in NUMBERS]
        return cls(
            np.array(lines, dtype=np.int64),
            np.array(values, dtype=np.float64),
            {name: pa.array([row.get(name) for row in rows], pa.string()) for name in texts},
            {at: row["fault"] for at, row in enumerate(rows) if row["fault"]},
        )
