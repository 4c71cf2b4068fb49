"""Keeping what a command prints, with a bound on the disk and on our memory.

The head and the tail of an output are kept and the middle is cut: tools say at the end how they ended.
"""

import os
from pathlib import Path
from typing import BinaryIO

_READ_BYTES = 1 << 20


class Capture:
    """One output stream, read from a pipe without blocking and written to ``path``.

    At most ``limit`` bytes are kept. ``cut`` counts the bytes that are not; they are known after ``finish``.
    """

    def __init__(self, pipe: BinaryIO, path: Path, limit: int) -> None:
        self._pipe = pipe
        self._file = path.open("wb")
        self._head_left = limit - limit // 2
        self._tail_limit = limit // 2
        self._tail = bytearray()
        self.cut = 0
        os.set_blocking(pipe.fileno(), False)

    def fileno(self) -> int:
        """The pipe's descriptor."""
        return self._pipe.fileno()

    def take(self) -> bool:
        """Read once what is there; False when the stream has ended."""
        try:
            data = os.read(self._pipe.fileno(), _READ_BYTES)
        except BlockingIOError:
            return True
        self._keep(data)
        return bool(data)

    def drain(self) -> None:
        """Read what the pipe still holds, and stop when it is empty even if someone keeps it open."""
        while True:
            try:
                data = os.read(self._pipe.fileno(), _READ_BYTES)
            except BlockingIOError:
                return
            if not data:
                return
            self._keep(data)

    def finish(self) -> None:
        """Write the tail, with a line that says what was cut before it, and close everything."""
        self._pipe.close()
        self._forget(0)
        with self._file as file:
            if self.cut:
                file.write(b"\n[bench: %d bytes were cut here]\n" % self.cut)
            file.write(self._tail)

    def _keep(self, data: bytes) -> None:
        if self._head_left:
            head, data = data[: self._head_left], data[self._head_left :]
            self._head_left -= len(head)
            self._file.write(head)
        self._tail += data
        self._forget(_READ_BYTES)

    def _forget(self, slack: int) -> None:
        """Shorten the tail to its limit, in steps: one byte at a time would move it each time."""
        excess = len(self._tail) - self._tail_limit
        if excess > slack:
            del self._tail[:excess]
            self.cut += excess
