"""The words that every sandbox backend speaks: a command, its place, its limits and how it ended.

No backend and no process is known here.
"""

import socket
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin"
# Everything of the host's environment is left out; these are the same on every machine.
FIXED_ENVIRONMENT = {"PATH": SEARCH_PATH, "LANG": "C.UTF-8", "TZ": "UTC"}
TOOL_FILES = "/opt/tool"
_MIB = 1 << 20

Loopback = Literal["own", "host", "closed"]


@dataclass(frozen=True)
class Limits:
    """What one command may use.

    ``wall_s`` seconds of wall time, then SIGTERM to every process and SIGKILL ``grace_s`` seconds later;
    ``cpus`` processors; ``memory_bytes`` and ``pids`` (tasks, threads counted) of all its processes together;
    ``output_bytes`` kept of stdout and of stderr each; ``disk_bytes`` that its folders may take. None: no
    limit.
    """

    wall_s: float
    cpus: float | None = None
    memory_bytes: int | None = None
    pids: int | None = None
    output_bytes: int = 16 * _MIB
    grace_s: float = 10.0
    disk_bytes: int | None = 16384 * _MIB


@dataclass(frozen=True)
class Command:
    """A program with its arguments, the variables it gets besides the fixed ones, and its whole input.

    The environment of the host is never inherited. Input is closed after its last byte.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""

    def __post_init__(self) -> None:
        if not self.argv:
            raise ValueError("a command needs a program")


@dataclass(frozen=True)
class Mount:
    """A file or folder of the host shown at ``inside``, an absolute path; read-only unless writable."""

    host: Path
    inside: str
    writable: bool = False


@dataclass(frozen=True)
class Place:
    """The folders of the host that a command may write to, and what else it sees.

    ``handover`` is the folder that workflow steps share outside the tree; ``image`` the container image,
    which only a backend with containers looks at.
    """

    tree: Path
    home: Path
    tmp: Path
    handover: Path | None = None
    mounts: tuple[Mount, ...] = ()
    image: str | None = None

    def scratch(self) -> "Place":
        """This place with an empty HOME and temporary folder, made beside the old ones, and no handover."""
        folder = Path(tempfile.mkdtemp(prefix="scratch-", dir=self.tmp.parent))
        home, tmp = folder / "home", folder / "tmp"
        home.mkdir()
        tmp.mkdir()
        return replace(self, home=home, tmp=tmp, handover=None)


@dataclass(frozen=True)
class PlacePaths:
    """A place as the command sees it: absolute paths as text.

    ``files`` is the folder that holds the mounted tool files; None where there are none.
    """

    tree: str
    home: str
    tmp: str
    handover: str | None
    files: str | None


@dataclass(frozen=True)
class Served:
    """A port of 127.0.0.1, as a command sees it, that somebody outside answers.

    ``take`` is given the listening socket before the command starts, and owns it from then on.
    """

    port: int
    take: Callable[[socket.socket], None]


@dataclass(frozen=True)
class ProcessEnd:
    """How a command ended.

    Exactly one of ``exit_code`` and ``signal`` is set, ``signal`` when the program was killed by one. At most
    one of the flags says that we ended it and why. ``orphans`` counts the processes that were left when the
    main one had ended; none of them runs any more. ``stdout_cut`` and ``stderr_cut`` are bytes that were not
    kept: the middle of the output, the place is marked in the file. ``limits_not_enforced`` says what could
    not be bounded hard on this machine.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    cancelled: bool
    memory_killed: bool
    duration_s: float
    orphans: int
    stdout: Path
    stderr: Path
    stdout_cut: int = 0
    stderr_cut: int = 0
    limits_not_enforced: tuple[str, ...] = ()
    pids_killed: bool = False
    disk_killed: bool = False

    @property
    def killed_for(self) -> str | None:
        """The resource whose limit ended the command (``memory``, ``processes``, ``disk``), or None."""
        reasons = {"memory": self.memory_killed, "processes": self.pids_killed, "disk": self.disk_killed}
        return next((name for name, killed in reasons.items() if killed), None)


class Sandbox(Protocol):
    """A way to run a command of a cell.

    ``isolates`` says whether a hostile command is held; ``loopback`` whose 127.0.0.1 a command sees: one of its
    ``own`` that can be served, the ``host``'s, or one that is ``closed`` to everybody outside; ``notice`` is one
    line that a person has to see before anything runs, or None.
    """

    name: str
    isolates: bool
    loopback: Loopback
    notice: str | None

    def policy(self) -> dict[str, Any]:
        """What of this backend decides a command's result, as JSON values; the same on every machine."""
        ...

    def view(self, place: Place) -> PlacePaths:
        """The paths under which a command will see its place."""
        ...

    def run(
        self,
        command: Command,
        place: Place,
        limits: Limits,
        *,
        stdout: Path,
        stderr: Path,
        cancel: threading.Event | None = None,
        served: Served | None = None,
    ) -> ProcessEnd:
        """Run a command to its end and leave no process of it behind.

        Its output is written to the files ``stdout`` and ``stderr``. Setting ``cancel`` ends it as the time
        limit does. ``served`` is for a sandbox whose loopback is its ``own``.

        Raises:
            SandboxError: it could not be started; nothing of the command has run.
        """
        ...
