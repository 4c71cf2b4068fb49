"""A gateway's process with real sockets on both sides: what passes, what does not, and what is counted."""

import contextlib
import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from bench_pipeline.errors import SandboxError
from bench_pipeline.execution.gateway import Caps, Gateway, Route, Session, UpstreamSettings
from bench_pipeline.registry.pricing import ModelPrice
from bench_pipeline.registry.tokens import TokenCounts
from bench_pipeline_tests.model_server import ModelServer, model_server

KEY = "sk-live-0123456789-abcdefghij"
VARIABLE = "GATEWAY_TEST_KEY"
PRICE = ModelPrice((Decimal(2), Decimal("0.2"), Decimal("2.5"), Decimal(10)))
PATHS = {"chat-completions": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
USED = TokenCounts(1000, 200, 30, 40)


@dataclass
class Host:
    """A sandbox without a network of its own."""

    name: str = "process"
    isolates: bool = False
    loopback: str = "host"


@dataclass
class Opened:
    """A gateway and the server behind it."""

    gateway: Gateway
    server: ModelServer

    def script(self, *steps: dict[str, Any]) -> None:
        """What the server does from now on; what it was asked before is forgotten."""
        self.server.requests.clear()
        self.server.steps = steps


@contextlib.contextmanager
def opened(
    server: ModelServer, *, key: str | None = VARIABLE, concurrency: int = 64, **more: Any
) -> Iterator[Gateway]:
    settings = UpstreamSettings(server.url, key, concurrency, more.pop("requests_per_minute", None))
    routes = {"m": Route("up", more.pop("price", PRICE))}
    with Gateway({"up": settings}, routes, first_wait_s=0.01, **more) as gateway:
        yield gateway


@contextlib.contextmanager
def door(gateway: Gateway, api: str = "chat-completions", cell: str = "cell") -> Iterator[Session]:
    with gateway.session([api], "m", Host(), cell=cell, cancel=threading.Event()) as session:  # type: ignore[arg-type]
        yield session


def ask(session: Session, api: str = "chat-completions", **body: Any) -> httpx.Response:
    content = {"model": "m", "max_tokens": 50, "messages": [], "input": "x", **body}
    if api == "responses":
        content.pop("max_tokens")
    with httpx.Client(trust_env=False, timeout=60) as client:
        return client.post(
            session.url + PATHS[api], json=content, headers={"authorization": f"Bearer {session.key}"}
        )


@contextlib.contextmanager
def streaming(session: Session) -> Iterator[httpx.Response]:
    """A streamed answer that is still coming."""
    url, headers = session.url + PATHS["chat-completions"], {"authorization": f"Bearer {session.key}"}
    body = {"model": "m", "stream": True}
    with (
        httpx.Client(trust_env=False, timeout=60) as client,
        client.stream("POST", url, json=body, headers=headers) as answer,
    ):
        yield answer


class TestPassing:
    @pytest.mark.parametrize("api", PATHS)
    @pytest.mark.parametrize("stream", [False, True])
    def test_each_api_passes_whole_and_streamed_with_its_exact_use(self, shared, api, stream):
        with door(shared.gateway, api) as session:
            answer = ask(session, api, stream=stream)
        assert answer.status_code == 200
        assert "done" in answer.text
        assert (session.traffic.tokens, session.traffic.estimated, session.whole) == (USED, 0, True)

    @pytest.mark.parametrize(("api", "header"), [("messages", "x-api-key"), ("responses", "Authorization")])
    def test_the_placeholder_is_thrown_away_and_the_real_key_put_in_its_place(self, shared, api, header):
        with door(shared.gateway, api) as session:
            ask(session, api)
        sent = shared.server.requests[-1]["headers"]
        assert sent[header].removeprefix("Bearer ") == KEY
        assert session.key not in json.dumps(sent)

    def test_a_stream_is_asked_for_its_use_and_the_agent_sees_none_that_it_did_not_ask_for(self, shared):
        with door(shared.gateway) as session:
            plain, asked = (
                ask(session, stream=True),
                ask(session, stream=True, stream_options={"include_usage": True}),
            )
        assert shared.server.requests[-2]["body"]["stream_options"] == {"include_usage": True}
        assert ('"usage"' in plain.text, '"usage"' in asked.text) == (False, True)
        assert session.traffic.tokens == TokenCounts(2000, 400, 60, 80)

    def test_counting_tokens_costs_nothing(self, shared):
        with door(shared.gateway, "messages") as session, httpx.Client(trust_env=False) as client:
            headers = {"x-api-key": session.key}
            path = session.url + "/v1/messages/count_tokens"
            assert client.post(path, json={"model": "m"}, headers=headers).json() == {"input_tokens": 1230}
        assert session.traffic.tokens == TokenCounts(0, 0, 0, 0)

    def test_an_event_arrives_before_the_answer_is_over(self, shared):
        read = threading.Event()
        shared.script({"text": "x", "until": read})
        with door(shared.gateway) as session, streaming(session) as answer:
            events = answer.iter_raw()
            assert b"[DONE]" not in next(events)
            read.set()
            assert b"[DONE]" in b"".join(events)

    def test_nothing_of_the_gateway_is_left_when_it_is_closed(self):
        with model_server() as server, opened(server) as gateway, door(gateway) as session:
            ask(session)
            pid = gateway.pid
        assert pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


class TestRefusing:
    @pytest.mark.parametrize(
        ("method", "path", "change"),
        [
            ("GET", "/v1/chat/completions", {}),
            ("POST", "/v1/models", {}),
            ("POST", "/v1/messages", {}),
            ("POST", "/v1/chat/completions", {"host": "evil.example"}),
            ("POST", "/v1/chat/completions", {"authorization": "Bearer guess"}),
            ("POST", "/v1/chat/completions", {"authorization": ""}),
        ],
        ids=["method", "path", "another api", "host", "key", "no key"],
    )
    def test_every_other_way_is_closed_and_nothing_is_sent(self, shared, method, path, change):
        before = len(shared.server.requests)
        with door(shared.gateway) as session, httpx.Client(trust_env=False) as client:
            headers = {"authorization": f"Bearer {session.key}", **change}
            answer = client.request(method, session.url + path, json={"model": "m"}, headers=headers)
        assert 400 <= answer.status_code < 500
        assert (len(shared.server.requests), len(session.traffic.refused)) == (before, 1)

    @pytest.mark.parametrize(
        "body",
        [
            {"model": "other"},
            {"model": None},
            {"tools": [{"type": "web_search"}]},
            {"web_search_options": {"a": 1}},
        ],
        ids=["model", "no model", "tool", "field"],
    )
    def test_what_the_cell_may_not_ask_is_told_in_the_words_of_its_api(self, shared, body):
        before = len(shared.server.requests)
        with door(shared.gateway) as session:
            answer = ask(session, **body)
        assert answer.json()["error"]["type"] == "invalid_request_error"
        assert answer.headers["x-should-retry"] == "false"
        assert len(shared.server.requests) == before

    @pytest.mark.parametrize(
        "raw",
        [b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n",
         b"POST http://example.com/v1/chat/completions HTTP/1.1\r\nHost: example.com\r\nContent-Length: 2\r\n\r\n{}",
         b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n\r\n[[[[[",
         b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
        ids=["connect", "proxy", "no json", "tls"],
    )  # fmt: skip
    def test_bytes_of_any_kind_are_turned_away(self, shared, raw):
        before = len(shared.server.requests)
        with door(shared.gateway) as session:
            where = urlsplit(session.url)
            with socket.create_connection((where.hostname, where.port), 30) as knocking:
                knocking.sendall(raw)
                knocking.shutdown(socket.SHUT_WR)
                answer = knocking.recv(1 << 16)
        assert answer == b"" or answer.split(b" ")[1].startswith(b"4")
        assert len(shared.server.requests) == before

    def test_of_a_name_that_comes_twice_the_one_that_was_looked_at_is_sent(self, shared):
        twice = b'{"model":"other","model":"m","max_tokens":100000,"max_tokens":1}'
        with door(shared.gateway) as session, httpx.Client(trust_env=False) as client:
            headers = {"authorization": f"Bearer {session.key}"}
            assert client.post(
                session.url + PATHS["chat-completions"], content=twice, headers=headers
            ).is_success
        assert shared.server.requests[-1]["raw"] == b'{"model":"m","max_tokens":1}'

    def test_a_request_of_any_depth_is_sent_or_refused(self, shared):
        with door(shared.gateway) as session, httpx.Client(trust_env=False) as client:
            headers = {"authorization": f"Bearer {session.key}"}
            for depth in range(100, 1100, 25):
                nested = b'{"tools":[' * depth + b"1" + b"]}" * depth
                body = b'{"model":"m","tools":[' + nested + b"]}"
                answer = client.post(session.url + PATHS["chat-completions"], content=body, headers=headers)
                # An accident in the gateway would not say this.
                assert answer.is_success or answer.headers["x-should-retry"] == "false"

    def test_a_redirect_is_not_followed_for_the_key_would_go_along(self, shared):
        step = {"status": 307, "headers": {"Location": "http://127.0.0.1:1/"}}
        shared.script(step)
        with door(shared.gateway) as session:
            assert ask(session).status_code == 502
            assert len(shared.server.requests) == 1

    def test_a_key_that_an_upstream_repeats_does_not_reach_the_agent(self, shared):
        said = {"status": 401, "body": json.dumps({"error": {"message": f"Incorrect API key: {KEY}"}})}
        shared.script(said, {"text": f"your key is {KEY}"})
        with door(shared.gateway) as session:
            answers = [ask(session), ask(session), ask(session, stream=True)]
        assert [answer.status_code for answer in answers] == [401, 200, 200]
        assert not any(KEY in answer.text or KEY in str(answer.headers) for answer in answers)
        assert KEY not in json.dumps(session.traffic.document())


class TestCounting:
    def test_an_answer_whose_agent_went_away_is_read_to_its_end(self, shared):
        left = threading.Event()
        shared.script({"text": "x", "until": left})
        with door(shared.gateway) as session:
            with streaming(session) as answer:
                next(answer.iter_raw())
            left.set()
        assert (session.traffic.tokens, session.traffic.estimated) == (USED, 0)

    def test_an_unknown_use_counts_with_what_was_held_and_says_so(self, shared):
        shared.script({"text": "x", "silent": True})
        with door(shared.gateway) as session:
            ask(session, max_tokens=77)
        assert (session.traffic.tokens.output, session.traffic.estimated) == (77, 1)
        assert session.traffic.tokens.input > 0

    def test_a_stream_without_its_end_is_an_outage_and_the_agent_sees_that_it_is_cut(self, shared):
        shared.script({"text": "x", "cut": True})
        with door(shared.gateway) as session, pytest.raises(httpx.RemoteProtocolError):
            ask(session, stream=True)
        assert (session.traffic.estimated, session.traffic.outage[0]) == (1, "overload")

    def test_uses_of_one_cell_share_its_caps_and_have_their_own_counts(self):
        with model_server() as server, opened(server, cell_caps=Caps(requests=3)) as gateway:
            counts = []
            for _ in range(2):
                with door(gateway, cell="one") as session:
                    statuses = [ask(session).status_code for _ in range(2)]
                counts.append((len(session.traffic.exchanges), session.traffic.cap is not None))
            assert statuses == [200, 400]
            assert counts == [(2, False), (1, True)]
            with door(gateway, cell="two") as session:
                assert ask(session).status_code == 200


class TestCaps:
    def test_a_cell_with_a_cap_of_n_requests_sends_n_however_many_it_asks_at_once(self):
        with (
            model_server({"text": "x", "wait": 0.05}) as server,
            opened(server, cell_caps=Caps(requests=5)) as gateway,
            door(gateway) as session,
            ThreadPoolExecutor(20) as pool,
        ):
            answers = list(pool.map(lambda _: ask(session), range(20)))
        assert len(server.requests) == 5
        refused = [answer for answer in answers if answer.status_code != 200]
        assert len(refused) == 15
        assert "cap on requests of this cell (5)" in refused[0].json()["error"]["message"]
        assert "requests of this cell (5)" in session.traffic.cap

    def test_a_try_that_is_sent_again_is_a_request_too(self):
        steps = ({"status": 500}, {"status": 500}, {"text": "x"})
        with (
            model_server(*steps) as server,
            opened(server, cell_caps=Caps(requests=2)) as gateway,
            door(gateway) as session,
        ):
            assert ask(session).status_code == 400
        assert len(server.requests) == 2
        assert session.traffic.cap

    def test_cells_of_a_run_never_spend_more_than_its_cap_together(self):
        price = ModelPrice((Decimal(1), Decimal(1), Decimal(1), Decimal(1000)))
        usage = {"input": 0, "cache_read": 0, "cache_write": 0, "output": 90}
        caps = Caps(cost_usd=Decimal("0.5"))
        step = {"text": "x", "wait": 0.02, "usage": usage}
        with (
            model_server(step) as server,
            opened(server, run_caps=caps, price=price) as gateway,
            door(gateway, cell="a") as one,
            door(gateway, cell="b") as two,
            ThreadPoolExecutor(8) as pool,
        ):
            answers = list(pool.map(lambda n: ask((one, two)[n % 2], max_tokens=100), range(16)))
        spent = len(server.requests) * Decimal("0.09")
        assert Decimal("0.35") < spent <= Decimal("0.5")
        assert {answer.status_code for answer in answers} == {200, 400}

    def test_a_conversation_that_goes_on_has_room_under_a_cap_that_all_its_bytes_would_not_fit(self):
        said = [{"role": "user", "content": "x" * 9_000} for _ in range(5)]
        with (
            model_server() as server,
            opened(server, cell_caps=Caps(tokens=30_000)) as gateway,
            door(gateway) as session,
        ):
            statuses = [ask(session, messages=said[:number]).status_code for number in (1, 2, 3, 4, 5)]
            assert statuses == [200] * 5
            # Answers that took nothing say nothing of a conversation.
            server.steps = ({"status": 400},)
            begun = [{"role": "user", "content": "y" * 9_000}, *said]
            assert ask(session, messages=begun[:1]).status_code == 400
            assert "cap on tokens" in ask(session, messages=begun).json()["error"]["message"]

    def test_an_answer_is_bounded_where_a_cap_needs_it_and_left_alone_elsewhere(self):
        with model_server() as server:
            for caps in (Caps(), Caps(tokens=10**6)):
                with opened(server, cell_caps=caps) as gateway, door(gateway, "responses") as session:
                    ask(session, "responses")
        bodies = [request["body"] for request in server.requests]
        assert ["max_output_tokens" in body for body in bodies] == [False, True]


class TestCare:
    def test_a_failure_that_passes_is_never_seen_by_the_agent(self, shared):
        steps = (
            {"status": 429, "headers": {"Retry-After": "0"}},
            {"status": 529},
            {"drop": True},
            {"text": "x"},
        )
        shared.script(*steps)
        with door(shared.gateway) as session:
            assert ask(session).status_code == 200
        assert [each.failure for each in session.traffic.exchanges] == ["rate", "overload", "overload", None]
        assert session.traffic.outage is None

    @pytest.mark.parametrize(
        ("step", "sent", "status", "failure"),
        [
            ({"status": 401}, 1, 401, "auth"),
            ({"status": 429}, 4, 429, "rate"),
            ({"status": 500}, 4, 500, "overload"),
            ({"drop": True}, 4, 502, "overload"),
            ({"status": 429, "headers": {"Retry-After": "3600"}}, 1, 429, "rate"),
        ],
        ids=["key", "rate", "server", "connection", "an hour"],
    )
    def test_a_failure_that_stays_has_its_class_and_ends_the_tries(self, shared, step, sent, status, failure):
        shared.script(step)
        with door(shared.gateway) as session:
            answer = ask(session)
        assert (len(shared.server.requests), answer.status_code) == (sent, status)
        assert answer.headers["x-should-retry"] == "false"
        assert session.traffic.outage[0] == failure

    def test_a_request_that_the_model_refuses_is_the_agents_to_understand_and_no_outage(self, shared):
        shared.script({"status": 400})
        with door(shared.gateway) as session:
            assert ask(session).status_code == 400
        assert len(shared.server.requests) == 1
        assert session.traffic.outage is None

    def test_an_upstream_that_is_not_there_is_an_outage_that_used_nothing(self):
        server = ModelServer((), url="http://127.0.0.1:1/v1")
        with opened(server) as gateway, door(gateway) as session:
            assert ask(session).status_code == 502
        assert (session.traffic.outage[0], session.traffic.tokens) == ("overload", TokenCounts(0, 0, 0, 0))

    def test_all_cells_together_keep_to_an_upstreams_concurrency(self):
        with (
            model_server({"text": "x", "wait": 0.02}) as server,
            opened(server, concurrency=3) as gateway,
            door(gateway, cell="a") as one,
            door(gateway, cell="b") as two,
            ThreadPoolExecutor(12) as pool,
        ):
            list(pool.map(lambda n: ask((one, two)[n % 2]), range(24)))
        assert len(server.requests) == 24
        assert server.most_at_once <= 3


class TestEnding:
    def test_a_killed_gateway_ends_its_cells_and_what_it_recorded_still_counts(self):
        with model_server({"text": "x"}, {"hang": True}) as server, opened(server) as gateway:
            with door(gateway) as session, ThreadPoolExecutor(1) as pool:
                ask(session)
                hanging = pool.submit(ask, session, max_tokens=33)
                assert _until(lambda: len(server.requests) == 2)
                os.kill(gateway.pid, signal.SIGKILL)
                assert gateway.ended.wait(30)
                assert session.cancel.is_set()
                assert isinstance(hanging.exception(30), httpx.HTTPError)
            assert not session.whole
            assert [each.estimated for each in session.traffic.exchanges] == [False, True]
            assert session.traffic.exchanges[1].tokens.output == 33
            with pytest.raises(SandboxError, match="gateway"), door(gateway):
                pass

    def test_a_cell_that_ends_in_the_middle_of_a_request_keeps_what_it_used(self, shared):
        shared.script({"text": "x"}, {"text": "y", "wait": 0.3})
        with door(shared.gateway) as session:
            ask(session)
            where = urlsplit(session.url)
            body = json.dumps({"model": "m", "max_tokens": 9}).encode()
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nx-api-key: {session.key}\r\n"
            with socket.create_connection((where.hostname, where.port), 30) as dying:
                dying.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                assert _until(lambda: len(shared.server.requests) == 2)
        assert (session.traffic.tokens, session.traffic.estimated) == (TokenCounts(2000, 400, 60, 80), 0)


def _until(holds: Any) -> bool:
    pause = threading.Event()
    for _ in range(3000):
        if holds():
            return True
        pause.wait(0.01)
    return False
