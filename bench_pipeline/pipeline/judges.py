"""The judge of a project: where its model is, and asking it within the caps of a run.

What belongs here: who judges, what asking may still cost. What does not: what a judge is asked (``judging``,
``golden``), one call and its retries (``providers``). A call is paid for before it is made: it holds the most that it
can cost, and gives back what it did not.
"""

import threading
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypedDict

from bench_pipeline.documents import one_of
from bench_pipeline.errors import BenchError, RefusedError, UsageError
from bench_pipeline.judging.judgements import Reply
from bench_pipeline.providers.chat import ChatAnswer, ChatClient, ChatFailure, FailureKind
from bench_pipeline.providers.endpoint import Endpoint, Key, read_endpoint, read_key
from bench_pipeline.providers.pacing import Pace
from bench_pipeline.providers.retrying import AsksOnce, Patient
from bench_pipeline.registry import TokenCounts

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.project import ProjectConfig
    from bench_pipeline.registry.pricing import ModelPrice

# What a provider wraps around one message, in tokens; a token is at least one byte.
_WRAPPING_TOKENS = 64
# Nobody charges for a call that was refused at the door.
_FREE: frozenset[FailureKind] = frozenset({"rate_limited", "unauthorised"})
NOT_ASKED = "not_asked"


class Settings(TypedDict):
    """What is asked of a judge's model besides the prompt."""

    temperature: float
    max_tokens: int


# Room for a verdict and a reason; a judge of pairs that needs more does not answer as it was asked to.
PAIR_SETTINGS: Settings = {"temperature": 0.0, "max_tokens": 1024}


@dataclass(frozen=True)
class Judge:
    """A model and where it is."""

    endpoint: Endpoint
    model: str
    key_env: str | None
    concurrency: int
    requests_per_minute: int | None = None

    def key(self) -> Key | None:
        """What opens it; RefusedError where it should be there and is not."""
        return read_key(self.key_env)


def named_judge(config: "ProjectConfig", upstream: str | None = None, model: str | None = None) -> Judge:
    """The judge of config.yaml, or another of its upstreams or models; UsageError where there is none."""
    name = upstream or config.judge.upstream
    found = config.upstreams.get(name or "")
    chosen = model or config.judge.model
    if name is None or chosen is None:
        wrong = "none is named" if name is None else "it has no model"
        raise UsageError("choosing a judge", wrong, "set judge and upstreams in config.yaml")
    if found is None:
        raise UsageError(
            "choosing a judge", f"{name!r} is no upstream", one_of(name, config.upstreams, "upstreams")
        )
    if found.models and chosen not in found.models:
        raise UsageError(
            "choosing a judge", f"{chosen!r} is not offered", one_of(chosen, found.models, "models")
        )
    endpoint = read_endpoint(f"{found.base_url.rstrip('/')}/chat/completions")
    return Judge(endpoint, chosen, found.key_env, found.concurrency, found.requests_per_minute)


def pace_of(bench: "Bench", judge: Judge) -> Pace:
    """The pace at which a judge's upstream is asked, one for all judges of a run that are there."""
    return bench.paces.setdefault(judge.endpoint.url, Pace(judge.requests_per_minute))


class Purse:
    """The dollars that the models of one run may still cost; threads may share it. None is no cap."""

    def __init__(self, left_usd: float | None) -> None:
        self._left = left_usd
        self._lock = threading.Lock()

    @property
    def left_usd(self) -> float | None:
        """What no call holds or has cost."""
        return self._left

    def take(self, usd: float | None) -> bool:
        """Hold an amount; False when it is more than there is, or unknown."""
        with self._lock:
            if self._left is None:
                return True
            if usd is None or usd > self._left:
                return False
            self._left -= usd
            return True

    def give_back(self, usd: float) -> None:
        """Let go of what was held and not spent."""
        with self._lock:
            if self._left is not None:
                self._left += usd


def purse_of(bench: "Bench") -> Purse:
    """What the cap of this run leaves: all of ``spending.max_cost_usd``, or what its cells did not take."""
    cap = bench.project.config.spending.max_cost_usd
    return Purse(cap if bench.left_usd is None else bench.left_usd)


