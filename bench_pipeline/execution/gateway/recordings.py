"""What an agent asked its models and what it was answered: written as it happens, and kept compressed.

What belongs here: the two forms of a recording, and reading both. What does not: what is written when (``door``), and
answering from one (``replaying``). While a tool runs, its recording is a file that grows by one exchange at a time,
each with a single write, so that a killed gateway leaves every exchange that was over. It is kept as one artifact,
without credentials: a request as what it adds to an earlier one, since each repeats the conversation, all of it
compressed with Zstandard.
"""

import hashlib
import io
import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from bench_pipeline.errors import StoreError
from bench_pipeline.execution.usage.reading import json_bytes

MEDIA: Final = "application/zstd"
_SCHEMA: Final = 1
_LEVEL: Final = 9
# An agent that asks without end fills neither the disk nor, when its recording is kept, the memory: what comes after
# this is not recorded, and a replay diverges there.
_MOST_ON_DISK: Final = 2 << 30
_MOST_KEPT: Final = 256 << 20
# Conversations that go on side by side; a request is compared with the last one of each.
_REMEMBERED: Final = 8
_BLOCK: Final = 1 << 16


@dataclass(frozen=True)
class Exchange:
    """One request as the agent sent it, and the answer as the agent was given it.

    ``number`` counts requests in the order in which they came, from 1. ``whole`` is False for an answer that broke off.
    ``use`` are its tokens by class, None where nobody knows; ``failure`` is the class of what went wrong and ``told``
    its words.
    """

    number: int
    path: str
    model: str
    upstream: str
    status: int
    media: str
    request: bytes = field(repr=False)
    answer: bytes = field(repr=False)
    whole: bool = True
    use: Mapping[str, int | None] | None = None
    failure: str | None = None
    told: str | None = None
    seconds: float | None = None

    def head(self) -> dict[str, Any]:
        """All of it but the two bodies."""
        return {name: value for name, value in vars(self).items() if name not in _BODIES}

    def summary(self) -> dict[str, Any]:
        """All of it, with the size and the SHA-256 of each body in its place."""
        bodies = {name: getattr(self, name) for name in _BODIES}
        return {
            **self.head(),
            **{f"{name}_bytes": len(body) for name, body in bodies.items()},
            **{f"{name}_sha256": hashlib.sha256(body).hexdigest() for name, body in bodies.items()},
        }


_BODIES: Final = ("request", "answer")


class RecordingFile:
    """A recording that grows, in the gateway; nothing of it stays in memory.

    What cannot be written ends the recording and not the cell, whose answers are paid for.
    """

    def __init__(self, path: Path, *, most: int = _MOST_ON_DISK) -> None:
        self._room = most
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def append(self, exchange: Exchange) -> None:
        """Write one exchange."""
        parts = _framed(exchange.head(), exchange.request, exchange.answer)
        size = sum(map(len, parts))
        self._room -= size
        if self._room < 0:
            return
        try:
            whole = os.writev(self._file, parts) == size
        except OSError:
            whole = False
        if not whole:
            self._room = -1

    def close(self) -> None:
        """No more exchanges."""
        os.close(self._file)


def read_file(path: Path) -> Iterator[Exchange]:
    """The exchanges of a recording that grew, in the order in which they ended; one that a kill cut is left out."""
    with path.open("rb") as file:
        for head, request, answer in _frames(file):
            yield Exchange(**head, request=request, answer=answer)


def pack(exchanges: Iterable[Exchange], about: Mapping[str, Any], *, most: int = _MOST_KEPT) -> bytes:
    """The artifact of a recording; ``about`` is what is to be known of where it was made."""
    import pyarrow as pa

    parts = [json.dumps({"recording": _SCHEMA, **about}).encode() + b"\n"]
    earlier: deque[Exchange] = deque(maxlen=_REMEMBERED)
    for each in exchanges:
        likest = max(earlier, key=lambda other: sum(_shared(other.request, each.request)), default=None)
        head, added = each.head(), each.request
        if likest is not None:
            start, end = _shared(likest.request, added)
            head |= {"like": [likest.number, start, end]}
            added = added[start : len(added) - end]
        parts.append(b"".join(_framed(head, added, each.answer)))
        most -= len(parts[-1])
        if most < 0:
            del parts[-1]
            break
        earlier.append(each)
    return bytes(pa.Codec("zstd", compression_level=_LEVEL).compress(b"".join(parts), asbytes=True))


def unpack(packed: bytes) -> tuple[dict[str, Any], Iterator[Exchange]]:
    """What ``pack`` was given. Raises StoreError, while it is read too, for what no ``pack`` has made."""
    import pyarrow as pa

    with _readable():
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
            file = io.BytesIO(stream.read())
        about = json.loads(file.readline())
        version = about.pop("recording")
    if version != _SCHEMA:
        raise StoreError("reading a recording", f"it is of version {version}, not {_SCHEMA}", "update bench")
    return about, _unpacked(file)


def _unpacked(file: IO[bytes]) -> Iterator[Exchange]:
    earlier: dict[int | None, bytes] = {None: b""}
    with _readable():
        for head, added, answer in _frames(file):
            likest, start, end = head.pop("like", (None, 0, 0))
            base = earlier[likest]
            request = base[:start] + added + base[len(base) - end :]
            each = Exchange(**head, request=request, answer=answer)
            earlier[each.number] = each.request
            if len(earlier) > _REMEMBERED + 1:
                del earlier[next(number for number in earlier if number is not None)]
            yield each


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        wrong = f"it is damaged ({type(error).__name__})"
        raise StoreError("reading a recording", wrong, "record the cell again: --fresh") from error


def _framed(head: Mapping[str, Any], request: bytes, answer: bytes) -> tuple[bytes, ...]:
    return json_bytes({**head, "sizes": [len(request), len(answer)]}), b"\n", request, answer, b"\n"


def _frames(file: IO[bytes]) -> Iterator[tuple[dict[str, Any], bytes, bytes]]:
    """Each whole frame of a file; what follows the last one was cut."""
    while (line := file.readline()).endswith(b"\n"):
        head = json.loads(line)
        request, answer = head.pop("sizes")
        body = file.read(request + answer + 1)
        if len(body) <= request + answer:
            return
        yield head, body[:request], body[request:-1]


def _shared(one: bytes, other: bytes) -> tuple[int, int]:
    """How many bytes two requests share at their start, and then at their end."""
    most = min(len(one), len(other))
    start = _alike(most, lambda at, size: one[at : at + size] == other[at : at + size])
    sizes = len(one), len(other)

    def ends_alike(at: int, size: int) -> bool:
        left, right = (whole - at for whole in sizes)
        return one[left - size : left] == other[right - size : right]

    return start, _alike(most - start, ends_alike)


def _alike(most: int, same: Callable[[int, int], bool]) -> int:
    """How far two texts are the same, up to ``most``; ``same`` compares ``size`` bytes from a place."""
    at, size = 0, _BLOCK
    while size:
        size = min(size, most - at)
        if size and same(at, size):
            at += size
        else:
            size //= 2
    return at
