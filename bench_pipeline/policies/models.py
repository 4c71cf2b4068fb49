"""What a policy asks: a model behind one interface, recorded or live.

What belongs here: the configuration that decides answers, a reply, the interface. What does not: where replies come
from (``recordings``, ``live``) and how they are counted (``calling``).
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, NamedTuple, ParamSpec, Protocol

from pydantic import Field

from bench_pipeline.documents import Float, Int, StrictModel
from bench_pipeline.policies.digests import sha256
from bench_pipeline.policies.policy import PolicyName

Temperature = Annotated[Float, Field(ge=0, le=2)]
_Asked = ParamSpec("_Asked")
MaxTokens = Annotated[Int, Field(ge=1)]


class Settings(StrictModel):
    """What is asked of the model besides the prompt."""

    temperature: Temperature
    max_tokens: MaxTokens


@dataclass(frozen=True)
class ModelConfig:
    """Everything that decides a model's answers, as receipts show it."""

    adapter: str
    model: str
    settings: Settings
    endpoint: str | None = None
    recording_sha256: str | None = None

    def document(self) -> Mapping[str, object]:
        """The members of a receipt's ``model``, in their order."""
        members = {
            "adapter": self.adapter,
            "model": self.model,
            "endpoint": self.endpoint,
            "settings": self.settings.model_dump(),
            "recording_sha256": self.recording_sha256,
        }
        return {name: value for name, value in members.items() if value is not None}

    @property
    def sha256(self) -> str:
        """The digest by which receipts of one configuration are known."""
        return sha256(self.document())


class Reply(NamedTuple):
    """What came of one call. ``failure`` is None for an answer and says in our own words why there is none.

    ``late``: it ended when the policy's time was over. Latency and tokens are None where nobody measured them.
    """

    answer: str
    failure: str | None = None
    late: bool = False
    started_at: datetime | None = None
    latency_s: float | None = None
    tokens_input: int | None = None
    tokens_output: int | None = None


class Keeper(Protocol):
    """Keeps what a live model answered in one attempt, so that an attempt that is cut off goes on where it ended."""

    def find(self, policy: PolicyName, number: int, prompt: str) -> Reply | None:
        """The reply to a policy's call of this number, from 1; None where there is none to this prompt."""
        ...

    def add(self, policy: PolicyName, number: int, prompt: str, reply: Reply, left_s: float) -> None:
        """Keep a reply, and how much of the policy's time was left by then; it is durable when this returns."""
        ...


# One call; None when the policy's time was over before it began, so that nothing was sent.
Ask = Callable[[str], Reply | None]
Clock = Callable[[], float]

LATE = "deadline: the time for the policy was over when the call ended"
STOPPED = "stopped: the policy was stopped before the call ended"


@dataclass(frozen=True)
class Deadline:
    """When a policy's time is over, on a clock that never goes back; at once when somebody stops it."""

    at: float
    clock: Clock = time.monotonic
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def passed(self) -> bool:
        """Whether the time is over."""
        return self.stop.is_set() or self.clock() >= self.at

    def left(self) -> float:
        """The seconds that are left, 0 when it has passed."""
        return max(0.0, self.at - self.clock())

    def keep(self, ask: Callable[_Asked, Reply]) -> Callable[_Asked, Reply | None]:
        """``ask`` under this deadline: nothing is sent after it, and what comes back after it is a failure."""

        def within(*asked: _Asked.args, **named: _Asked.kwargs) -> Reply | None:
            if self.passed:
                return None
            return self.mark(ask(*asked, **named))

        return within

    def mark(self, reply: Reply) -> Reply:
        """A reply that has just come: a failure when the time is over."""
        if not self.passed:
            return reply
        return reply._replace(failure=STOPPED if self.stop.is_set() else LATE, late=True)


class Model(Protocol):
    """Answers prompts for one policy of one attempt at a time."""

    @property
    def config(self) -> ModelConfig:
        """What decides the answers."""
        ...

    @property
    def scope(self) -> str:
        """What kind of evidence its answers are."""
        ...

    def asking(
        self, policy: PolicyName, attempt: int, deadline: Deadline, ahead: Sequence[str]
    ) -> AbstractContextManager[Ask]:
        """The calls of one policy.

        ``ahead`` are the prompts that will be asked in this order where that is known beforehand: a model may
        begin them early, and has then begun no other.
        """
        ...
