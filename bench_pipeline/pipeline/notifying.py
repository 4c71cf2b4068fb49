"""Telling people what happened by itself: gates that flipped, nights that failed; each once, for as long as it takes.

What belongs here: finding what is new, who wants it, what waits for a target that is down, and the state of all that
under ``notifications/`` in the store. What does not: words (``reports.messages``), sending (``providers.messenger``)
and Dagster (``defs.notifications``).

What is new is put down together with what is known now, and sent after that. So a restart loses nothing, and what was
sent is sent again only where a process is killed between an answer and the note of it.
"""

import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from bench_pipeline.pipeline.gate_watch import Decision, decisions, inputs_of_gates
from bench_pipeline.providers.messenger import Delivery, Message, deliver
from bench_pipeline.reports.messages import Flip, Night, flips_message, night_message, trial_message
from bench_pipeline.reports.text import plural

if TYPE_CHECKING:
    from bench_pipeline.pipeline.bench import Bench
    from bench_pipeline.project import Event, Target
    from bench_pipeline.store import Store

_STATE, _LOCK = "notifications/state.json", "notifications"
# The waits between tries double from a minute on: the last try is after 17 hours, so a night's outage loses nothing.
MOST_TRIES, _FIRST_WAIT_S = 11, 60.0
# What waits for one target; the oldest goes first when there is more.
_MOST_WAITING = 50


@dataclass
class Waiting:
    """A message that a target has not taken yet: how often it was tried, and when it may be next."""

    id: str
    target: str
    message: Message
    tries: int = 0
    next_at: float = 0.0


@dataclass
class State:
    """Everything that is known between looks.

    ``inputs`` and ``gates``: what gates decided over when they were last looked at, and what each last decided, with
    its numbers; ``night``: the newest night that is known to have ended. Both are None before the first look, which
    tells nothing. ``problems``: why the last try at a target failed; ``given_up``: messages that it will not get.
    """

    inputs: str | None = None
    gates: dict[str, tuple[bool, str]] = field(default_factory=dict)
    night: str | None = None
    waiting: list[Waiting] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    given_up: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class TargetState:
    """One target: who it is, whether its URL is set, and what has become of its messages."""

    target: str
    url_env: str
    url_set: bool
    events: tuple[str, ...]
    waiting: int
    given_up: int
    problem: str | None


def notify(bench: "Bench", nights_since: Callable[[str | None], Sequence[Night]], now: float) -> str:
    """Look for what is new, and send what is due; what came of it in one sentence. A target never makes this fail.

    ``nights_since`` gives the nights that ended after the one of a name, oldest first.
    """
    targets = bench.project.config.notifications
    if not targets:
        return "no target of notifications is configured"
    with _state(bench.store) as state:
        _put_down_news(bench, state, nights_since)
        state.waiting = [each for each in state.waiting if each.target in targets]
        due = _claim(state, now)
    deliveries = _send(targets, due)
    with _state(bench.store) as state:
        for target, delivery in deliveries.items():
            _settle(state, target, due[target], delivery)
        return _summary(state, sum(delivery.sent for delivery in deliveries.values()))


def try_targets(bench: "Bench") -> dict[str, Delivery]:
    """Send a test message to each target now; what came of it, by target. What waits is left alone."""
    targets, project = bench.project.config.notifications, bench.project.root.name
    return _send(
        targets,
        {
            name: [Waiting("", name, trial_message(project, name, target.events))]
            for name, target in targets.items()
        },
    )


def target_states(bench: "Bench") -> list[TargetState]:
    """Each target of the project as it is now."""
    targets, state = bench.project.config.notifications, _read(bench.store)
    return [
        TargetState(
            target=name,
            url_env=target.url_env,
            url_set=_url(target) is not None,
            events=target.events,
            waiting=sum(each.target == name for each in state.waiting),
            given_up=state.given_up.get(name, 0),
            problem=state.problems.get(name),
        )
        for name, target in targets.items()
    ]


def _put_down_news(
    bench: "Bench", state: State, nights_since: Callable[[str | None], Sequence[Night]]
) -> None:
    """Bring what is known up to date, with a message for what is new and those who want it."""
    project = bench.project.root.name
    flips = _flips(bench, state)
    if flips:
        _put(bench, state, "gate_flipped", flips_message(project, flips))
    first = state.night is None
    for night in nights_since(state.night):
        state.night = night.name
        if night.failed and not first:
            _put(bench, state, "night_failed", night_message(project, night))
    state.night = state.night or ""


