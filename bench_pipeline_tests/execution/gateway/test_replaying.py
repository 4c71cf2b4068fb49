"""A gateway that records and one that replays, with real sockets on both sides."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import httpx
import pytest

from bench_pipeline.execution.gateway import Again, Caps, Gateway, Session
from bench_pipeline.execution.gateway.masking import Masks
from bench_pipeline.execution.gateway.recordings import Exchange, pack, unpack
from bench_pipeline.registry.tokens import TokenCounts
from bench_pipeline_tests.execution.gateway.test_gateway import (
    KEY,
    PATHS,
    USED,
    Host,
    ask,
    opened,
    streaming,
)
from bench_pipeline_tests.model_server import model_server

keep = partial(pack, about={"folders": {}})


@contextmanager
def recording(gateway: Gateway, api: str = "chat-completions") -> Iterator[Session]:
    with gateway.session([api], "m", Host(), cell="c", cancel=threading.Event(), record=keep) as session:  # type: ignore[arg-type]
        yield session


@contextmanager
def replaying(gateway: Gateway, packed: bytes | None, api: str = "chat-completions") -> Iterator[Session]:
    assert packed is not None
    again = Again(packed, Masks(), Masks())
    with gateway.session([api], "m", Host(), cell="c", cancel=threading.Event(), again=again) as session:  # type: ignore[arg-type]
        yield session


@pytest.fixture(scope="module")
def closed() -> Iterator[Gateway]:
    """A gateway that knows no upstream and no model."""
    with Gateway({}, {}) as gateway:
        yield gateway


def recorded(session: Session) -> list[Exchange]:
    assert session.recording is not None
    return list(unpack(session.recording)[1])


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_replay_gives_the_same_bytes_and_counts_the_same_without_an_upstream(shared, closed, api, stream):
    shared.script({"text": "one"}, {"text": "two"})
    with recording(shared.gateway, api) as session:
        first = [ask(session, api, stream=stream) for _ in range(2)]
    with replaying(closed, session.recording, api) as again:
        second = [ask(again, api, stream=stream) for _ in range(2)]
    assert "one" in first[0].text
    assert [(each.status_code, each.content) for each in first] == [
        (each.status_code, each.content) for each in second
    ]
    assert [each.headers["content-type"] for each in first] == [
        each.headers["content-type"] for each in second
    ]
    assert again.traffic.document() == session.traffic.document()
    assert again.traffic.tokens == TokenCounts(*(2 * count for count in (1000, 200, 30, 40)))
    assert len(shared.server.requests) == 2


def test_no_key_is_in_a_recording_and_neither_is_the_placeholder(shared):
    shared.script({"text": f"your key is {KEY}"})
    with recording(shared.gateway) as session:
        ask(session)
        ask(session, stream=True)
    text = b"".join(each.request + each.answer + repr(each.head()).encode() for each in recorded(session))
    assert b"your key is" in text
    assert (KEY.encode() in text, session.key.encode() in text) == (False, False)


def test_recorded_is_what_the_agent_was_told_and_not_what_was_tried_again(shared, closed):
    shared.script({"status": 429}, {"text": "done"}, {"status": 401})
    with recording(shared.gateway) as session:
        told = [ask(session).status_code, ask(session).status_code]
    assert [each.status for each in recorded(session)] == told == [200, 401]
    with replaying(closed, session.recording) as again:
        assert [ask(again).status_code, ask(again).status_code] == [200, 401]
    assert again.traffic.outage == session.traffic.outage


def test_an_answer_that_broke_off_breaks_off_again(shared, closed):
    shared.script({"text": "x", "cut": True})
    with recording(shared.gateway) as session, pytest.raises(httpx.HTTPError):
        ask(session, stream=True)
    (exchange,) = recorded(session)
    assert (exchange.whole, exchange.failure) == (False, "overload")
    with replaying(closed, session.recording) as again, pytest.raises(httpx.HTTPError):
        ask(again, stream=True)


def test_what_a_cap_turned_away_is_turned_away_again(closed):
    caps = Caps(requests=1)
    with (
        model_server() as server,
        opened(server, cell_caps=caps) as gateway,
        recording(gateway) as session,
    ):
        told = [ask(session).text, ask(session).text]
    with replaying(closed, session.recording) as again:
        assert [ask(again).text, ask(again).text] == told
    assert again.traffic.cap == session.traffic.cap == "the cap on requests of this cell (1) is reached"


def test_requests_that_are_never_sent_are_refused_again_without_being_recorded(shared, closed):
    with recording(shared.gateway) as session:
        ask(session, tools=[{"type": "web_search"}])
        ask(session)
    assert len(recorded(session)) == 1
    with replaying(closed, session.recording) as again:
        assert ask(again, tools=[{"type": "web_search"}]).status_code == 400
        assert ask(again).status_code == 200
    assert (again.traffic.diverged, again.traffic.unasked) == (None, None)


def test_a_request_that_is_not_in_the_recording_is_refused_for_good_and_named(shared, closed):
    with recording(shared.gateway) as session:
        ask(session, messages=[{"role": "user", "content": "fix"}])
    with replaying(closed, session.recording) as again:
        answer = ask(again, messages=[{"role": "user", "content": "break"}])
    assert (answer.status_code, answer.headers["x-should-retry"]) == (400, "false")
    assert again.traffic.diverged is not None
    assert (
        "request 1 differs from request 1 of the recording at messages[0].content" in again.traffic.diverged
    )
    assert again.traffic.unasked == "request 1 of the 1 in the recording was not asked again"


def test_a_killed_gateway_leaves_every_exchange_that_was_over():
    held = threading.Event()
    steps = ({"text": "one"}, {"text": "two"}, {"text": "x", "until": held})
    with model_server(*steps) as server, opened(server) as gateway, recording(gateway) as session:
        ask(session)
        ask(session, stream=True)
        with streaming(session) as answer:
            events = answer.iter_raw()
            next(events)
            assert gateway.pid is not None
            os.kill(gateway.pid, signal.SIGKILL)
            with pytest.raises(httpx.HTTPError):
                b"".join(events)
        held.set()
    assert session.whole is False
    assert [each.number for each in recorded(session)] == [1, 2]
    assert session.traffic.tokens.output is not None
    assert b"two" in recorded(session)[1].answer
    assert session.traffic.exchanges[0].tokens == USED
