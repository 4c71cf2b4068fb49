"""Telling a killed command's Dagster run from a live one.

Every run that a command executes has a locked file in the instance's ``commands/`` while its process lives; the
kernel drops the lock when the process is gone, however it went. Runs that the UI or the daemon started have no such
file and are never touched: Dagster watches those itself.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dagster import DagsterInstance

_FOLDER = "commands"
_GONE = "The command that started this run is gone. What it had measured is kept; run it again to go on."


@contextmanager
def alive(instance: DagsterInstance, home: Path, run_id: str) -> Iterator[None]:
    """Mark a run as this process's while the block executes it; the block leaves no unfinished run behind."""
    folder = home / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / run_id
    # Locked before it has its name, so that a sweep by another command never finds it unlocked.
    draft = folder / f".{run_id}"
    with draft.open("x") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        draft.rename(path)
        try:
            yield
        except BaseException:
            _settle(instance, run_id)
            raise
        finally:
            path.unlink(missing_ok=True)


def sweep(instance: DagsterInstance, home: Path) -> int:
    """Mark the unfinished runs of commands that are gone as failed; returns how many these were."""
    swept = 0
    for path in sorted((home / _FOLDER).glob("[!.]*")):
        if not _abandoned(path):
            continue
        swept += _settle(instance, path.name)
        path.unlink(missing_ok=True)
    return swept


def _abandoned(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def _settle(instance: DagsterInstance, run_id: str) -> bool:
    """Mark a run as failed unless it has ended; whether that was needed."""
    run = instance.get_run_by_id(run_id)
    if run is None or run.is_finished:
        return False
    instance.report_run_failed(run, _GONE)
    return True