def _flips(bench: "Bench", state: State) -> list[Flip]:
    """The gates that decide otherwise than they last did; what each decides now is known after that."""
    inputs = inputs_of_gates(bench)
    if inputs == state.inputs:
        return []
    found = decisions(bench)
    flips = [
        _flip(decision, state.gates[key][1])
        for key, decision in found.items()
        if key in state.gates and state.gates[key][0] != decision.passes
    ]
    state.gates |= {key: (decision.passes, decision.numbers) for key, decision in found.items()}
    state.inputs = inputs
    return flips


def _flip(decision: Decision, before: str) -> Flip:
    return Flip(decision.gate, decision.passes, before, decision.numbers, decision.why, decision.command)


def _put(bench: "Bench", state: State, event: "Event", message: Message) -> None:
    for name, target in bench.project.config.notifications.items():
        if event not in target.events:
            continue
        own = [each for each in state.waiting if each.target == name]
        for oldest in own[: max(0, len(own) + 1 - _MOST_WAITING)]:
            _give_up(state, oldest)
        state.waiting.append(Waiting(uuid.uuid4().hex, name, message))


def _claim(state: State, now: float) -> dict[str, list[Waiting]]:
    """The messages that are due, by target, each counted as tried: another look leaves them alone meanwhile."""
    due: dict[str, list[Waiting]] = {}
    for each in state.waiting:
        if each.next_at <= now:
            each.next_at = now + _FIRST_WAIT_S * 2**each.tries
            each.tries += 1
            due.setdefault(each.target, []).append(each)
    return due


def _send(targets: Mapping[str, "Target"], due: Mapping[str, Sequence[Waiting]]) -> dict[str, Delivery]:
    """Send to all targets side by side: one that hangs holds up no other."""
    if not due:
        return {}

    def send(name: str) -> Delivery:
        target = targets[name]
        url = _url(target)
        if url is None:
            return Delivery(0, f"{target.url_env} is not set")
        return deliver(url, [each.message for each in due[name]])

    with ThreadPoolExecutor(len(due)) as pool:
        return dict(zip(due, pool.map(send, due), strict=True))


def _url(target: "Target") -> str | None:
    return os.environ.get(target.url_env, "").strip() or None


def _settle(state: State, target: str, tried: Sequence[Waiting], delivery: Delivery) -> None:
    """Take away what a target took, and what was tried often enough."""
    taken = {each.id for each in tried[: delivery.sent]}
    state.waiting = [each for each in state.waiting if each.id not in taken]
    if delivery.problem is None:
        state.problems.pop(target, None)
        return
    state.problems[target] = delivery.problem
    spent = [each for each in state.waiting if each.target == target and each.tries >= MOST_TRIES]
    for each in spent:
        _give_up(state, each)


def _give_up(state: State, waiting: Waiting) -> None:
    state.waiting.remove(waiting)
    state.given_up[waiting.target] = state.given_up.get(waiting.target, 0) + 1


def _summary(state: State, sent: int) -> str:
    problems = [f"{target}: {problem}" for target, problem in sorted(state.problems.items())]
    waiting = [f"{plural(len(state.waiting), 'message')} waiting"] if state.waiting else []
    return "; ".join([f"{plural(sent, 'message')} sent", *waiting, *problems])


@contextmanager
def _state(store: "Store") -> Iterator[State]:
    """The state, under a lock; what the block changes is kept."""
    with store.lock(_LOCK):
        state = _read(store)
        before = json.dumps(asdict(state))
        yield state
        after = json.dumps(asdict(state))
        if after != before:
            store.files.write(_STATE, after.encode())


def _read(store: "Store") -> State:
    """The state; one that is absent or damaged knows nothing, and the next look tells nothing."""
    try:
        document = json.loads(store.files.read(_STATE))
        waiting = [
            Waiting(**{**each, "message": Message(**each["message"])}) for each in document.pop("waiting")
        ]
        gates = {key: (passes, numbers) for key, (passes, numbers) in document.pop("gates").items()}
        return State(**document, gates=gates, waiting=waiting)
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return State()
