"""Asking again: what may pass is tried again as told, within bounds; what may not is asked once."""

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from bench_pipeline.providers.chat import ChatClient, ChatFailure
from bench_pipeline.providers.endpoint import read_endpoint
from bench_pipeline.providers.retrying import Patient
from bench_pipeline_tests.providers.chat_server import ChatServer, Response, answer, serving


def _ask(server: ChatServer, **bounds: Any) -> str:
    settings = {"first_wait_s": 0.01, "call_s": 5.0} | bounds
    with ChatClient(read_endpoint(server.url), "m", None, temperature=0.0, max_tokens=9) as client:
        return Patient(client, **settings).ask("?").content


def _failing(times: int, response: Response) -> Any:
    """A handler that fails so often and answers then."""
    left = [times]

    def handle(_: dict[str, Any]) -> Response:
        left[0] -= 1
        return response if left[0] >= 0 else answer("yes")

    return handle


@pytest.mark.parametrize(
    "response",
    [
        Response(status=500),
        Response(status=503, headers={"Retry-After": "0"}),
        Response(status=429),
        Response(status=429, headers={"Retry-After": format_datetime(datetime.now(UTC) - timedelta(days=1))}),
        Response(raw=b"nonsense"),
    ],
)
def test_what_may_pass_is_asked_again(response: Response) -> None:
    with serving(_failing(3, response)) as server:
        assert _ask(server) == "yes"
        assert len(server.asked) == 4


def test_the_tries_are_bounded_and_the_last_failure_is_told() -> None:
    with serving(_failing(99, Response(status=502))) as server:
        with pytest.raises(ChatFailure, match="status 502"):
            _ask(server, tries=3)
        assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (Response(status=401), "unauthorised"),
        (Response(status=404), "status"),
        (Response(status=302, headers={"Location": "http://127.0.0.1/"}), "redirect"),
        (Response(b"{"), "not_json"),
        (answer(None), "no_content"),
    ],
)
def test_what_stays_as_it_is_is_asked_once(response: Response, kind: str) -> None:
    with serving(lambda _: response) as server:
        with pytest.raises(ChatFailure) as raised:
            _ask(server)
        assert raised.value.kind == kind
        assert len(server.asked) == 1


def test_a_wait_that_was_asked_for_is_kept() -> None:
    with serving(_failing(1, Response(status=429, headers={"Retry-After": "1"}))) as server:
        started = time.monotonic()
        assert _ask(server) == "yes"
        assert time.monotonic() - started >= 1


def test_a_server_that_asks_for_too_long_a_wait_is_given_up_at_once() -> None:
    with serving(_failing(1, Response(status=429, headers={"Retry-After": "3600"}))) as server:
        with pytest.raises(ChatFailure, match="status 429"):
            _ask(server)
        assert len(server.asked) == 1


def test_a_server_that_hangs_is_a_timeout_each_time() -> None:
    with serving(lambda _: None) as server:
        server.handler = server.hang
        with pytest.raises(ChatFailure) as raised:
            _ask(server, call_s=0.2, tries=2)
        assert raised.value.kind == "timeout"
        assert len(server.asked) == 2
