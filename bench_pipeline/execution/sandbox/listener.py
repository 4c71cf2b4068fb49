"""Opens a port in the network of a sandbox and hands the listening socket out; a program of its own.

What belongs here: entering a process's network and listening there. What does not: answering (somebody outside does,
on the socket that is handed out, so that nothing of ours runs in the sandbox). It imports nothing of this package
because it runs as ``python -I -S listener.py PID PORT FD``: entering another user namespace takes a process that has
one thread, and changes it for good.
"""

import ctypes
import fcntl
import os
import socket
import sys

# Which user namespace a network belongs to; whoever made that one may enter both (ioctl_ns(2), setns(2)).
_NS_GET_USERNS = 0xB701
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_BACKLOG = 512


def listen_in(pid: int, port: int) -> socket.socket:
    """A socket that listens on 127.0.0.1 in the network of a process; this process stays there."""
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    owner = fcntl.ioctl(network, _NS_GET_USERNS)
    _enter(owner, _CLONE_NEWUSER)
    _enter(network, _CLONE_NEWNET)
    return socket.create_server(("127.0.0.1", port), backlog=_BACKLOG)


def _enter(namespace: int, kind: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, kind) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def main(argv: list[str]) -> None:
    """Listen, and send the socket over the descriptor that was given."""
    pid, port, descriptor = map(int, argv)
    with listen_in(pid, port) as listening, socket.socket(fileno=descriptor) as out:
        socket.send_fds(out, [b"l"], [listening.fileno()])


if __name__ == "__main__":
    main(sys.argv[1:])
