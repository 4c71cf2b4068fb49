"""The run's side of its gateway: starting it, opening a door for each use of a tool, and reading what went through.

What belongs here: the process's life and a cell's line to it. What does not: anything about HTTP (``door``). A gateway
is started when the first tool needs one. When it dies, every cell that it served is ended, and what it recorded until
then still counts.
"""

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench_pipeline.errors import SandboxError
from bench_pipeline.execution.gateway.accounts import Caps
from bench_pipeline.execution.gateway.ledger import Traffic, read_ledger
from bench_pipeline.execution.gateway.masking import Masks
from bench_pipeline.execution.gateway.recordings import Exchange, read_file
from bench_pipeline.execution.sandbox import Sandbox, Served
from bench_pipeline.registry.pricing import ModelPrice

# The port in a sandbox that has a loopback interface of its own: the same in every cell.
PORT = 8800
# Opens the door of an isolated cell, which nobody else can reach: the same in every cell, as everything that an
# agent can see is.
KEY = "bench-gateway"
_START_S = 60.0
_ANSWER_S = 90.0
_KEPT_ENVIRONMENT = ("PATH", "PYTHONPATH", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR", "TMPDIR")


@dataclass(frozen=True)
class UpstreamSettings:
    """One model API, as a project's configuration names it."""

    base_url: str
    key_env: str | None
    concurrency: int
    requests_per_minute: int | None


@dataclass(frozen=True)
class Route:
    """Where a model is asked for, and at what price."""

    upstream: str
    price: ModelPrice | None


@dataclass
class Session:
    """A door while a tool runs, and what went through it when it is closed.

    ``url`` and ``key`` are for the tool; ``served`` for a sandbox whose commands have a network of their own;
    ``cancel`` ends the tool, also when the gateway has. ``whole``: the gateway was there to the end. ``recording`` is
    what was asked and answered, where that was to be recorded.
    """

    url: str
    key: str
    served: Served | None
    cancel: threading.Event
    traffic: Traffic = field(default_factory=Traffic)
    whole: bool = True
    recording: bytes | None = None


@dataclass(frozen=True)
class Again:
    """A recording that answers in place of the upstreams, with the masks for it and for what is asked now."""

    packed: bytes = field(repr=False)
    recorded: Masks
    now: Masks


class _Either(threading.Event):
    """Set when either of two is."""

    def __init__(self, *events: threading.Event) -> None:
        super().__init__()
        self._events = events

    def is_set(self) -> bool:
        return any(event.is_set() for event in self._events)


class Gateway:
    """The gateway of one run; threads may share it.

    As a context manager, or when it is garbage, it ends its process.

    Args:
        upstreams: by name.
        routes: of each model by its id.
        run_caps: for all cells together.
        cell_caps: for each cell.
        first_wait_s: the pause before a failed request is sent again; it doubles.
    """

    def __init__(
        self,
        upstreams: Mapping[str, UpstreamSettings],
        routes: Mapping[str, Route],
        *,
        run_caps: Caps = Caps(),  # noqa: B008 - immutable
        cell_caps: Caps = Caps(),  # noqa: B008 - immutable
        first_wait_s: float = 1.0,
    ) -> None:
        self._upstreams = dict(upstreams)
        self._routes = dict(routes)
        self._run_caps = run_caps
        self._cell_caps = cell_caps
        self._first_wait_s = first_wait_s
        self._lock = threading.Lock()
        self._closing = contextlib.ExitStack()
        self._finalizer = weakref.finalize(self, self._closing.close)
        self._control: socket.socket | None = None
        self._folder = Path()
        self.ended = threading.Event()
        self.pid: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.close()

    @contextlib.contextmanager
    def session(
        self,
        apis: Sequence[str],
        model_id: str | None,
        sandbox: Sandbox,
        *,
        cell: str,
        cancel: threading.Event,
        record: Callable[[Iterator[Exchange]], bytes] | None = None,
        again: Again | None = None,
    ) -> Iterator[Session]:
        """A door for one use of a tool in the cell ``cell``, whose uses share its caps.

        ``record`` makes of all exchanges what the session's ``recording`` is; without it nothing is recorded. With
        ``again`` everything is answered from a recording: no upstream is asked, and no cap holds.

        Raises SandboxError when the gateway is not there.
        """
        self._start()
        name = secrets.token_hex(8)
        ledger, recording, packed = (
            self._folder / f"{name}.{kind}" for kind in ("jsonl", "recording", "packed")
        )
        own = sandbox.loopback == "own"
        token = KEY if own else secrets.token_hex(16)
        if again is not None:
            packed.write_bytes(again.packed)
        message = {
            "cell": cell,
            "ledger": str(ledger),
            "token": token,
            "apis": list(apis),
            "caps": (self._cell_caps if again is None else Caps()).document(),
            "models": self._models(model_id) if again is None else {model_id: None},
            "recording": None if record is None else str(recording),
            "replay": None
            if again is None
            else {"packed": str(packed), "recorded": again.recorded.document(), "now": again.now.document()},
        }
        lines: list[socket.socket] = []

        def serve(listener: socket.socket) -> None:
            lines.append(self._open(message, listener))

        if own:
            port, served = PORT, Served(PORT, serve)
        else:
            listener = socket.create_server(("127.0.0.1", 0))
            port, served = listener.getsockname()[1], None
            serve(listener)
        session = Session(f"http://127.0.0.1:{port}", token, served, _Either(cancel, self.ended))
        try:
            yield session
        finally:
            for line in lines:
                session.whole = _finish(line)
            session.traffic = read_ledger(ledger)
            if record is not None and recording.exists():
                session.recording = record(read_file(recording))
            for path in (ledger, recording, packed):
                path.unlink(missing_ok=True)

    def _models(self, model_id: str | None) -> dict[str, dict[str, object]]:
        """How the gateway's process is told of a cell's model; of none, when it has no route."""
        route = self._routes.get(model_id) if model_id is not None else None
        if route is None:
            return {}
        return {str(model_id): {"upstream": route.upstream, "price": route.price and route.price.document()}}

    def _start(self) -> None:
        with self._lock:
            if self._control is not None:
                return
            self._folder = Path(tempfile.mkdtemp(prefix="bench-gateway-"))
            self._closing.callback(shutil.rmtree, self._folder, ignore_errors=True)
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                process = subprocess.Popen(
                    [sys.executable, "-P", "-m", f"{__package__}.process", str(theirs.fileno())],
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=self._environment(),
                    # Ctrl-C of a terminal reaches its whole process group; the gateway ends after its cells.
                    start_new_session=True,
                )
            self._closing.callback(process.wait)
            self._closing.callback(ours.close)
            self.pid = process.pid
            threading.Thread(target=_watch, args=(process, self.ended), daemon=True, name="gateway").start()
            ours.settimeout(_START_S)
            settings = {
                "upstreams": {name: asdict(each) for name, each in self._upstreams.items()},
                "caps": self._run_caps.document(),
                "first_wait_s": self._first_wait_s,
            }
            with _reached():
                ours.send(json.dumps(settings).encode())
                if not ours.recv(1):
                    raise ConnectionError("it ended at its start")
            self._control = ours

    def _environment(self) -> dict[str, str]:
        names = [*_KEPT_ENVIRONMENT, *(each.key_env for each in self._upstreams.values() if each.key_env)]
        return {name: os.environ[name] for name in names if name in os.environ}

    def _open(self, message: Mapping[str, Any], listener: socket.socket) -> socket.socket:
        """Hand a cell's listening socket over, and wait until it is served."""
        with contextlib.ExitStack() as failing, listener, _reached():
            ours, theirs = socket.socketpair()
            failing.enter_context(ours)
            with theirs, self._lock:
                assert self._control is not None
                socket.send_fds(
                    self._control, [json.dumps(message).encode()], [theirs.fileno(), listener.fileno()]
                )
            ours.settimeout(_START_S)
            if not ours.recv(1):
                raise ConnectionError("it ended before the cell began")
            failing.pop_all()
            return ours


def _watch(process: "subprocess.Popen[bytes]", ended: threading.Event) -> None:
    process.wait()
    ended.set()


@contextlib.contextmanager
def _reached() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SandboxError(
            "reaching the gateway to model APIs", str(error) or type(error).__name__, "run the cells again"
        ) from error


def _finish(line: socket.socket) -> bool:
    """Say that a cell has ended, and wait until everything is counted; False when the gateway is gone."""
    with line:
        line.settimeout(_ANSWER_S)
        try:
            line.sendall(b"e")
            return line.recv(1) != b""
        except OSError:
            return False
