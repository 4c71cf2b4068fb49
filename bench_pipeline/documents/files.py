"""Opens the files that documents are read from: regular files only, and no more of them than a bound."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from bench_pipeline.errors import DocumentError, Problem


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; DocumentError when it is missing, unreadable or something else."""
    try:
        # Non-blocking: a named pipe in a project must not hold a command for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DocumentError([Problem(str(path), None, "", "is not a regular file")])
    return os.fdopen(descriptor, "rb")


def read_bytes(path: Path, limit: int) -> bytes:
    """A regular file's bytes; DocumentError when it cannot be read or is larger than ``limit`` bytes."""
    with open_regular(path) as stream:
        try:
            # Asking for the whole limit would reserve it for every small file.
            data = stream.read(min(os.fstat(stream.fileno()).st_size, limit) + 1)
            while len(data) <= limit and (more := stream.read(1 << 16)):
                data += more
        except OSError as error:
            raise unreadable(path, error) from None
    if len(data) > limit:
        raise DocumentError(
            [Problem(str(path), None, "", f"is larger than {limit} bytes, the most it may have")]
        )
    return data


def unreadable(path: Path, error: Exception) -> DocumentError:
    """The error for a file that the system did not let us read."""
    reason = getattr(error, "strerror", None) or str(error)
    return DocumentError([Problem(str(path), None, "", f"cannot be read: {reason}")])