@dataclass(frozen=True)
class Caps:
    """What asking one model may come to: dollars, at a price that a capped purse needs, and calls; None is no cap."""

    purse: Purse
    price: "ModelPrice | None" = None
    max_calls: int | None = None


class Capped:
    """Asks through a client while the caps allow it; what they do not is a failure, and nothing is sent.

    Raises:
        RefusedError: there is a cap in dollars, and the price is not known.
    """

    def __init__(self, client: AsksOnce, judge: Judge, caps: Caps, max_tokens: int) -> None:
        if caps.purse.left_usd is not None and caps.price is None:
            raise RefusedError(
                f"asking the judge {judge.model}",
                "spending.max_cost_usd is set, and no price is known for it, so that the cap could not be kept",
                f"add it to pricing.yaml as models.{judge.model}, or take the cap away and set judge.max_calls",
            )
        self._client, self._caps, self._max_tokens = client, caps, max_tokens
        self._calls_left = caps.max_calls
        self._lock = threading.Lock()
        self.stopped = False

    def ask(self, prompt: str, seconds: float) -> ChatAnswer:
        """As the client's; ChatFailure ``over_cap`` where the call could exceed a cap."""
        purse = self._caps.purse
        most = self._cost(len(prompt.encode()) + _WRAPPING_TOKENS, self._max_tokens)
        with self._lock:
            if self._calls_left == 0 or not purse.take(most):
                self.stopped = True
                raise ChatFailure("over_cap", "the call could exceed a cap")
            if self._calls_left is not None:
                self._calls_left -= 1
        held = most or 0.0
        try:
            answer = self._client.ask(prompt, seconds)
        except ChatFailure as failure:
            if failure.kind in _FREE:
                purse.give_back(held)
            raise
        cost = self._cost(answer.tokens_input, answer.tokens_output)
        if cost is not None:
            purse.give_back(held - cost)
        return answer

    def _cost(self, tokens_input: int | None, tokens_output: int | None) -> float | None:
        price = self._caps.price
        return None if price is None else price.cost(TokenCounts(tokens_input, 0, 0, tokens_output))


class Asking:
    """Asks a judge's model, patiently and within caps; use it in a ``with`` block. Threads may share it.

    Its key is read and its connections are opened with the first question, so that what is known already needs
    neither. ``stop`` is set when nobody waits for answers any more.
    """

    def __init__(self, judge: Judge, caps: Caps, settings: Settings, call_s: float, pace: Pace) -> None:
        self._judge, self._caps, self._settings = judge, caps, settings
        self._call_s, self._pace = call_s, pace
        self.stop = threading.Event()
        self._lock = threading.Lock()
        self._client: ChatClient | None = None
        self._capped: Capped | None = None
        self._refused: BenchError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            if kind is not None:
                self._client.interrupt()
            self._client.__exit__(kind, error, trace)

    def __call__(self, prompt: str) -> Reply:
        """What came of one question; ``not_asked`` where it cannot be put."""
        capped = self._opened()
        if capped is None:
            return Reply(failure=NOT_ASKED)
        patient = Patient(capped, call_s=self._call_s, pace=self._pace, stop=self.stop)
        return ask_patiently(patient, prompt)

    @property
    def problem(self) -> str | None:
        """Why questions were not put."""
        if self._refused is not None:
            return str(self._refused)
        if self._capped is not None and self._capped.stopped:
            return f"the judge {self._judge.model} was not asked everything: judge.max_calls or spending.max_cost_usd"
        return None

    def _opened(self) -> Capped | None:
        with self._lock:
            if self._capped is None and self._refused is None:
                try:
                    self._client = ChatClient(
                        self._judge.endpoint, self._judge.model, self._judge.key(), **self._settings
                    )
                    self._capped = Capped(self._client, self._judge, self._caps, self._settings["max_tokens"])
                except BenchError as error:
                    self._refused = error
            return self._capped


def ask_patiently(patient: Patient, prompt: str) -> Reply:
    """What came of one question to a judge's model."""
    try:
        answer = patient.ask(prompt)
    except ChatFailure as failure:
        return Reply(failure=failure.kind)
    return Reply(answer.content, None, answer.tokens_input, answer.tokens_output)
