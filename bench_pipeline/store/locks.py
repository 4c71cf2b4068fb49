"""Who may work on a cell or a table: one process at a time.

What belongs here: exclusive locks between processes and machines. What does not: what is done under them.

In a local store the operating system holds a lock on a file, so a killed process loses it at once. On an
object store a lock is a lease: a numbered file put in place only if absent, whose owner rewrites it as a
heartbeat. A lease that has not changed for its whole term, by the waiter's own clock, is taken over by
putting the next number in place. A number is never used twice, so two waiters cannot both take over.
"""

import fcntl
import json
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench_pipeline.errors import StoreError
from bench_pipeline.store.files import Files

# A beat may be lost to a slow request or two before another machine takes the work over.
LEASE_TERM_S: Final = 60.0
_BEATS_PER_TERM: Final = 4

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.=-]{0,200}")


class LockHeldError(StoreError):
    """Another process holds the lock, and the caller did not want to wait any longer."""


class Locks:
    """The locks of one store."""

    def __init__(self, files: Files, *, lease_term_s: float = LEASE_TERM_S) -> None:
        self._files = files
        self._term = lease_term_s

    @contextmanager
    def hold(self, name: str, *, wait_s: float | None = None) -> Iterator[None]:
        """Hold the lock ``name`` (letters, digits, ``_.=-``) for the length of a with block.

        ``wait_s`` is how long to wait for another holder: None for ever, 0 not at all; then LockHeldError. A
        lock is not reentrant. Losing a lease to a takeover raises StoreError at the end of the block.
        """
        if not all(_NAME.fullmatch(part) for part in name.split("/")):
            raise ValueError(f"{name!r} is not the name of a lock")
        deadline = None if wait_s is None else time.monotonic() + wait_s
        place = self._files.local(f"locks/{name}.lock")
        if place is not None:
            with _local_lock(place, name, deadline):
                yield
        else:
            with Lease(self._files, name, self._term).held(deadline):
                yield

    def is_free(self, path: str) -> bool:
        """Whether nobody holds the lock whose file in the store is ``path``."""
        place = self._files.local(path)
        try:
            if place is None:
                return _released(self._files.read(path))
            handle = os.open(place, os.O_RDWR | os.O_NOFOLLOW)
        except (FileNotFoundError, PermissionError):
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(handle)
        return True


@contextmanager
def _local_lock(place: Path, name: str, deadline: float | None) -> Iterator[None]:
    pause = _Pause(name, deadline)
    while (handle := _lock_now(place, name)) is None:
        pause.take()
    try:
        yield
    finally:
        # Removed while it is held, so a waiter on this file sees that its name is gone and starts over.
        place.unlink(missing_ok=True)
        os.close(handle)


def _lock_now(place: Path, name: str) -> int | None:
    """A handle that holds the lock until it is closed; None when another has it."""
    handle = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(handle), place.stat()):
            return handle
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError as error:
        if handle is not None:
            os.close(handle)
        raise StoreError(
            f"locking {name}", str(error), "check the store's folder and its permissions"
        ) from error
    if handle is not None:
        os.close(handle)
    return None


class _Pause:
    """Waiting for another holder, a little longer each time, until the deadline."""

    def __init__(self, name: str, deadline: float | None, longest_s: float = 0.1) -> None:
        self._name = name
        self._deadline = deadline
        self._longest = longest_s
        self._next = 0.005

    def take(self) -> None:
        left = float("inf") if self._deadline is None else self._deadline - time.monotonic()
        if left <= 0:
            raise LockHeldError(f"locking {self._name}", "another process holds it", "wait for it to end")
        time.sleep(min(self._next, left))
        self._next = min(self._next * 1.5, self._longest)


class Lease:
    """One lock on an object store."""

    def __init__(self, files: Files, name: str, term_s: float) -> None:
        self._files = files
        self._name = name
        self._folder = f"locks/{name}"
        self._term = term_s
        self._owner = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(8)}"
        self._number = 0
        self._beats = 0
        self._lost = False
        self._stop = threading.Event()

    @contextmanager
    def held(self, deadline: float | None) -> Iterator[None]:
        """Wait for the lease, keep it alive by a thread, give it back."""
        self._acquire(deadline)
        keeper = threading.Thread(target=self._keep, name=f"lease-{self._name}", daemon=True)
        keeper.start()
        try:
            yield
        finally:
            self._stop.set()
            keeper.join()
            if not self._lost:
                self._write(released=True)
        if self._lost:
            raise StoreError(
                f"holding the lease {self._name}",
                "its heartbeat stopped for longer than its term and another process took it over",
                "run again; what was stored is kept and counted once",
            )

    def _acquire(self, deadline: float | None) -> None:
        pause = _Pause(self._name, deadline, longest_s=max(0.01, min(2.0, self._term / _BEATS_PER_TERM)))
        watched: tuple[int, bytes | None] | None = None
        since = time.monotonic()
        while True:
            number, content = self._newest()
            now = time.monotonic()
            if watched != (number, content):
                watched, since = (number, content), now
            if content is None or _released(content) or now - since >= self._term:
                if self._take(number + 1):
                    return
                watched = None
            else:
                pause.take()

    def _take(self, number: int) -> bool:
        self._number = number
        if not self._files.create(self._path(number), self._content(released=False)):
            return False
        numbers = self._numbers()
        if numbers[-1] != number:
            # A late listing: this number had been used and cleared away, and a later one counts.
            self._files.delete(self._path(number))
            return False
        for older in numbers[:-1]:
            self._files.delete(self._path(older))
        return True

    def _newest(self) -> tuple[int, bytes | None]:
        """The number and content of the lease that counts; 0 and None where there never was one."""
        numbers = self._numbers()
        if not numbers:
            return 0, None
        try:
            return numbers[-1], self._files.read(self._path(numbers[-1]))
        except FileNotFoundError:
            return numbers[-1], b""

    def _numbers(self) -> list[int]:
        names = [info.path.rpartition("/")[2] for info in self._files.list(self._folder)]
        return sorted(int(name.partition(".")[0]) for name in names if name.endswith(".lease"))

    def _path(self, number: int) -> str:
        return f"{self._folder}/{number:012d}.lease"

    def _content(self, *, released: bool) -> bytes:
        self._beats += 1
        return json.dumps(
            {"owner": self._owner, "beat": self._beats, "at": time.time(), "released": released}
        ).encode()

    def _write(self, *, released: bool) -> None:
        self._files.write(self._path(self._number), self._content(released=released))

    def _keep(self) -> None:
        alive = time.monotonic()
        while not self._stop.wait(self._term / _BEATS_PER_TERM):
            try:
                if self._numbers()[-1:] != [self._number]:
                    self._lost = True
                    return
                self._write(released=False)
                alive = time.monotonic()
            except StoreError:
                # The next beat may get through; a waiter counts a whole term before it takes over.
                if time.monotonic() - alive > self._term:
                    self._lost = True
                    return


def _released(content: bytes) -> bool:
    try:
        document = json.loads(content)
    except ValueError:
        return False
    return isinstance(document, dict) and document.get("released") is True
