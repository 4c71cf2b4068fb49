"""One call is one request; what comes back is an answer or one named failure, whatever the server does."""

import gzip
import json
import time
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_pipeline.providers.chat import (
    MAX_BODY,
    ChatAnswer,
    ChatClient,
    ChatFailure,
    read_answer,
    retry_after,
)
from bench_pipeline.providers.endpoint import Key, read_endpoint
from bench_pipeline_tests.providers.chat_server import Response, answer, document, dripping, serving

SECRET = "sk-very-secret-0123456789"


def ask(url: str, *, seconds: float = 5.0, key: Key | None = None, times: int = 1) -> ChatAnswer:
    client = ChatClient(read_endpoint(url), "m", key, temperature=0, max_tokens=128)
    with client:
        replies = [client.ask("Why?", seconds) for _ in range(times)]
    return replies[-1]


def failure(handler: Callable[[dict[str, Any]], Response | None], **options: Any) -> ChatFailure:
    """The failure of one call, which asked the server exactly once."""
    with serving(handler) as server:
        with pytest.raises(ChatFailure) as error:
            ask(server.url, **options)
        assert len(server.asked) == 1
    return error.value


def test_one_post_holds_the_model_one_user_message_and_the_settings() -> None:
    with serving(lambda _: answer()) as server:
        assert ask(server.url) == ChatAnswer("ready", 12, 3)
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.document == {
        "model": "m",
        "messages": [{"role": "user", "content": "Why?"}],
        "temperature": 0,
        "max_tokens": 128,
    }
    assert "authorization" not in {name.lower() for name in asked.headers}
    assert asked.headers["host"] == server.url.split("/")[2]


def test_a_key_is_sent_as_bearer_and_taken_out_of_answers() -> None:
    with serving(lambda _: answer(f"your key is {SECRET}")) as server:
        reply = ask(server.url, key=Key("MY_KEY", SECRET))
    assert server.asked[0].headers["authorization"] == f"Bearer {SECRET}"
    assert reply.content == "your key is [MY_KEY]"


def test_nothing_of_the_environment_is_sent_or_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / ".netrc").write_text("default login me password secret\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with serving(lambda _: answer()) as server:
        assert ask(server.url).content == "ready"
    assert "authorization" not in {name.lower() for name in server.asked[0].headers}


def test_a_connection_is_kept_for_the_next_call() -> None:
    with serving(lambda _: answer()) as server:
        ask(server.url, times=3)
    assert len({asked.connection for asked in server.asked}) == 1


def test_a_connection_that_the_server_closed_meanwhile_is_made_anew() -> None:
    def closing(_: object) -> Response:
        body = json.dumps(document()).encode()
        return Response(raw=b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    with serving(closing) as server:
        client = ChatClient(read_endpoint(server.url), "m", None, temperature=0, max_tokens=1)
        with client:
            for _ in range(3):
                assert client.ask("Why?", 5).content == "ready"
                time.sleep(0.05)
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, "rate_limited"),
        (401, "unauthorised"),
        (403, "unauthorised"),
        (500, "server_error"),
        (503, "server_error"),
        (400, "status"),
        (404, "status"),
        (418, "status"),
        (300, "redirect"),
        (304, "redirect"),
    ],
)
def test_each_class_of_status_has_its_name(status: int, kind: str) -> None:
    error = failure(
        lambda _: Response(b"" if status == 304 else b'{"error": "' + SECRET.encode() + b'"}', status)
    )
    assert (error.kind, str(error)) == (kind, f"{kind}: status {status}")


def test_a_redirect_is_not_followed() -> None:
    with serving(lambda _: answer()) as elsewhere:
        error = failure(lambda _: Response(b"", 307, {"Location": elsewhere.url}), key=Key("MY_KEY", SECRET))
        assert error.kind == "redirect"
    assert elsewhere.asked == []


@pytest.mark.parametrize("seconds", ["7", "7 "])
def test_what_a_server_asks_to_wait_is_kept(seconds: str) -> None:
    error = failure(lambda _: Response(b"", 429, {"Retry-After": seconds}))
    assert error.retry_after_s == 7


def test_a_date_to_wait_for_is_seconds_from_now_and_never_below_zero() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert retry_after("Thu, 01 Jan 2026 00:00:30 GMT", now) == 30
    assert retry_after("Thu, 01 Jan 2015 00:00:00 GMT", now) == 0
    assert retry_after("Thu, 01 Jan 2026 00:00:30", now) == 30


@given(st.text())
def test_any_other_wish_is_none_or_seconds(header: str) -> None:
    seconds = retry_after(header)
    assert seconds is None or seconds >= 0


