"""A lock between threads and programs that share a folder."""

import os
import time

LOOK_AGAIN = 0.01


class Busy(Exception):
    """Somebody else kept the lock for too long."""


class FileLock:
    """A lock on a path; the file holds the id of the program that has the lock."""

    def __init__(self, path, patience=5.0, pause=time.sleep):
        self.path = str(path)
        self.patience = patience
        self.pause = pause

    def acquire(self):
        """Wait for the lock, at most ``patience`` seconds; Busy when that was not enough."""
        deadline = time.monotonic() + self.patience
        while os.path.exists(self.path):
            if not self._owner_is_alive():
                self.release()
                break
            if time.monotonic() >= deadline:
                raise Busy(f"{self.path} is locked")
            self.pause(LOOK_AGAIN)
        with open(self.path, "w", encoding="ascii") as file:
            file.write(str(os.getpid()))

    def release(self):
        """Give the lock back."""
        os.unlink(self.path)

    def _owner_is_alive(self):
        with open(self.path, encoding="ascii") as file:
            text = file.read()
        if not text.isdigit():
            return False
        return os.path.exists(f"/proc/{text}")

    def __enter__(self):
        self.acquire()
        return self

    def __exit__(self, *details):
        self.release()
