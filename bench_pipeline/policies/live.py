"""A live model behind a chat-completions endpoint; calls that may overlap do.

What belongs here: calls under a policy's deadline, side by side where their prompts are known. What does not: HTTP
(``providers``). A failed call is a counted error, whatever the reason: nothing is tried again behind the budget.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from bench_pipeline.policies.models import Ask, Deadline, ModelConfig, Reply, Settings
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
    """A model that is asked over HTTP, ``concurrency`` calls at a time where a policy allows it."""

    scope = SCOPE

    def __init__(
        self, endpoint: Endpoint, model: str, settings: Settings, key: Key | None = None, concurrency: int = 1
    ) -> None:
        self.config = live_config(endpoint, model, settings)
        self._endpoint = endpoint
        self._key = key
        self._concurrency = concurrency

    @contextmanager
    def asking(
        self,
        policy: PolicyName,  # noqa: ARG002
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

            def call(prompt: str) -> Reply:
                return _call(client, prompt, min(CALL_TIMEOUT_S, max(deadline.left(), 1e-3)))

            workers = min(self._concurrency, len(ahead))
            if workers < 2:
                yield deadline.keep(call)
                return
            overlapped = Overlapped(ahead, call, deadline, workers)
            try:
                yield overlapped.ask
            finally:
                overlapped.stop(client.interrupt)


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
    """Calls begun in the order of their prompts, several at a time, and handed out in that order.

    Whether a call begins is decided in one place at a time, so calls that were begun are always the first ones: what
    the deadline leaves out lies behind them all.
    """

    def __init__(
        self, prompts: Sequence[str], call: Callable[[str], Reply], deadline: Deadline, workers: int
    ) -> None:
        self._prompts = prompts
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

    def ask(self, prompt: str) -> Reply | None:
        """The reply to the next prompt; None when the time was over before it was begun."""
        with self._changed:
            number = self._awaited
            assert self._prompts[number] == prompt
            while number not in self._replies:
                if self._closed and number >= self._begun:
                    return None
                self._changed.wait()
            reply = self._replies.pop(number)
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
        while (number := self._begin()) is not None:
            try:
                reply: Reply | Exception = self._deadline.mark(self._call(self._prompts[number]))
            except Exception as error:  # noqa: BLE001
                # Of ours: raised where the policies run.
                reply = error
            with self._changed:
                self._replies[number] = reply
                if number == self._awaited:
                    self._changed.notify()

    def _begin(self) -> int | None:
        with self._changed:
            if self._begun == len(self._prompts) or self._deadline.passed:
                self._closed = True
            if self._closed:
                self._changed.notify()
                return None
            self._begun += 1
            return self._begun - 1
