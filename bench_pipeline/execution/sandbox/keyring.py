"""A session keyring of its own for every sandbox.

Namespaces do not part keyrings: a process keeps the session keyring of whoever started it, so a cell could read
the keys of a login, or leave notes for the next cell. What belongs here: leaving the old one before a start.
See https://man7.org/linux/man-pages/man7/session-keyring.7.html.
"""

import ctypes
import platform

_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "ppc64le": 271, "s390x": 280}
_JOIN_SESSION_KEYRING = 1


def join_new_session_keyring() -> bool:
    """Give the calling thread, and what it starts from now on, a fresh and empty session keyring.

    Returns False where the kernel has no keyrings or does not let us use them; a sandbox then cannot either.
    """
    number = _KEYCTL.get(platform.machine())
    if number is None:
        return False
    return int(ctypes.CDLL(None, use_errno=True).syscall(number, _JOIN_SESSION_KEYRING, None)) >= 0
