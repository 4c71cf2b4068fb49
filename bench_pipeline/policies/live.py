"""A live model behind a chat-completions endpoint; calls that may overlap do.

What belongs here: calls under a policy's deadline, side by side where their prompts are known. What does not: HTTP
(``providers``). A failed call is a counted error, whatever the reason: nothing is tried again behind the budget.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count

from bench_pipeline.policies.models import Ask, Deadline, Keeper, ModelConfig, Reply, Settings
from bench_pipeline.policies.policy import PolicyName
from bench_pipeline.providers.chat import ChatClient, ChatFailure
from bench_pipeline.providers.endpoint import Endpoint, Key

ADAPTER = "http"
SCOPE = "live_provider"
# Of one call; the policy's deadline may leave it less.
CALL_TIMEOUT_S = 10.0
# For threads to see that their connection is gone.
_STOP_S = 1.0


def live_config(endpoint: Endpoint, model: str, settings: Settings) -> ModelConfig:
    """The configuration of a live model, known before its key is."""
    return ModelConfig(ADAPTER, model, settings, endpoint.url)


class LiveModel:
    """A model that is asked over HTTP, ``concurrency`` calls at a time where a policy allows it.

    With a ``keeper``, what it has is not asked again, and it is given every reply before that is counted.
    """

    scope = SCOPE

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        settings: Settings,
        key: Key | None = None,
        concurrency: int = 1,
        keeper: Keeper | None = None,
    ) -> None:
        self.config = live_config(endpoint, model, settings)
        self._endpoint = endpoint
        self._key = key
        self._concurrency = concurrency
        self._keeper = keeper

    @contextmanager
    def asking(
        self,
        policy: PolicyName,
        attempt: int,  # noqa: ARG002
        deadline: Deadline,
        ahead: Sequence[str],
    ) -> Iterator[Ask]:
        """Calls of one policy, overlapping where ``ahead`` says what will be asked."""
        settings = self.config.settings
        with ChatClient(
            self._endpoint,
            self.config.model,
            self._key,
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
        ) as client:

            def find(number: int, prompt: str) -> Reply | None:
                return None if self._keeper is None else self._keeper.find(policy, number, prompt)

            def call(number: int, prompt: str) -> Reply:
                reply = _call(client, prompt, min(CALL_TIMEOUT_S, max(deadline.left(), 1e-3)))
                # What fails while the policy is being stopped was cut off by that.
                if self._keeper is not None and (reply.failure is None or not deadline.stop.is_set()):
                    self._keeper.add(policy, number, prompt, reply, deadline.left())
                return reply

            numbers = count(1)
            missing = [asked for asked in enumerate(ahead, 1) if find(*asked) is None]
            workers = min(self._concurrency, len(missing))
            if workers < 2:
                yield lambda prompt: _first(next(numbers), prompt, find, deadline.keep(call))
                return
            overlapped = Overlapped(missing, call, deadline, workers)
            try:
                yield lambda prompt: _first(next(numbers), prompt, find, overlapped.ask)
            finally:
                overlapped.stop(client.interrupt)


def _first(number: int, prompt: str, *sources: Callable[[int, str], Reply | None]) -> Reply | None:
    """The first reply that one of the sources has; what is kept is not under the deadline."""
    replies = (source(number, prompt) for source in sources)
    return next((reply for reply in replies if reply is not None), None)


def _call(client: ChatClient, prompt: str, seconds: float) -> Reply:
    started, begun = datetime.now(UTC), time.monotonic()
    try:
        answer = client.ask(prompt, seconds)
    except ChatFailure as failure:
        return Reply("", str(failure), started_at=started, latency_s=time.monotonic() - begun)
    return Reply(
        answer.content,
        started_at=started,
        latency_s=time.monotonic() - begun,
        tokens_input=answer.tokens_input,
        tokens_output=answer.tokens_output,
    )


class Overlapped:
    """Calls with their numbers begun in this order, several at a time, and handed out in this order.

    Whether a call begins is decided in one place at a time, so calls that were begun are always the first ones: what
    the deadline leaves out lies behind them all.
    """

    def __init__(
        self,
        asked: Sequence[tuple[int, str]],
        call: Callable[[int, str], Reply],
        deadline: Deadline,
        workers: int,
    ) -> None:
        self._asked = asked
        self._call = call
        self._deadline = deadline
        self._changed = threading.Condition()
        self._begun = 0
        self._awaited = 0
        self._closed = False
        self._replies: dict[int, Reply | Exception] = {}
        # Daemons: a command that is interrupted does not wait for a connection that is being made.
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def ask(self, number: int, prompt: str) -> Reply | None:
        """The reply to the next prompt; None when the time was over before it was begun."""
        with self._changed:
            place = self._awaited
            assert self._asked[place] == (number, prompt)
            while place not in self._replies:
                if self._closed and place >= self._begun:
                    return None
                self._changed.wait()
            reply = self._replies.pop(place)
            self._awaited += 1
        if isinstance(reply, Exception):
            raise reply
        return reply

    def stop(self, interrupt: Callable[[], None]) -> None:
        """Begin no more calls, and end those that are in flight, which nobody waits for."""
        with self._changed:
            self._closed = True
        interrupt()
        ends_at = time.monotonic() + _STOP_S
        for thread in self._threads:
            thread.join(max(0.0, ends_at - time.monotonic()))

    def _work(self) -> None:
        while (place := self._begin()) is not None:
            try:
                reply: Reply | Exception = self._deadline.mark(self._call(*self._asked[place]))
            except Exception as error:  # noqa: BLE001
                # Of ours: raised where the policies run.
                reply = error
            with self._changed:
                self._replies[place] = reply
                if place == self._awaited:
                    self._changed.notify()

    def _begin(self) -> int | None:
        with self._changed:
            if self._begun == len(self._asked) or self._deadline.passed:
                self._closed = True
            if self._closed:
                self._changed.notify()
                return None
            self._begun += 1
            return self._begun - 1
