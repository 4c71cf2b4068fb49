"""Endpoints and keys are checked before the first call, and refusals repeat no secret."""

import pytest

from bench_pipeline.errors import RefusedError, UsageError
from bench_pipeline.providers.endpoint import read_endpoint, read_key


@pytest.mark.parametrize(
    ("url", "host", "port", "path"),
    [
        ("https://api.example.com/v1/chat/completions", "api.example.com", 443, "/v1/chat/completions"),
        ("https://api.example.com:8443", "api.example.com", 8443, "/"),
        ("http://localhost/x", "localhost", 80, "/x"),
        ("http://127.0.0.1:11434/v1/chat/completions", "127.0.0.1", 11434, "/v1/chat/completions"),
        ("http://[::1]:8080/x", "::1", 8080, "/x"),
        ("HTTP://LOCALHOST/x", "localhost", 80, "/x"),
    ],
)
def test_https_anywhere_and_http_on_this_machine_are_endpoints(
    url: str, host: str, port: int, path: str
) -> None:
    endpoint = read_endpoint(url)
    assert (endpoint.host, endpoint.port, endpoint.path, endpoint.url) == (host, port, path, url)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://user:hunter22@example.com/x", "names a user"),
        ("https://hunter22@example.com/x", "names a user"),
        ("https://@example.com/x", "names a user"),
        ("https://example.com/x?key=1", "has a query"),
        ("https://example.com/x?", "has a query"),
        ("https://example.com/x#part", "has a fragment"),
        ("https://example.com/x#", "has a fragment"),
        ("http://example.com/x", "http is for localhost"),
        ("http://127.0.0.2/x", "http is for localhost"),
        ("http://localhost.example.com/x", "http is for localhost"),
        ("http://0.0.0.0/x", "http is for localhost"),
        ("ftp://example.com/x", "neither https:// nor http://"),
        ("example.com/x", "neither https:// nor http://"),
        ("https:///x", "no host"),
        ("https://", "no host"),
        ("", "neither https:// nor http://"),
        ("https://example.com:99999/x", "not a URL"),
        ("https://[::1/x", "not a URL"),
        ("https://example.com/a b", "spaces"),
        ("https://example.com/\r\nx", "spaces"),
        ("https://example.com\\@evil/x", "backslashes"),
        ("https://exämple.com/x", "beyond ASCII"),
    ],
)
def test_everything_else_is_refused(url: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        read_endpoint(url)
    assert said in str(error.value)
    assert "hunter22" not in str(error.value)


@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_key_that_is_named_has_to_be_there(value: str | None) -> None:
    with pytest.raises(RefusedError, match="reading the key from MY_KEY"):
        read_key("MY_KEY", {} if value is None else {"MY_KEY": value})
    assert read_key(None, {}) is None


@pytest.mark.parametrize("value", ["hunter22 two", "hunter22\r\nX-Other: 1", "hunter22é", "hunter22\x00"])
def test_what_cannot_be_a_header_is_no_key_and_is_not_repeated(value: str) -> None:
    with pytest.raises(RefusedError) as error:
        read_key("MY_KEY", {"MY_KEY": value})
    assert "hunter22" not in str(error.value)


def test_a_key_shows_itself_nowhere_but_in_the_header() -> None:
    key = read_key("MY_KEY", {"MY_KEY": " sk-hunter22\n"})
    assert key is not None
    assert key.header() == "Bearer sk-hunter22"
    assert "hunter22" not in repr(key) + str(key)
    assert key.removed("it is sk-hunter22!") == "it is [MY_KEY]!"
