"""Asking again: the one layer of retries, for those who may (judges), never behind a call budget (policies).

What belongs here: which failures may pass, and how long to wait. What does not: what is asked, and one call (``chat``).
"""

import threading
from typing import Protocol

from bench_pipeline.providers.chat import ChatAnswer, ChatFailure, FailureKind
from bench_pipeline.providers.pacing import Pace

# What may be over when it is tried again; a wrong key, a redirect and an answer of another shape stay what they are.
PASSING: frozenset[FailureKind] = frozenset({"rate_limited", "server_error", "timeout", "connection"})
TRIES = 4
CALL_S = 120.0
# A server that asks for more is given up at once: a person can come back later, a process should not sit there.
LONGEST_WAIT_S = 60.0
_FIRST_WAIT_S = 1.0


class AsksOnce(Protocol):
    """A client of one model."""

    def ask(self, prompt: str, seconds: float) -> ChatAnswer:
        """The answer to one prompt, asked once; raises ChatFailure."""


class Patient:
    """Asks through a client, again where a failure may pass; threads may share it.

    Args:
        client: what asks once.
        tries: how often at most.
        call_s: the time of one call.
        longest_wait_s: the longest wait between two of them.
        first_wait_s: the wait after the first failure when the server names none; it doubles.
        pace: of the upstream, shared with others who ask it.
        stop: set when nobody waits for answers any more.
    """

    def __init__(
        self,
        client: AsksOnce,
        *,
        tries: int = TRIES,
        call_s: float = CALL_S,
        longest_wait_s: float = LONGEST_WAIT_S,
        first_wait_s: float = _FIRST_WAIT_S,
        pace: Pace | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        self._client = client
        self._tries = tries
        self._call_s = call_s
        self._longest = longest_wait_s
        self._first = first_wait_s
        self._pace = pace or Pace()
        self._stop = stop or threading.Event()

    def ask(self, prompt: str) -> ChatAnswer:
        """The answer of the first call that gives one. Raises the ChatFailure of the last call."""
        for number in range(self._tries):
            self._begin()
            try:
                return self._client.ask(prompt, self._call_s)
            except ChatFailure as failure:
                if failure.retry_after_s is not None and failure.retry_after_s <= self._longest:
                    self._pace.rest(failure.retry_after_s)
                wait = self._wait(failure, number)
                if wait is None or self._stop.wait(wait):
                    raise
        raise AssertionError("the last failure is raised")

    def _begin(self) -> None:
        """Wait until the upstream takes another call. Raises ChatFailure when nobody waits for answers any more."""
        while wait := self._pace.begin():
            if self._stop.wait(wait):
                raise ChatFailure("connection", "not asked, for nobody waits any more")

    def _wait(self, failure: ChatFailure, number: int) -> float | None:
        """The seconds to wait before the next try; None when there is none."""
        if failure.kind not in PASSING or number + 1 == self._tries:
            return None
        told = failure.retry_after_s
        wait = self._first * 2.0**number if told is None else told
        if wait > self._longest:
            return None if told is not None else self._longest
        return wait
