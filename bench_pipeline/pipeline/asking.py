"""What becomes of runs that are asked for, in the words of those who ask.

What belongs here: these words, and how often a run is asked for. What does not: looking runs up (``defs.runs``).
"""

from typing import Literal

# ``failed`` may be asked for again; ``given_up`` was ended by a person, or would fail again.
Run = Literal["absent", "going", "failed", "given_up"]
MOST_TRIES = 3
