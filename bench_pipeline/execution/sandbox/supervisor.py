"""The parent of a command in the process backend; a program of its own, started by its path.

What belongs here: being the reaper of everything that the command leaves, and ending it when bench dies.
What does not: time limits and counting, which are done from outside (``watch``). It imports nothing of this
package because it runs as ``python -I -S supervisor.py COMMAND...`` to start quickly.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main(argv: list[str]) -> None:
    """Start ``argv`` at a gate, adopt its orphans, and leave it unreaped: others look how it ended."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: _end_all())
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    child = os.fork()
    if child == 0:
        _run_at_gate(argv)
    for stream in (0, 1, 2):
        os.close(stream)
    _reap_all_but(child)
    while True:
        signal.pause()


def _run_at_gate(argv: list[str]) -> None:
    """Report a newline, wait for one, become the command. Never returns."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for number in signal.valid_signals():
        # What Python or whoever started bench ignores would stay ignored in the command.
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    os.write(1, b"\n")
    if os.read(0, 1) != b"\n":
        os._exit(125)
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - a list, no shell
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode("utf-8", "surrogateescape"))
        os._exit(126 if isinstance(error, PermissionError) else 127)


def _reap_all_but(child: int) -> None:
    """Reap adopted orphans until ``child`` has ended; then nothing more is reaped."""
    while True:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        if found is None or found.si_pid == child:
            return
        os.waitpid(found.si_pid, 0)


def _end_all() -> None:
    """Kill everything below this process, then end: bench is gone and nobody else will."""
    while True:
        ended = True
        with os.scandir("/proc") as entries:
            pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
        for pid in pids:
            if pid != os.getpid() and _is_below(pid):
                ended = False
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            os._exit(1)
        if ended:
            os._exit(1)


def _is_below(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib would cost start-up time
                text = file.read()
        except OSError:
            return False
        fields = text[text.rfind(b")") + 2 :].split()
        if fields[0] in b"ZX":
            return False
        pid = int(fields[1])
    return False


if __name__ == "__main__":
    main(sys.argv[1:])