def test_a_server_that_never_answers_times_out() -> None:
    with serving(lambda _: None) as server:
        server.handler = server.hang
        started = time.monotonic()
        with pytest.raises(ChatFailure) as error:
            ask(server.url, seconds=0.2)
    assert error.value.kind == "timeout"
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "chunks",
    [
        [b"HTTP/1.1 200 OK\r\n", *[b"X: 1\r\n"] * 1000],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", *[b" "] * 1000],
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", *[b"1\r\n \r\n"] * 1000],
        [b"H", b"T", *[b"T"] * 1000],
    ],
    ids=["headers", "body", "chunks", "first line"],
)
def test_a_server_that_drips_times_out_as_a_whole(chunks: list[bytes]) -> None:
    with dripping(chunks, 0.02) as url:
        started = time.monotonic()
        with pytest.raises(ChatFailure) as error:
            ask(url, seconds=0.3)
    assert error.value.kind == "timeout"
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}",
        b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
    ],
)
def test_what_is_cut_off_or_is_not_http_is_a_failed_connection(raw: bytes) -> None:
    assert failure(lambda _: Response(raw=raw)).kind == "connection"


def test_a_server_that_hangs_up_or_is_not_there_is_a_failed_connection() -> None:
    assert failure(lambda _: None).kind == "connection"
    with serving(lambda _: answer()) as server:
        url = server.url
    with pytest.raises(ChatFailure) as error:
        ask(url)
    assert error.value.kind == "connection"


def padded(size: int) -> bytes:
    """An answer of exactly ``size`` bytes."""
    return json.dumps(document()).encode().ljust(size)


def packed(data: bytes, encoding: str) -> Response:
    forms = {"gzip": gzip.compress, "deflate": zlib.compress, "x-gzip": gzip.compress}
    return Response(forms[encoding](data), headers={"Content-Encoding": encoding})


def test_a_body_may_have_one_mebibyte_and_no_more() -> None:
    with serving(lambda _: Response(padded(MAX_BODY))) as server:
        assert ask(server.url).content == "ready"
    assert failure(lambda _: Response(padded(MAX_BODY + 1))).kind == "too_large"


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "deflate"])
def test_a_compressed_body_is_measured_after_decompression(encoding: str) -> None:
    whole, longer, bomb = (packed(padded(size), encoding) for size in (MAX_BODY, MAX_BODY + 1, 1 << 25))
    with serving(lambda _: whole) as server:
        assert ask(server.url).content == "ready"
    assert failure(lambda _: longer).kind == "too_large"
    assert failure(lambda _: bomb).kind == "too_large"


def test_a_body_without_an_end_is_too_large() -> None:
    head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
    assert failure(lambda _: Response(raw=head + b" " * (8 << 20))).kind == "too_large"


@pytest.mark.parametrize(
    "response",
    [
        Response(b"not gzip", headers={"Content-Encoding": "gzip"}),
        Response(gzip.compress(padded(500))[:-9], headers={"Content-Encoding": "gzip"}),
        Response(gzip.compress(padded(500)) + b"more", headers={"Content-Encoding": "gzip"}),
        Response(gzip.compress(gzip.compress(padded(500))), headers={"Content-Encoding": "gzip, gzip"}),
        Response(padded(500), headers={"Content-Encoding": "br"}),
    ],
)
def test_what_is_not_compressed_as_its_header_says_is_a_failure_of_encoding(response: Response) -> None:
    assert failure(lambda _: response).kind == "encoding"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "not_json"),
        (b"<html>", "not_json"),
        (b'{"choices":', "not_json"),
        (padded(200) + b"{}", "not_json"),
        (b"\xff\xfe", "not_json"),
        (b'{"choices":[{"message":{"content":"\\ud800"}}]}', "not_json"),
        (b"[" * 100_000, "not_json"),
        (b"null", "shape"),
        (b"[]", "shape"),
        (b"{}", "shape"),
        (b'{"choices":null}', "shape"),
        (b'{"choices":[]}', "shape"),
        (b'{"choices":[{"message":{"content":"a"}},{"message":{"content":"b"}}]}', "shape"),
        (b'{"choices":[null]}', "shape"),
        (b'{"choices":[{}]}', "shape"),
        (b'{"choices":[{"message":"a"}]}', "shape"),
        (b'{"choices":[{"message":{}}]}', "shape"),
        (b'{"choices":[{"message":{"content":["a"]}}]}', "shape"),
        (b'{"choices":[{"message":{"content":1}}]}', "shape"),
        (b'{"choices":[{"message":{"content":null}}]}', "no_content"),
    ],
)
def test_a_response_of_another_shape_is_a_named_failure(body: bytes, kind: str) -> None:
    assert failure(lambda _: Response(body)).kind == kind


@pytest.mark.parametrize(
    "usage", [None, [], {"prompt_tokens": -1}, {"prompt_tokens": "12"}, {"prompt_tokens": True}]
)
def test_tokens_that_are_no_count_are_unknown(usage: object) -> None:
    assert read_answer(json.dumps(document(usage=usage)).encode()) == ChatAnswer("ready", None, None)


def test_an_empty_answer_is_an_answer() -> None:
    assert read_answer(json.dumps(document("")).encode()).content == ""


@given(st.binary(max_size=300))
def test_no_bytes_raise_anything_but_a_failure(body: bytes) -> None:
    with pytest.raises(ChatFailure):
        read_answer(body)


def test_a_status_of_success_needs_no_other_header_to_be_read() -> None:
    raw = b"HTTP/1.0 201 Created\r\n\r\n" + json.dumps(document()).encode()
    with serving(lambda _: Response(raw=raw)) as server:
        assert ask(server.url).content == "ready"
