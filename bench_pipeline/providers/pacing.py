"""When an upstream takes another request: so many a minute, and none while it asks to wait.

What belongs here: counting, for one process. What does not: waiting (``retrying`` for threads, the gateway for tasks).
"""

import threading
import time
from collections import deque
from collections.abc import Callable

_MINUTE_S = 60.0


class Pace:
    """The pace of one upstream; everybody who asks it shares one, also threads. None a minute is no limit."""

    def __init__(self, per_minute: int | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._begun: deque[float] = deque()
        self._resumes_at = 0.0
        self._lock = threading.Lock()

    def begin(self) -> float:
        """Begin a request, which returns 0; or the seconds after which to try again."""
        with self._lock:
            now = self._clock()
            wait = self._resumes_at - now
            if self._per_minute is not None:
                while self._begun and self._begun[0] <= now - _MINUTE_S:
                    self._begun.popleft()
                if len(self._begun) >= self._per_minute:
                    wait = max(wait, self._begun[0] + _MINUTE_S - now)
                elif wait <= 0:
                    self._begun.append(now)
            return max(wait, 0.0)

    def rest(self, seconds: float) -> None:
        """Begin nothing for so long: the upstream has asked for it."""
        with self._lock:
            self._resumes_at = max(self._resumes_at, self._clock() + seconds)
