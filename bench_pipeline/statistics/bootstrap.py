"""The bootstrap of tasks: how often each is drawn when as many are drawn anew, with replacement.

What belongs here: the seeded draw, in bounded memory. What does not: what is summed over the drawn tasks (``ranking``,
``pairwise``). Reference: Efron 1979, Ann. Stat. 7:1.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

SEED = 20250101
RESAMPLES = 10_000
# Resamples worked on at once: bounds memory at some 4 MB per 500 tasks and fixes the random stream.
_CHUNK = 1_000

Floats = npt.NDArray[np.float64]


def resampled_sums(values: Floats, *, seed: int = SEED, resamples: int = RESAMPLES) -> Iterator[Floats]:
    """The sums of columns over tasks drawn anew, some resamples at a time: shape (resamples of the chunk, columns).

    Args:
        values: shape (tasks, columns); the order of the tasks is part of the draw, so give them sorted.
        seed: of the random generator.
        resamples: how many times as many tasks as there are are drawn.
    """
    tasks = len(values)
    generator = np.random.default_rng(seed)
    for start in range(0, resamples, _CHUNK):
        size = min(_CHUNK, resamples - start)
        picks = generator.integers(0, tasks, size=(size, tasks))
        flat = picks + np.arange(size)[:, None] * tasks
        counts = np.bincount(flat.ravel(), minlength=size * tasks).reshape(size, tasks)
        yield counts.astype(np.float64) @ values
