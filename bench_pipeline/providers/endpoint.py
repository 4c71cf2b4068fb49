"""Where a model is asked, and the key that opens it: checked before the first call."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from bench_pipeline.errors import RefusedError, UsageError

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_ODD = re.compile(r"[\x00-\x20\x7f-\U0010ffff\\]")
# What may stand in a header after "Bearer": printable ASCII without spaces.
_KEY = re.compile(r"[\x21-\x7e]+")
# A shorter key is one that a local server ignores, such as "none"; taking it out of answers would damage them.
_SHORTEST_SECRET = 6


@dataclass(frozen=True)
class Endpoint:
    """A chat-completions URL, in the parts that a connection needs."""

    url: str
    secure: bool
    host: str
    port: int
    path: str


def read_endpoint(url: str) -> Endpoint:
    """Check a URL.

    Raises:
        UsageError: names what is wrong; a URL with a user is not repeated, for it may hold a password.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise UsageError("reading the endpoint", "it is not a URL", "give it as https://host/path") from None
    wrong = next(_wrong(url, parts), None)
    if wrong is not None:
        shown = "" if "@" in url or _ODD.search(url) else f" {url}"
        raise UsageError(f"reading the endpoint{shown}", wrong, "give it as https://host/path")
    assert parts.hostname is not None
    secure = parts.scheme == "https"
    return Endpoint(url, secure, parts.hostname, port or (443 if secure else 80), parts.path or "/")


def _wrong(url: str, parts: SplitResult) -> Iterator[str]:
    if _ODD.search(url):
        yield "it has spaces, control characters, backslashes or letters beyond ASCII"
    if "@" in parts.netloc:
        yield "it names a user; a key goes into a variable that --key-env names"
    if "?" in url:
        yield "it has a query"
    if "#" in url:
        yield "it has a fragment"
    if parts.scheme not in {"https", "http"}:
        yield "it starts with neither https:// nor http://"
    if not parts.hostname:
        yield "it has no host"
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        yield "http is for localhost, 127.0.0.1 and ::1 only; others would read along"


@dataclass(frozen=True)
class Key:
    """The value of a key, which nothing shows: not its representation, not a traceback's variables."""

    variable: str
    _value: str = field(repr=False)

    def header(self) -> str:
        """What is sent."""
        return f"Bearer {self._value}"

    def removed(self, text: str) -> str:
        """``text`` without the key, which a server may have sent back."""
        if len(self._value) < _SHORTEST_SECRET:
            return text
        return text.replace(self._value, f"[{self.variable}]")


def read_key(variable: str | None, environment: Mapping[str, str] = os.environ) -> Key | None:
    """The key in an environment variable; None where none is named.

    Raises:
        RefusedError: the variable is not set, is empty, or holds what cannot be a key.
    """
    if variable is None:
        return None
    value = environment.get(variable, "").strip()
    tried = f"reading the key from {variable}"
    if not value:
        raise RefusedError(
            tried, "the variable is not set or is empty", f"export {variable}, or leave the key out"
        )
    if not _KEY.fullmatch(value):
        raise RefusedError(
            tried, "it holds characters that no key has", "set it to the key alone, on one line"
        )
    return Key(variable, value)
